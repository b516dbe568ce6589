"""Text from a form appears in files and commands only as the value that was meant."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from flask.testing import FlaskClient
from hypothesis import strategies as st

from platform_common.records.secrets_env import parse
from tests.fuzz.conftest import Fuzz
from tests.support.apply_setups import FULL, answer, started, wizard_of
from tests.support.catalogues import PLACE, of_each_kind
from tests.support.memory import in_memory
from tests.support.rclone_program import dump
from tests.support.systemd_environment import read_by_systemd
from wizard_app.setup import answers_file
from wizard_app.setup.plan.actions import AddKeys, RunCommand, SetVariables, WriteFile
from wizard_app.setup.plan.plan import build_plan
from wizard_app.setup.steps import STEPS

NASTY = (
    *("\n", "\r", "\r\n", "\n[evil]\ntype = local\n", "\nEVIL=1\n", "\nPermitRootLogin yes\n"),
    *('"', "'", "`", "\\", "\\n", "[", "]", "[x]", "{", "}", "(", ")", "<b>", ";", "#", "&", "|"),
    *("$(reboot)", "${HOME}", "$x", "`reboot`", "%n", "%i", "%h", "%%", "%(type)s", "%(", "="),
    *("\0", "\x1b[31m", "\x7f", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\u202e", "\ufeff"),
    *("\ud800", " ", "\t", "\xa0", "é", "／", "../", "/../..", "/etc/passwd", "-", "--evil=1"),
    *("-H", 'command="x" ', "cert-authority ", "ssh-rsa AAAA evil", "\nssh-rsa AAAA evil", "*"),
    *("?", "~"),
)


class TypedForm(NamedTuple):
    """A form of a step, and the names of its typed fields."""

    slug: str
    typed: str
    fields: Mapping[str, str]


def _form(slug: str, typed: str, **fields: str) -> TypedForm:
    return TypedForm(slug, typed, fields)


def _store(letter: str, **fields: str) -> TypedForm:
    typed = {**fields, f"{letter}_bucket": "box"}
    return TypedForm("backup", " ".join(typed), {"kind": f"store_{letter}", **typed})


_OWN = {"api_key": "sk-1", "endpoint": "http://10.0.0.1/v1", "model": "m"}
_CLOUD = {"api_key": "AKIA1", "secret_access_key": "sk", "region": "eu-west-1"}
_CREDENTIALS = str(FULL["tunnel"]["credentials"])
_provider = partial(_form, "provider", skip_validation="1")
FORMS = {
    "system": _form("system", "hostname timezone", hostname="box", timezone="UTC"),
    "profile": _form("profile", "profile", profile="openclaw"),
    "key": _provider("provider api_key", provider="chat-compatible", api_key="sk-1"),
    "own": _provider("endpoint model api_key", provider="own", **_OWN),
    "cloud": _provider("api_key secret_access_key region model", provider="signed-cloud", **_CLOUD),
    "local": _provider("api_key model", provider="local", api_key="http://10.0.0.1:8080/v1"),
    "channels": _form("channels", "channels", channels="telegram"),
    "ssh": _form("ssh", "ssh_keys fetched", ssh_keys=str(FULL["ssh"]["ssh_keys"])),
    "mesh-vpn": _form("mesh-vpn", "authkey", authkey="tskey-0123456789"),
    "tunnel": _form("tunnel", "credentials choice", choice="named", credentials=_CREDENTIALS),
    "store_a": _store("a", a_account_id="a0", a_application_key="K0"),
    "store_b": _store("b", b_account_id="a0", b_access_key="A0", b_secret_key="S0"),
    "store_c": _store(
        "c", c_endpoint="https://s3.example.com", c_access_key="A0", c_secret_key="S0"
    ),
}
FIELDS = [(name, field) for name, form in FORMS.items() for field in form.typed.split()]
_UNIT = re.compile(r"[a-z0-9-]+\.service")
_KEY_LINE = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+=*(?: [^\0-\x1f\x7f]*)?")
_RULE_PORTS = re.compile(r"    (?:tcp|udp) dport \{ [0-9]+(?:, [0-9]+)* \} accept")
_GUARDS = {"FIRST": "1", "LAST": "2"}
_ORDER = {
    "b2": ["type", "account", "key"],
    "s3": ["type", "provider", "access_key_id", "secret_access_key", "endpoint", "acl"],
}


class Box:
    """A device with all answers, which are changed again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        catalogue = folder / "out" / PLACE.lstrip("/")
        catalogue.parent.mkdir(parents=True)
        catalogue.write_text(json.dumps({"providers": of_each_kind("https://api.example.com/v1")}))
        self.client: FlaskClient = started(folder / "out")
        answer(self.client, {**FULL, "provider": FORMS["key"].fields})
        self._rules = self._file("/etc/nftables.d/platform.nft").splitlines()
        self.stores: dict[str, dict[str, str]] = {}
        self._read: set[bytes] = set()
        # The variables that every program of this machine gets.
        self._of_system = (read_by_systemd(folder, b"") or {}).keys()

    def send(self, form: str, field: str, value: str) -> bool:
        """Send a form with another value in one field; return whether it was accepted."""
        slug, _, fields = FORMS[form]
        taken = self.client.post(
            f"/wizard/{slug}", data={**fields, field: value.encode("utf-8", "surrogatepass")}
        )
        assert taken.status_code in (200, 302, 400, 409, 422), (form, field, value)
        return taken.status_code == 302

    def check(self, form: str) -> None:
        """Check that files and commands for a form contain what was meant, and nothing else."""
        snapshot = wizard_of(self.client).snapshot()
        for _, action in snapshot.actions(snapshot.steps[FORMS[form].slug]):
            match action:
                case WriteFile():
                    self._check_file(action.path, action.reveal().decode())
                case SetVariables():
                    self._check_keys(action)
                case AddKeys():
                    assert all(_KEY_LINE.fullmatch(line) for line in action.lines)
                case RunCommand():
                    self._check_command(action.argv)
                    if action.key_file is not None:
                        _assert_one_word(action.key_file.secret.reveal())

    def _answers(self) -> dict[str, Any]:
        saved = answers_file.render(wizard_of(self.client).state.answers, STEPS)
        answers: dict[str, Any] = json.loads(saved)["answers"]
        return answers

    def _file(self, path: str) -> str:
        plan = build_plan(wizard_of(self.client).snapshot())
        [file] = [one.action for one in plan if one.action.shown.get("path") == path]
        assert isinstance(file, WriteFile)
        return file.reveal().decode()

    def _check_file(self, path: str, text: str) -> None:
        answers = self._answers()
        lines = {
            "/etc/hostname": "hostname",
            "/etc/timezone": "timezone",
            "/etc/platform/active-profile": "profile",
            "/etc/platform/active-provider": "provider",
            "/etc/platform/active-model": "model",
            "/etc/platform/active-endpoint": "endpoint",
        }
        match path:
            case "/etc/platform/rclone.conf":
                self._check_store(text)
            case "/etc/platform/backup.toml":
                remote = f"backup:{answers['backup_meta']['bucket']}"
                assert tomllib.loads(text) == {"remote": remote}
            case "/etc/platform/tunnel/credentials.json":
                assert json.loads(text)["TunnelName"] == answers["tunnel_name"]
            case "/etc/nftables.d/platform.nft":
                others = [line for line in text.splitlines() if not _RULE_PORTS.fullmatch(line)]
                assert others == [one for one in self._rules if not _RULE_PORTS.fullmatch(one)]
            case _:
                assert text == f"{answers[lines[path]]}\n"
                _assert_one_word(text.removesuffix("\n"))

    def _check_store(self, text: str) -> None:
        head, *lines = text.removesuffix("\n").split("\n")
        pairs = [line.partition(" = ")[::2] for line in lines]
        values = dict(pairs)
        assert head == "[backup]"
        assert [name for name, _ in pairs] == _ORDER[values["type"]]
        for value in values.values():
            _assert_one_word(value)
            assert value[0] not in "\"'`"
            assert "%(" not in value
        self.stores[f"s{len(self.stores)}"] = values

    def _check_keys(self, action: SetVariables) -> None:
        keys = parse(b"FIRST=1\nLAST=2\n")
        wanted = dict(_GUARDS)
        for name, secret in action.values.items():
            keys = keys.with_value(name, secret)
            wanted[name] = secret.reveal()
        data = keys.render()
        if data not in self._read:
            read = read_by_systemd(self.folder, data)
            assert read is not None
            ours = {name.decode(): read[name].decode() for name in read.keys() - self._of_system}
            assert ours == wanted
            self._read.add(data)

    def _check_command(self, argv: tuple[str, ...]) -> None:
        match argv:
            case ("hostnamectl", "set-hostname", "--static", name):
                assert re.fullmatch(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", name)
            case ("timedatectl", "set-timezone", zone):
                assert re.fullmatch(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*", zone)
                assert not zone.startswith("-")
            case ("tailscale", "up", file, "--timeout=30s", "--reset"):
                assert file == "--auth-key=file:/run/platform/mesh-vpn.key"
            case ("nft", "-f", file):
                assert file == "/etc/nftables.d/platform.nft"
            case ("systemctl", "enable" | "disable", "--now", unit):
                assert _UNIT.fullmatch(unit)
            case ("systemctl", "restart", unit):
                assert _UNIT.fullmatch(unit)
            case _:
                raise AssertionError(argv)


def _assert_one_word(value: str) -> None:
    """Check that no reader can take the value for more than one word."""
    assert value
    assert value.isprintable()
    assert value == value.strip()


@pytest.fixture
def box() -> Iterator[Box]:
    # In memory, because each accepted form is synced to the disk.
    with in_memory() as folder:
        yield Box(folder)


def _send_nasty_texts(fuzz: Fuzz, box: Box, form: str, field: str) -> str:
    """Send a form with each nasty text in a field and check the result; return the good value."""
    good = FORMS[form].fields.get(field, "")
    for nasty in fuzz.some(NASTY):
        for value in (f"{nasty}{good}", f"{good}{nasty}{good}"):
            if box.send(form, field, value):
                box.check(form)
    return good


def test_env_06_and_07_rclone_reads_what_was_typed_in_any_field(
    fuzz: Fuzz, box: Box, tmp_path: Path
) -> None:
    for form, field in FIELDS:
        if form.startswith("store"):
            _send_nasty_texts(fuzz, box, form, field)
    config = tmp_path / "rclone.conf"
    sections = (
        "\n".join([f"[{name}]", *(f"{key} = {value}" for key, value in values.items())])
        for name, values in box.stores.items()
    )
    config.write_text("\n".join(sections) + "\n")
    assert len(box.stores) > len(fuzz.some(NASTY))
    assert dump(config) == box.stores


@pytest.mark.parametrize(
    ("form", "field"), [one for one in FIELDS if not one[0].startswith("store")]
)
def test_env_01_to_03_and_ssh_02_no_unintended_line_option_or_argument_appears(
    fuzz: Fuzz, box: Box, form: str, field: str
) -> None:
    box.check(form)
    good = _send_nasty_texts(fuzz, box, form, field)
    assert box.send(form, field, good) or not good


def test_any_mixture_of_nasty_texts_in_any_field_is_refused_or_taken_literally(
    fuzz: Fuzz, box: Box
) -> None:
    pieces = st.sampled_from([*NASTY, "a", "1", "box", "/", ".", ":"])

    @fuzz(400, st.sampled_from(FIELDS), st.lists(pieces, max_size=6), st.booleans())
    def check(place: tuple[str, str], parts: list[str], begin: bool) -> None:
        form, field = place
        good = FORMS[form].fields.get(field, "") if begin else ""
        if box.send(form, field, good + "".join(parts)):
            box.check(form)
