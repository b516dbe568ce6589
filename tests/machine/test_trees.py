"""What the machines of these tests keep, and what they forget."""

from __future__ import annotations

from tests.support.machine import machine, run_in, writable_tree


def test_what_a_machine_wrote_is_there_after_a_power_cut_and_after_a_shutdown() -> None:
    with writable_tree() as tree:
        run_in(tree, "sh", "-c", "echo one >/etc/kept")
        with machine(tree) as first:
            first.write("/etc/more", "two\n")
            identity = first.run("cat", "/etc/machine-id")
        with machine(tree, clean=True) as second:
            assert second.run("cat", "/etc/kept", "/etc/more") == "one\ntwo\n"
            assert second.run("cat", "/etc/machine-id") == identity
            second.write("/etc/more", "three\n")
        with machine(tree, programs=False) as third:
            assert third.run("cat", "/etc/more") == "three\n"


def test_a_tree_above_another_leaves_that_one_as_it_is() -> None:
    with writable_tree() as below:
        run_in(below, "sh", "-c", "echo one >/etc/kept")
        with writable_tree(below) as above, machine(above) as booted:
            assert booted.run("cat", "/etc/kept") == "one\n"
            booted.run("rm", "/etc/kept")
        assert (below / "etc/kept").read_text() == "one\n"


def test_a_machine_without_a_tree_keeps_nothing() -> None:
    with machine() as booted:
        booted.write("/etc/kept", "one\n")
    with machine() as booted:
        assert booted.call("test", "-e", "/etc/kept").returncode == 1
