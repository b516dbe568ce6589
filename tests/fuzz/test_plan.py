"""What is typed into a form is what it says in a file or a command, and never anything more."""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from platform_common.records.secrets_env import parse
from tests.support.apply_setups import FULL, answer, started, wizard_of
from tests.support.catalogues import PLACE, of_each_kind
from tests.support.properties import examples
from tests.support.rclone_program import dump
from tests.support.systemd_environment import read_by_systemd
from wizard_app import importing
from wizard_app.actions import AddKeys, RunCommand, SetVariables, WriteFile
from wizard_app.plan import build_plan
from wizard_app.steps import STEPS

NASTY = (
    *("\n", "\r", "\r\n", "\n[evil]\ntype = local\n", "\nEVIL=1\n", "\nPermitRootLogin yes\n"),
    *('"', "'", "`", "\\", "\\n", "[", "]", "[x]", "{", "}", "(", ")", "<b>", ";", "#", "&", "|"),
    *("$(reboot)", "${HOME}", "$x", "`reboot`", "%n", "%i", "%h", "%%", "%(type)s", "%(", "="),
    *("\0", "\x1b[31m", "\x7f", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\u202e", "\ufeff"),
    *(
        "\ud800",
        " ",
        "\t",
        "\xa0",
        "é",
        "／",
        "../",
        "/../..",
        "/etc/passwd",
        "-",
        "--evil=1",
        "-H",
    ),
    *('command="x" ', "cert-authority ", "ssh-rsa AAAA evil", "\nssh-rsa AAAA evil", "*", "?", "~"),
)
_KIND = "signed-cloud"
# Each form, and those of its fields that somebody types.
FORMS: Mapping[str, tuple[str, Mapping[str, str], tuple[str, ...]]] = {
    "system": ("system", {"hostname": "box", "timezone": "UTC"}, ("hostname", "timezone")),
    "profile": ("profile", {"profile": "openclaw"}, ("profile",)),
    "key": (
        "provider",
        {"provider": "chat-compatible", "api_key": "sk-1", "skip_validation": "1"},
        ("provider", "api_key"),
    ),
    "own": (
        "provider",
        {
            "provider": "own",
            "api_key": "sk-1",
            "endpoint": "http://10.0.0.1/v1",
            "model": "m",
            "skip_validation": "1",
        },
        ("endpoint", "model", "api_key"),
    ),
    "cloud": (
        "provider",
        {
            "provider": _KIND,
            "api_key": "AKIA1",
            "secret_access_key": "sk",
            "region": "eu-west-1",
            "skip_validation": "1",
        },
        ("api_key", "secret_access_key", "region", "model"),
    ),
    "local": (
        "provider",
        {"provider": "local", "api_key": "http://10.0.0.1:8080/v1", "skip_validation": "1"},
        ("api_key", "model"),
    ),
    "channels": ("channels", {"channels": "telegram"}, ("channels",)),
    "ssh": ("ssh", {"ssh_keys": str(FULL["ssh"]["ssh_keys"])}, ("ssh_keys", "fetched")),
    "mesh-vpn": ("mesh-vpn", {"authkey": "tskey-0123456789"}, ("authkey",)),
    "tunnel": (
        "tunnel",
        {"choice": "named", "credentials": str(FULL["tunnel"]["credentials"])},
        ("credentials", "choice"),
    ),
    "store_a": (
        "backup",
        {"kind": "store_a", "a_account_id": "a0", "a_application_key": "K0", "a_bucket": "box"},
        ("a_account_id", "a_application_key", "a_bucket"),
    ),
    "store_b": (
        "backup",
        {
            "kind": "store_b",
            "b_account_id": "a0",
            "b_access_key": "A0",
            "b_secret_key": "S0",
            "b_bucket": "box",
        },
        ("b_account_id", "b_access_key", "b_secret_key", "b_bucket"),
    ),
    "store_c": (
        "backup",
        {
            "kind": "store_c",
            "c_endpoint": "https://s3.example.com",
            "c_access_key": "A0",
            "c_secret_key": "S0",
            "c_bucket": "box",
        },
        ("c_endpoint", "c_access_key", "c_secret_key", "c_bucket"),
    ),
}
FIELDS = [(form, field) for form, (_, _, fields) in FORMS.items() for field in fields]
_UNIT = re.compile(r"[a-z0-9-]+\.service")
_KEY_LINE = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+=*(?: [^\0-\x1f\x7f]*)?")
_RULE_PORTS = re.compile(r"    (?:tcp|udp) dport \{ [0-9]+(?:, [0-9]+)* \} accept")
_GUARDS = {"FIRST": "1", "LAST": "2"}
_ORDER = {
    "b2": ["type", "account", "key"],
    "s3": ["type", "provider", "access_key_id", "secret_access_key", "endpoint", "acl"],
}


class Box:
    """A device to which everything was answered, and is answered anew again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        catalogue = folder / "out" / PLACE.lstrip("/")
        catalogue.parent.mkdir(parents=True)
        catalogue.write_text(json.dumps({"providers": of_each_kind("https://api.example.com/v1")}))
        self.client: FlaskClient = started(folder / "out")
        answer(self.client, {**FULL, "provider": FORMS["key"][1]})
        self._rules = self._file("/etc/nftables.d/platform.nft").splitlines()
        self.stores: dict[str, dict[str, str]] = {}
        self._read: set[bytes] = set()
        # What every program of this machine is told.
        self._of_system = (read_by_systemd(folder, b"") or {}).keys()

    def send(self, form: str, field: str, value: str) -> bool:
        """Send a form with another value in one field; whether it was taken."""
        slug, fields, _ = FORMS[form]
        taken = self.client.post(
            f"/wizard/{slug}", data={**fields, field: value.encode("utf-8", "surrogatepass")}
        )
        assert taken.status_code in (200, 302, 400, 409, 422), (form, field, value)
        return taken.status_code == 302

    def check(self, form: str) -> None:
        """Every file and every command for a form says what was meant, and nothing else."""
        standing = wizard_of(self.client).standing()
        for _, action in standing.actions(standing.steps[FORMS[form][0]]):
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
        saved = importing.render(wizard_of(self.client).state.answers, STEPS)
        answers: dict[str, Any] = json.loads(saved)["answers"]
        return answers

    def _file(self, path: str) -> str:
        plan = build_plan(wizard_of(self.client).standing())
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
            case ("systemctl", ("enable" | "disable"), "--now", unit) | (
                "systemctl",
                "restart",
                unit,
            ):
                assert _UNIT.fullmatch(unit)
            case _:
                raise AssertionError(argv)


def _assert_one_word(value: str) -> None:
    """A value that no reader takes for more than it is."""
    assert value
    assert value.isprintable()
    assert value == value.strip()


@pytest.fixture
def box() -> Iterator[Box]:
    # In memory: each form that is taken is made durable.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Box(Path(folder))


def test_env_06_and_07_what_rclone_reads_is_what_was_typed_in_any_field(
    box: Box, tmp_path: Path
) -> None:
    for form, field in FIELDS:
        if not form.startswith("store"):
            continue
        good = FORMS[form][1][field]
        for nasty in NASTY:
            for value in (f"{nasty}{good}", f"{good}{nasty}{good}"):
                if box.send(form, field, value):
                    box.check(form)
    config = tmp_path / "rclone.conf"
    sections = (
        "\n".join([f"[{name}]", *(f"{key} = {value}" for key, value in values.items())])
        for name, values in box.stores.items()
    )
    config.write_text("\n".join(sections) + "\n")
    assert len(box.stores) > 100
    assert dump(config) == box.stores


@pytest.mark.parametrize(
    ("form", "field"), [one for one in FIELDS if not one[0].startswith("store")]
)
def test_env_01_to_03_and_ssh_02_no_line_option_or_argument_appears_that_was_not_meant(
    box: Box, form: str, field: str
) -> None:
    good = FORMS[form][1].get(field, "")
    box.check(form)
    for nasty in NASTY:
        for value in (f"{nasty}{good}", f"{good}{nasty}{good}"):
            if box.send(form, field, value):
                box.check(form)
    assert box.send(form, field, good) or not good


def test_any_mixture_of_these_in_any_field_is_refused_or_means_itself(box: Box) -> None:
    pieces = st.sampled_from([*NASTY, "a", "1", "box", "/", ".", ":"])

    @examples(400)
    @given(st.sampled_from(FIELDS), st.lists(pieces, max_size=6), st.booleans())
    def check(place: tuple[str, str], parts: list[str], begin: bool) -> None:
        form, field = place
        good = FORMS[form][1].get(field, "") if begin else ""
        if box.send(form, field, good + "".join(parts)):
            box.check(form)

    check()
