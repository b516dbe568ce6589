"""What the machines of these tests keep on disk, and what they discard."""

from __future__ import annotations

import pytest

from tests.support.machine import machine, run_in, writable_tree

pytestmark = pytest.mark.long


def test_a_tree_keeps_the_files_of_its_machine_and_not_those_of_a_machine_above_it() -> None:
    with writable_tree() as tree:
        run_in(tree, "sh", "-c", "echo one >/etc/kept")
        # The power is cut.
        with machine(tree) as first:
            first.write("/etc/more", "two\n")
            identity = first.run("cat", "/etc/machine-id")
        with machine(tree, clean=True) as second:
            assert second.run("cat", "/etc/kept", "/etc/more") == "one\ntwo\n"
            assert second.run("cat", "/etc/machine-id") == identity
            second.write("/etc/more", "three\n")
        with writable_tree(tree) as above, machine(above, programs=False) as third:
            assert third.run("cat", "/etc/kept", "/etc/more") == "one\nthree\n"
            third.run("rm", "/etc/kept", "/etc/more")
        assert [(tree / f"etc/{name}").read_text() for name in ("kept", "more")] == [
            "one\n",
            "three\n",
        ]


def test_a_machine_without_a_tree_keeps_nothing() -> None:
    with machine(programs=False) as booted:
        booted.write("/etc/kept", "one\n")
    with machine(programs=False) as booted:
        assert booted.call("test", "-e", "/etc/kept").returncode == 1
