"""The firewall rules: one table, the intended ports, and no injected text."""

from __future__ import annotations

import re

import pytest

from wizard_app.setup.plan.firewall import ALWAYS, ports_note, ruleset

_PORTS = re.compile(r"^    (tcp|udp) dport \{ ([0-9, ]+) \} accept\n", re.MULTILINE)


def _opened(rules: str) -> set[str]:
    return {
        f"{number}/{protocol}"
        for protocol, numbers in _PORTS.findall(rules)
        for number in numbers.split(", ")
    }


def test_exactly_the_given_ports_are_opened_once_in_any_order() -> None:
    for ports in (
        *([], list(ALWAYS), ["443/tcp"], ["5060/udp", "5060/tcp", "1/udp", "65535/tcp"]),
        *(["80/tcp", "80/tcp", "443/tcp"], ["80/tcp", "443/tcp", "9/udp"]),
    ):
        rules = ruleset(ports)
        assert _opened(rules) == set(ports)
        opened = [number for _, numbers in _PORTS.findall(rules) for number in numbers.split(", ")]
        assert len(opened) == len(set(ports))
        assert _PORTS.sub("", rules) == ruleset([])
        assert ruleset(reversed(ports)) == rules


def test_input_is_dropped_except_for_the_named_ports() -> None:
    rules = ruleset(ALWAYS)
    assert rules.count("policy drop;") == 1
    assert rules.index("delete table inet platform") < rules.index("chain input")
    assert {"22/tcp", "8088/tcp", "8089/tcp"} <= _opened(rules)


def test_an_invalid_port_is_never_written() -> None:
    for port in ("x/tcp", "1 } accept; #/tcp", "/tcp"):
        with pytest.raises(ValueError, match="invalid literal"):
            ruleset([port])


def test_the_note_for_people_says_what_each_port_is_for() -> None:
    said = str(ports_note({**ALWAYS, "443/tcp": None}))
    assert said.endswith(": 22/tcp (SSH), 443/tcp, 8088/tcp (this setup), 8089/tcp (dashboard)")
