"""The result of setup, to the byte (docs/reference/setting-up.md).

Written from the documents alone: forms are sent over HTTP, and files and commands are compared with
the documents.
"""

from __future__ import annotations

import itertools
import json
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interop.conftest import Running
from tests.support import wizard_states
from tests.support.devices import Device
from tests.support.setups import STATE
from tests.support.wizard_visits import SIMPLE, Forms, visitor_of

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@home"
ECDSA = (
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxk"
    "Zd7dlXlDtb/d0vQdNt2IDKu9vNtnuuJq4L2Sj0IyrwqLh1fWMn0zcIZ2s0IiPHjQ4fM5pVs="
)
CREDENTIALS = '{"AccountTag": "a1", "TunnelSecret": "c2VjcmV0", "TunnelName": "kitchen"}'
STORE_A = """\
[backup]
type = b2
account = 0012ab
key = K001/x+y=
"""
STORE_B = """\
[backup]
type = s3
provider = Cloudflare
access_key_id = 0aB
secret_access_key = 9zY
endpoint = https://acc-0.r2.cloudflarestorage.com
acl = private
"""
STORE_C = """\
[backup]
type = s3
provider = Other
access_key_id = AK#;=[x]
secret_access_key = %s/+=$x
endpoint = https://s3.example.com/a/b
acl = private
"""
FORMS = {**SIMPLE, "ssh": [("ssh_keys", ED25519)]}
# A file's mode and its text.
Files = Mapping[str, tuple[int, str]]
SIMPLE_FILES: Files = {
    "etc/hostname": (0o644, "kitchen\n"),
    "etc/timezone": (0o644, "Europe/Berlin\n"),
    "etc/platform/active-profile": (0o644, "openclaw\n"),
    "etc/platform/active-provider": (0o644, "openai\n"),
    "etc/platform/secrets.env": (0o640, "OPENAI_API_KEY=sk-1\n"),
    "home/agent/.ssh/authorized_keys": (0o600, f"{ED25519}\n"),
}


def named(host: str, zone: str) -> list[list[str]]:
    """The commands that set the name and the time zone of a device."""
    return [
        ["hostnamectl", "set-hostname", "--static", host],
        ["timedatectl", "set-timezone", zone],
    ]


NAMED = named("kitchen", "Europe/Berlin")
KEY_FILE = "file:/run/platform/mesh-vpn.key"
JOINED = [["tailscale", "up", f"--auth-key={KEY_FILE}", "--timeout=30s", "--reset"]]
OPENED = [["systemctl", "enable", "--now", "platform-tunnel.service"]]
GUARDED = [["nft", "-f", "/etc/nftables.d/platform.nft"]]
RULES = """\
# What may reach this device; made by the setup, which replaces it.
table inet platform
delete table inet platform
table inet platform {{
  chain input {{
    type filter hook input priority 0; policy drop;
    iif "lo" accept
    ct state established,related accept
    ct state invalid drop
    meta l4proto {{ 1, 2, 58 }} accept
    # DHCP, of IPv4 and of IPv6, and the names that end in .local.
    udp sport 67 udp dport 68 accept
    udp sport 547 udp dport 546 accept
    udp dport 5353 accept
    tcp dport {{ {ports} }} accept
  }}
}}
"""


def started(profile: str) -> list[list[str]]:
    """The commands that start a gateway."""
    unit = f"{profile}-gateway.service"
    return [["systemctl", "enable", "--now", unit], ["systemctl", "restart", unit]]


class Case(NamedTuple):
    """Answers that differ from the simple ones, and their effect."""

    forms: Forms
    files: Files
    # The commands between those that set the name and those that start the gateway.
    commands: Sequence[Sequence[str]] = GUARDED
    profile: str = "openclaw"
    named: Sequence[Sequence[str]] = NAMED
    ports: frozenset[int] = frozenset()
    offline: bool = False


def chosen(provider: str, keys: str, **fields: str) -> Case:
    """A provider with its key: `keys` are the lines of secrets.env."""
    form = {"provider": provider, "skip_validation": "1", **fields}
    files = {
        "etc/platform/active-provider": (0o644, f"{provider}\n"),
        "etc/platform/secrets.env": (0o640, keys),
    }
    for name in ("model", "endpoint"):
        if name in fields:
            files[f"etc/platform/active-{name}"] = (0o644, f"{fields[name]}\n")
    return Case({"provider": list(form.items())}, files, offline=provider.startswith("local-"))


CASES = {
    "nothing-optional": Case({"ssh": []}, {}),
    "everything": Case(
        {
            "system": [("hostname", "a-9"), ("timezone", "America/Argentina/Buenos_Aires")],
            "profile": [("profile", "khoj")],
            "provider": [
                *(("provider", "openrouter"), ("api_key", " sk-or-v1-A=b#c$d%e&f; ")),
                *(("model", "anthropic/claude-sonnet-4.6:beta"), ("skip_validation", "1")),
            ],
            "channels": [("channels", "whatsapp-twilio"), ("channels", "web")],
            "ssh": [("ssh_keys", f"{ED25519}\r\n\r\n{ECDSA}\r\n{ED25519}\r\n")],
            "mesh-vpn": [("authkey", "tskey-auth-1234")],
            "tunnel": [("choice", "named"), ("credentials", CREDENTIALS)],
            "backup": [
                *(("kind", "store_c"), ("c_endpoint", "https://s3.example.com/a/b")),
                *(("c_access_key", "AK#;=[x]"), ("c_secret_key", "%s/+=$x")),
                ("c_bucket", "my.backups"),
            ],
        },
        {
            "etc/hostname": (0o644, "a-9\n"),
            "etc/timezone": (0o644, "America/Argentina/Buenos_Aires\n"),
            "etc/platform/active-profile": (0o644, "khoj\n"),
            "etc/platform/active-provider": (0o644, "openrouter\n"),
            "etc/platform/active-model": (0o644, "anthropic/claude-sonnet-4.6:beta\n"),
            "etc/platform/secrets.env": (0o640, "OPENROUTER_API_KEY=sk-or-v1-A=b#c$d%e&f;\n"),
            "etc/platform/rclone.conf": (0o640, STORE_C),
            "etc/platform/backup.toml": (0o644, 'remote = "backup:my.backups"\n'),
            "etc/platform/tunnel/credentials.json": (0o600, CREDENTIALS),
            "home/agent/.ssh/authorized_keys": (0o600, f"{ED25519}\n{ECDSA}\n"),
        },
        [*JOINED, *OPENED, *GUARDED],
        "khoj",
        named("a-9", "America/Argentina/Buenos_Aires"),
        frozenset({443}),
    ),
    "store-a-and-a-quick-tunnel": Case(
        {
            "profile": [("profile", "hermes")],
            "channels": [("channels", "twilio-sms"), ("channels", "telegram")],
            "tunnel": [("choice", "quick")],
            "backup": [
                *(("kind", "store_a"), ("a_account_id", "0012ab"), ("a_bucket", "kitchen-bk")),
                ("a_application_key", "K001/x+y="),
            ],
        },
        {
            "etc/platform/active-profile": (0o644, "hermes\n"),
            "etc/platform/rclone.conf": (0o640, STORE_A),
            "etc/platform/backup.toml": (0o644, 'remote = "backup:kitchen-bk"\n'),
        },
        [*OPENED, *GUARDED],
        "hermes",
        ports=frozenset({443}),
    ),
    "store-b-and-the-mesh": Case(
        {
            "mesh-vpn": [("authkey", "12345678")],
            "backup": [
                *(("kind", "store_b"), ("b_account_id", "acc-0"), ("b_bucket", "kitchen")),
                *(("b_access_key", "0aB"), ("b_secret_key", "9zY")),
            ],
        },
        {
            "etc/platform/rclone.conf": (0o640, STORE_B),
            "etc/platform/backup.toml": (0o644, 'remote = "backup:kitchen"\n'),
        },
        [*JOINED, *GUARDED],
    ),
    "signed-cloud": chosen(
        "bedrock",
        "AWS_ACCESS_KEY_ID=AKIA0\nAWS_SECRET_ACCESS_KEY=s/e+c\nAWS_REGION=eu-west-1\n",
        api_key="AKIA0",
        secret_access_key="s/e+c",
        region="eu-west-1",
    ),
    "own-endpoint-and-model": chosen(
        "custom",
        "CUSTOM_OPENAI_API_KEY=any\n",
        api_key="any",
        endpoint="http://10.0.0.7:8000/v1",
        model="org/model",
    ),
    "hosted-inference": chosen(
        "huggingface", "HUGGINGFACE_API_KEY=hf_1\n", api_key="hf_1", model="a/b"
    ),
    "a-model-on-the-device": chosen(
        "local-ollama",
        "LOCAL_OLLAMA_BASE_URL=http://127.0.0.1:11434/v1\n",
        api_key="http://127.0.0.1:11434/v1",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_files_and_commands_match_the_contract(
    case: Case, device: Device, out: Path, running: Running
) -> None:
    if case.offline:
        device.put("/etc/platform/airgap.flag", "")
    with running() as app:
        visitor_of(app).set_up(FORMS | dict(case.forms))
    # The wizard's own port stays open, too.
    ports = ", ".join(map(str, sorted({22, 8088, 8089, app.port, *case.ports})))
    wanted = dict(SIMPLE_FILES) | {
        "etc/nftables.d/platform.nft": (0o644, RULES.format(ports=ports))
    }
    if not list(case.forms.get("ssh", "x")):
        del wanted["home/agent/.ssh/authorized_keys"]
    assert written(out) == wanted | dict(case.files)
    lines = (out / "commands.jsonl").read_text().splitlines()
    assert [json.loads(line)["argv"] for line in lines] == [
        *(*case.named, *case.commands, *started(case.profile))
    ]
    if "home/agent/.ssh/authorized_keys" in wanted:
        assert stat.S_IMODE((out / "home/agent/.ssh").stat().st_mode) == 0o700
    state = json.loads((out / "var/lib/platform/wizard-state.json").read_bytes())
    assert state["step"] == "done"
    assert state["completed_at"]


def written(out: Path) -> dict[str, tuple[int, str]]:
    """Mode and text of the files on a device, without its own records and locks."""
    return {
        str(path.relative_to(out)): (stat.S_IMODE(path.stat().st_mode), path.read_text())
        for path in sorted(out.rglob("*"))
        if path.is_file()
        and not path.name.endswith(".lock")
        and path.name != "commands.jsonl"
        and path.parent != out / "var/lib/platform"
    }


# The forms themselves: each valid form and where it redirects, and the invalid ones


TOKEN = "5f" * 32


def pairs(form: wizard_states.Fields) -> list[tuple[str, str]]:
    """The fields of a form, as they are sent."""
    lists = {name: [text] if isinstance(text, str) else text for name, text in form.items()}
    return [(name, text) for name, texts in lists.items() for text in texts]


def test_the_forms_of_the_spec_lead_from_the_link_to_the_review_page(
    tmp_path: Path, out: Path, running: Running
) -> None:
    with running(WIZARD_TOKEN=TOKEN, WIZARD_NO_TOKEN="") as app:
        here = visitor_of(app)
        assert here.ask("/").status == 401
        entered = here.ask(f"/?token={TOKEN}")
        assert (entered.status, entered.location) == (302, "/wizard/system")
        assert visitor_of(app).ask(f"/?token={TOKEN}").status == 401
        for slug, wrong in wizard_states.REFUSED.items():
            for fields in wrong.values():
                refused = here.ask(f"/wizard/{slug}", pairs(fields))
                assert (slug, refused.status) == (slug, 200)
                assert '<div class="error">' in refused.body
        for slug, onward in itertools.pairwise((*wizard_states.STEPS, "review")):
            taken = here.ask(f"/wizard/{slug}", pairs(wizard_states.ANSWERS[slug]))
            assert (slug, taken.status, taken.location) == (slug, 302, f"/wizard/{onward}")
            assert here.ask("/wizard").location == f"/wizard/{onward}"
        shown = [here.ask(f"/wizard/{slug}") for slug in (*wizard_states.STEPS, "review")]
        assert {page.status for page in shown} == {200}
        assert not any("CaNaRy" in page.body for page in shown)
    stored = json.loads((out / "var/lib/platform/wizard-state.json").read_bytes())
    assert (stored["step"], stored["completed_at"]) == ("review", None)
    account = wizard_states.ANSWERS["backup"]["b_account_id"]
    endpoint = f"https://{account}.r2.cloudflarestorage.com"
    store = {"account_id": account, "bucket": "kitchen-backup", "endpoint": endpoint}
    wanted = {**STATE["answers"], "backup_kind": "store_b", "backup_meta": store}
    assert stored["answers"] == wanted
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in kept if b"CaNaRy" in path.read_bytes()] == []
