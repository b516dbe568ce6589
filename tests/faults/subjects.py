"""The subjects: operations that are killed, interrupted and failed at every system call."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import html5lib

from release_tools.distribution.layout import MANIFEST_NAME, SIGNATURE_SUFFIX
from tests.faults.programs import TIME_ZONE, stored
from tests.faults.walks import DONE, NEW, OLD, TORN, UNSURE, Subject
from tests.support.apply_setups import (
    SETUPS,
    answer,
    commands,
    comparable_state,
    left_overs,
    not_stored,
    prepare,
    press_once_more,
    put_back,
    result,
    started,
    steps_with_lost_secrets,
    wrong,
)
from tests.support.faults import FaultServer, Run, Site
from tests.support.releases import VERSION
from tests.support.trees import hidden, tree
from tests.support.writers import GROUP_ID, MODE, state
from wizard_app.chat.history import ChatHistory

_UNSIGNED = "dist/stable/manifest.json.unsigned"
_NOBODY = 65534
# Modules that Python imports late; imported before, so that no import meets a fault.
LATE = ("ctypes", "grp", "pwd", "platform_common.cli.terminal")
Start = Callable[..., FaultServer]
SubjectOf = Callable[[str], Subject]


class Publishing(Subject):
    """`release-tools`, with which an operator changes a distribution."""

    failure_status = 5
    interrupt_message = "Interrupted; nothing half-done was left behind.\n"

    def __init__(self, server: FaultServer, site: Site, what: str) -> None:
        args = {"sign": ["sign", _UNSIGNED], "rebuild": site.build_args(VERSION)}
        super().__init__(server, site.folder, args.get(what, site.build_args()))
        self._site, self._what = site, what
        self._old = tree(site.folder / "before" / "stable" / VERSION)
        later = {"SOURCE_DATE_EPOCH": "1793491999"} if what == "rebuild" else {}
        self.env = site.env | later

    def reset(self) -> None:
        self._site.reset(unsigned=self._what == "sign")
        if self._what == "first build":
            shutil.rmtree(self._site.dist)

    def concerns(self, call: str, line: str) -> bool:
        return True

    def found(self) -> str:
        manifest = self._site.dist / "stable" / MANIFEST_NAME
        if self._what == "first build" and not manifest.exists():
            # Nothing looks like a release yet.
            return OLD
        if self._what in ("build", "sign"):
            assert tree(self._site.dist / "stable" / VERSION) == self._old
        found = self._site.state()
        if found != "E_SIG":
            assert found == NEW or (found == OLD and self._what != "first build"), found
            return found
        # A manifest and its signature are two files, and no call renames two files at once.
        before = self._site.folder / "before" / "stable" / MANIFEST_NAME
        signature = manifest.with_name(MANIFEST_NAME + SIGNATURE_SUFFIX)
        assert manifest.read_bytes() == before.read_bytes()
        assert signature.read_bytes() != before.with_name(signature.name).read_bytes()
        return TORN

    def after_failure(self, run: Run, reason: str) -> bool:
        why, found = self.sentence(run), self.found()
        # A release that may not survive a power cut can be partly missing.
        assert found == (OLD if why else NEW) or (found == NEW and DONE.search(why)), why
        return bool(why)

    def left_overs(self) -> list[str]:
        return hidden(self._site.dist)

    def again(self, found: str) -> None:
        if self._what != "sign" or (self.folder / _UNSIGNED).exists():
            again = self.run()
            assert again.returncode == 0, again.stderr
        assert self.found() == (OLD if self._what == "rebuild" else NEW)
        assert self.left_overs() == []


class OnDevice(Subject):
    """A change of a file in the folder `device`."""

    def __init__(self, server: FaultServer, parent: Path, way: str, file: str, *text: str) -> None:
        self.device = parent / "device"
        self.path = self.device / file
        super().__init__(server, parent, [way, self.path, *text])

    def concerns(self, call: str, line: str) -> bool:
        return f"{self.device}" in line

    def sentence(self, run: Run) -> str:
        why = super().sentence(run)
        assert not why or why.startswith(f"error: {self.device}"), why
        return why

    def after_failure(self, run: Run, reason: str) -> bool:
        # A second fsync of data that could not be written would wrongly succeed.
        fsyncs = [line for line in run.calls if " fsync(" in line]
        failed = [number for number, line in enumerate(fsyncs) if "INJECTED" in line]
        assert not failed or failed[0] == len(fsyncs) - 1
        return super().after_failure(run, reason)


class Change(NamedTuple):
    """A change of a file: the files before, the change, and the files afterwards."""

    old: Mapping[str, bytes]
    way: str
    text: str
    new: Mapping[str, bytes]
    user: int | None = None


_LEFT_OVER = ".file.4711.0123abcd.tmp"
_BIG = "new\n" * 5000
CHANGES = {
    "a record is edited": Change({"file": b"old"}, "edit", _BIG, {"file": _BIG.encode()}),
    "a record is edited by nobody": Change(
        {"file": b"old"}, "edit", "new", {"file": b"new"}, _NOBODY
    ),
    "a record is created": Change({}, "edit", "new", {"file": b"new"}),
    "a left-over is removed": Change(
        {"file": b"old", _LEFT_OVER: b"secret"}, "edit", "new", {"file": b"new"}
    ),
    "the first line": Change({}, "append", "1", {"file": b"1\n"}),
    "the next line": Change({"file": b"1\n"}, "append", "2", {"file": b"1\n2\n"}),
    "a line after a torn one": Change({"file": b"1\n2"}, "append", "3", {"file": b"1\n2\n3\n"}),
    "a file is put aside": Change({"file": b"1\n"}, "put-aside", "aside", {"aside": b"1\n"}),
}


class Writing(OnDevice):
    """A program that changes one of the device's files."""

    def __init__(self, server: FaultServer, parent: Path, change: Change) -> None:
        super().__init__(server, parent, change.way, "file", change.text)
        self.change = change
        self._visible = {name: data for name, data in change.old.items() if name[0] != "."}
        # Without root, the test already runs as another user.
        self.user = change.user if os.geteuid() == 0 else None

    def reset(self) -> None:
        shutil.rmtree(self.device, ignore_errors=True)
        self.device.mkdir()
        for name, data in self.change.old.items():
            path = self.device / name
            path.write_bytes(data)
            path.chmod(MODE)
            if os.geteuid() == 0:
                os.chown(path, self.user or 0, self.user or GROUP_ID)
        if self.user is not None:
            os.chown(self.device, self.user, self.user)

    def kept(self) -> dict[str, bytes]:
        """The files without temporary ones."""
        found = state(self.device, user=self.user)
        return {name: data for name, data in found.items() if name[0] != "."}

    def found(self) -> str:
        kept = self.kept()
        if kept == self.change.new:
            return NEW
        # A file of lines is created empty, which counts as no lines.
        assert kept == self._visible or (kept == {"file": b""} and not self._visible), kept
        return OLD

    def left_overs(self) -> list[str]:
        found = state(self.device, user=self.user)
        return [name for name in found if name[0] == "." and name not in self.change.old]

    def again(self, found: str) -> None:
        again, new = self.run(), dict(self.change.new)
        if found == NEW and self.change.way == "put-aside":
            assert again.stderr == "error: there is nothing to put aside\n"
        else:
            assert (again.returncode, again.stderr) == (0, "")
        if found == NEW and self.change.way == "append":
            new["file"] += f"{self.change.text}\n".encode()
        assert state(self.device, user=self.user) == new


_SAID = b'{"role":"user","content":"old","at":"2026-01-01T00:00:00Z"}\n'
_TORN = b'{"role":"user","cont'
_CHAT = "chat-history.jsonl"


class Chat(NamedTuple):
    """A change of a chat history: the content before, the change, and the turns afterwards."""

    old: bytes | None
    way: str
    said: Sequence[str]


CHATS = {
    "the first turn of a device": Chat(None, "say", ["new"]),
    "the first turn": Chat(b"", "say", ["new"]),
    "the next turn": Chat(_SAID, "say", ["old", "new"]),
    "a turn after a torn one": Chat(_SAID + _TORN, "say", ["old", "new"]),
    "cleared": Chat(_SAID * 3, "clear", []),
}


class Chatting(OnDevice):
    """A chat whose history is extended or cleared."""

    def __init__(self, server: FaultServer, parent: Path, chat: Chat) -> None:
        super().__init__(server, parent, chat.way, _CHAT, *(["new"] * (chat.way == "say")))
        self._chat = chat
        self._old = ["old"] * (chat.old or b"").count(b"\n")

    def reset(self) -> None:
        shutil.rmtree(self.device, ignore_errors=True)
        if self._chat.old is not None:
            self.device.mkdir()
        if self._chat.old:
            self.path.write_bytes(self._chat.old)
            self.path.chmod(MODE)

    def _said(self) -> Sequence[str]:
        if self.path.exists():
            assert self.path.stat().st_mode & 0o777 == MODE
        return [one.content for one in ChatHistory(self.path).last()]

    def found(self) -> str:
        said = self._said()
        assert said in (self._old, self._chat.said)
        return NEW if said == self._chat.said else OLD

    def left_overs(self) -> list[str]:
        names = {path.name for path in self.device.iterdir()} if self.device.exists() else set()
        return sorted(names - {_CHAT, f".{_CHAT}.lock"})

    def again(self, found: str) -> None:
        again = self.run()
        assert (again.returncode, again.stderr) == (0, "")
        twice = ["new"] if found == NEW and self._chat.way == "say" else []
        assert self._said() == [*self._chat.said, *twice]
        assert self.left_overs() == []
        # There is at most one torn line, and never in the middle of another.
        lines = self.path.read_bytes().split(b"\n") if self.path.exists() else [b""]
        assert lines[-1] == b""
        assert all(line == _TORN or json.loads(line) for line in lines[:-1])


class Naming(Subject):
    """A wizard whose device is named `old`, and is then named `first` and `second`."""

    def __init__(self, server: FaultServer, parent: Path) -> None:
        self._out, self._clean = parent / "out", parent / "clean"
        super().__init__(server, parent, ["name", self._out, "first", "second"])
        self._state = self._out / "var/lib/platform"
        assert server.run("name", self._out, "old", cwd=parent, env={}).returncode == 0
        shutil.copytree(self._out, self._clean)

    def reset(self) -> None:
        put_back(self._out, self._clean)

    def concerns(self, call: str, line: str) -> bool:
        return f"{self._state}" in line

    def found(self) -> str:
        name = stored(self._out)
        assert name in ("old", "first")
        return OLD if name == "old" else NEW

    def left_overs(self) -> list[str]:
        return [path.name for path in self._state.iterdir() if path.suffix == ".tmp"]

    def again(self, found: str) -> None:
        run = self.server.run("name", self._out, cwd=self.folder, env={})
        assert (run.returncode, run.stdout, run.stderr) == (0, "[]\n", "")
        assert self.left_overs() == []
        assert not list(self._state.glob("*.bad-*"))
        assert self.found() == found

    def after_failure(self, run: Run, reason: str) -> bool:
        assert (run.returncode, run.stderr) == (0, "")
        first, second = json.loads(run.stdout)
        # The next name is saved as if nothing had happened.
        assert (second["status"], second["stored"], second["held"]) == (302, "second", "second")
        if first["status"] == 302:
            assert first["stored"] == first["held"] == "first"
            return False
        assert first["status"] == 500
        assert "This could not be saved: " in first["text"]
        assert "Check that the disk has free space" in first["text"]
        assert not re.search(r"Traceback|\[Errno", first["text"])
        # The typed values are still in the form, so that they can be sent again.
        assert 'value="first"' in first["text"]
        assert f'value="{TIME_ZONE}"' in first["text"]
        assert first["held"] == "old"
        # If the last call fails, the name may or may not be on the disk, and the page says so.
        assert first["stored"] == ("first" if UNSURE in first["text"] else "old")
        return True


# Other calls change nothing; a fault in one of them has the same effect as one in the next of
# these.
_MATTERS = {
    *("close", "write", "fsync", "ftruncate"),
    *("renameat", "renameat2", "unlink", "unlinkat", "linkat"),
    *("mkdir", "mkdirat", "fchmod", "fchown", "lchown"),
}


class SettingUp(Subject):
    """A device on which setup is applied, and then applied again."""

    def __init__(self, start: Start, folder: Path, name: str) -> None:
        self._setup = SETUPS[name]
        self.out, self._clean, self._first = folder / "device", folder / "clean", folder / "first"
        prepare(self._setup, self.out)
        shutil.copytree(self.out, self._clean)
        self._before = result(self.out)
        enter = not_stored(self.out, self._setup.forms)
        client = started(self.out)
        assert steps_with_lost_secrets(client) == enter
        answer(client, self._setup.forms, enter)
        assert client.post("/wizard/review/apply").status_code == 302
        self._after, self._ran = result(self.out), commands(self.out)
        self._seen: list[Any] = []
        self.reported: set[str] = set()
        put_back(self.out, self._clean)
        server = start(folder, "tests.faults.programs", [*LATE, "glob"], [str(self.out), name])
        super().__init__(server, Path("/"), ["set-up", self.out, "2"])

    def reset(self) -> None:
        put_back(self.out, self._clean)
        shutil.rmtree(self._first, ignore_errors=True)

    def concerns(self, call: str, line: str) -> bool:
        matters = call in _MATTERS or (call == "openat" and "O_RDONLY" not in line)
        return matters and f"{self.out}" in line

    def found(self) -> str:
        assert wrong(self.out, self._before, self._after) == []
        # A left-over may exist as well.
        return NEW if self._after.items() <= result(self.out).items() else OLD

    def left_overs(self) -> list[str]:
        return left_overs(self.out)

    def again(self, found: str) -> None:
        # A new wizard asks for what was not stored, and completes as if nothing had happened.
        if (now := comparable_state(self.out)) in self._seen:
            return
        self._seen.append(now)
        joined = "mesh-vpn" not in not_stored(self.out, self._setup.forms)
        ran = press_once_more(self.out, self._setup.forms)
        kept = [argv for argv in self._ran if joined and argv[0] == "tailscale"]
        assert ran in (None, [argv for argv in self._ran if argv not in kept])
        assert result(self.out) == self._after
        assert self.left_overs() == []

    def after_failure(self, run: Run, reason: str) -> bool:
        assert (run.returncode, run.stderr) == (0, "")
        first, second = json.loads(run.stdout)
        refused: bool = first["status"] != 302
        if refused:
            self.reported.add(_assert_reported_on_the_page(first, reason))
            assert wrong(self._first, self._before, self._after) == []
            assert commands(self._first) == self._ran[: len(commands(self._first))]
        else:
            assert result(self._first) == self._after
        assert second["to"] == "/wizard/done"
        assert result(self.out) == self._after
        return refused


def _assert_reported_on_the_page(answer: dict[str, Any], reason: str) -> str:
    """Check that the page says why and what to do; return the failed action, if there is one."""
    assert answer["status"] == 200
    [box] = [
        element
        for element in html5lib.parse(answer["text"], namespaceHTMLElements=False).iter()
        if element.attrib.get("aria-labelledby") == "stopped"
    ]
    lines = [" ".join("".join(line.itertext()).split()) for line in box.iter("p")]
    [at] = [at for at, line in enumerate(lines) if reason in line]
    assert "[Errno" not in lines[at]
    # An error about saving contains its own hint.
    assert lines[at + 1 :] or "then continue again" in lines[at], lines
    return "".join(lines[:at])
