"""The whole product on a real Debian machine, from its first boot on."""
