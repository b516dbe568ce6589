"""Backups after setup, as the real `rclone` reads and uses the settings."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from platform_common.paths import Paths
from tests.interop.b2_server import B2, b2_server
from tests.support import rclone_program
from tests.support.object_store import ObjectStore
from tests.support.properties import examples
from tests.support.wizard_visits import SIMPLE
from tests.wizard_app.conftest import MakeWizard
from wizard_app.setup.apply.command_runners import recorded
from wizard_app.setup.apply.executor import execute
from wizard_app.setup.plan.plan import build_plan

pytestmark = pytest.mark.long

OTHER_STEPS = {slug: dict(fields) for slug, fields in SIMPLE.items() if slug != "backup"}
# The symbols of a key: printable ASCII without blanks, quotes, backslashes and back-ticks. `%(` is
# excluded, because rclone gives it a meaning.
KEYS = st.text(
    [chr(code) for code in range(0x21, 0x7F) if chr(code) not in "\"'\\`"], min_size=1, max_size=80
).filter(lambda key: "%(" not in key)
PLAIN = st.text("abcXYZ019-", min_size=1, max_size=20).map(lambda name: f"a{name}z")
ODD_KEYS = ["#", ";", "=", "[backup]", "%%", "%s", "$HOME", "${X}", "~", "-", "--", "a=b", "!", ","]
ADDRESSES = ["https://s3.example.com", "http://10.0.0.1:9000", "https://[fd00::1]:9000/a/b.c~d"]
Answers = Mapping[str, str]
SetUp = Callable[[Answers], Path]


@pytest.fixture
def answered(wizard: MakeWizard) -> FlaskClient:
    """A client of a wizard with all answers except where backups go."""
    client = wizard()
    for slug, form in OTHER_STEPS.items():
        assert client.post(f"/wizard/{slug}", data=form).status_code == 302, slug
    return client


@pytest.fixture
def applied(answered: FlaskClient, out: Path) -> SetUp:
    """Set up a device with answers about backups; return its `/etc/platform`."""

    def apply(answers: Answers) -> Path:
        assert answered.post("/wizard/backup", data=answers).status_code == 302
        done = answered.post("/wizard/review/apply")
        assert done.location == "/wizard/done", done.text
        return out / "etc/platform"

    return apply


def remote_of(device: Path) -> str:
    """The place of the backups, from the record of the device."""
    remote: str = tomllib.loads((device / "backup.toml").read_text())["remote"]
    return remote


def assert_backs_up(device: Path, folder: Path, variables: Mapping[str, str] | None = None) -> None:
    """Copy files to the store, compare them there, and read one back."""
    folder.mkdir(exist_ok=True)
    (folder / "notes.txt").write_text("what was noted\n")
    (folder / "large.bin").write_bytes(bytes(range(256)) * 2000)
    config, remote = device / "rclone.conf", remote_of(device)

    def rclone(*words: str | Path) -> str:
        return rclone_program.run(config, *words, variables=variables or {})

    rclone("copy", folder, remote)
    rclone("check", folder, remote)
    assert rclone("cat", f"{remote}/notes.txt") == "what was noted\n"
    assert rclone("lsf", remote).split() == ["large.bin", "notes.txt"]


# What it reads


def expected(answers: Answers) -> dict[str, str]:
    """The section of an rclone.conf for a form (docs/reference/setting-up.md)."""
    letter = answers["kind"][-1]
    said = {name.removeprefix(f"{letter}_"): text for name, text in answers.items()}
    if letter == "a":
        return {"type": "b2", "account": said["account_id"], "key": said["application_key"]}
    store = {"provider": "Other", "endpoint": said.get("endpoint", "")}
    if letter == "b":
        endpoint = f"https://{said['account_id']}.r2.cloudflarestorage.com"
        store = {"provider": "Cloudflare", "endpoint": endpoint}
    keys = {"access_key_id": said["access_key"], "secret_access_key": said["secret_key"]}
    return {"type": "s3", "acl": "private", **keys, **store}


def answers(kind: str, **fields: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, str]]:
    """Answers for a kind of store; `fields` are named without the letter of the store."""
    named = {f"{kind[-1]}_{name}": drawn for name, drawn in fields.items()}
    return st.fixed_dictionaries({"kind": st.just(kind), **named})


ANY_KEY = st.one_of(KEYS, st.sampled_from(ODD_KEYS))
KINDS = st.one_of(
    answers("store_a", account_id=PLAIN, application_key=KEYS, bucket=PLAIN),
    answers(
        "store_b",
        account_id=PLAIN,
        access_key=KEYS,
        secret_key=KEYS,
        bucket=st.just("kitchen"),
    ),
    answers(
        "store_c",
        endpoint=st.sampled_from(ADDRESSES),
        access_key=ANY_KEY,
        secret_key=ANY_KEY,
        bucket=PLAIN,
    ),
)


def read_after(answered: FlaskClient, answers: Answers) -> dict[str, dict[str, str]]:
    """Apply these answers about backups; return what rclone reads."""
    assert answered.post("/wizard/backup", data=answers).status_code == 302
    plan = build_plan(answered.application.extensions["wizard_app"].snapshot())
    with tempfile.TemporaryDirectory() as folder:
        device = Paths(Path(folder), {})
        execute(plan, device, recorded(Path(folder, "commands.jsonl")), setup="a")
        return rclone_program.dump(Path(folder, "etc/platform/rclone.conf"))


@settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(answers=KINDS)
def test_env_06_rclone_reads_exactly_what_was_entered(
    answered: FlaskClient, answers: dict[str, str]
) -> None:
    assert read_after(answered, answers) == {"backup": expected(answers)}


@pytest.mark.parametrize("key", ODD_KEYS)
def test_env_06_and_env_07_an_odd_key_is_read_unchanged(answered: FlaskClient, key: str) -> None:
    answers = {"kind": "store_c", "c_endpoint": "https://s3.example.com", "c_bucket": "kitchen"}
    answers |= {"c_access_key": key, "c_secret_key": f"{key}{key}"}
    assert read_after(answered, answers) == {"backup": expected(answers)}


# What it does with the settings


def store_c(s3: ObjectStore, bucket: str, **other: str) -> Answers:
    return {
        "kind": "store_c",
        "c_endpoint": f"http://127.0.0.1:{s3.port}",
        "c_bucket": bucket,
        "c_access_key": s3.access_key,
        "c_secret_key": s3.secret_key,
        **other,
    }


def test_rclone_backs_up_to_store_c_with_the_written_settings(
    applied: SetUp, s3: ObjectStore, tmp_path: Path
) -> None:
    device = applied(store_c(s3, "kitchen-c"))
    rclone_program.run(device / "rclone.conf", "mkdir", remote_of(device))
    assert_backs_up(device, tmp_path / "data")


@pytest.mark.parametrize("wrong", [{"c_secret_key": "another"}, {"c_access_key": "no:body"}])
def test_a_store_refuses_a_wrong_key(
    applied: SetUp, s3: ObjectStore, wrong: dict[str, str]
) -> None:
    device = applied(store_c(s3, "kitchen-c", **wrong))
    done = rclone_program.call(device / "rclone.conf", "mkdir", remote_of(device))
    assert done.returncode != 0
    assert "403" in done.stderr


def test_rclone_backs_up_to_store_b_at_a_local_address(
    applied: SetUp, s3: ObjectStore, tmp_path: Path
) -> None:
    keys = {"b_access_key": s3.access_key, "b_secret_key": s3.secret_key}
    device = applied({"kind": "store_b", "b_account_id": "acct0", "b_bucket": "kitchen-b", **keys})
    here = {"RCLONE_CONFIG_BACKUP_ENDPOINT": f"http://127.0.0.1:{s3.port}"}
    rclone_program.run(device / "rclone.conf", "mkdir", remote_of(device), variables=here)
    assert_backs_up(device, tmp_path / "data", here)


def test_rclone_logs_in_to_store_a_with_the_unchanged_key(applied: SetUp) -> None:
    with b2_server(B2("0012ab", "K001#secret;with=odd%chars,&[x]", "kitchen-a")) as store:
        names = {"a_account_id": store.account, "a_bucket": store.bucket}
        device = applied({"kind": "store_a", **names, "a_application_key": store.key})
        here, remote = {"RCLONE_B2_ENDPOINT": store.url}, remote_of(device)
        listed = rclone_program.run(device / "rclone.conf", "lsf", remote, variables=here)
    assert listed == "notes.txt\n"
    assert set(store.asked) == {f"{store.account}:{store.key}"}
