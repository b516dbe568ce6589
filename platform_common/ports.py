"""The ports of the two web apps; `systemd/*.socket` have the same."""

WIZARD, DASHBOARD = 8088, 8089
