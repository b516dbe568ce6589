"""`platformctl limits`."""

from __future__ import annotations

import json

from platform_common.resources import data_path
from tests.support.devices import Device


def test_the_answer_is_the_record_with_its_unknown_members(device: Device) -> None:
    record = json.loads(data_path("limits/vultr.json").read_text())
    record |= {"_comment": "x", "gpu": {"cores": [1, 2]}}
    record["capabilities"]["teleport"] = True
    device.put("/etc/platform/limits.json", json.dumps(record))
    ended = device.call("limits", "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == record


def test_a_machine_without_limits_gets_those_of_the_emulated_target_and_says_so(
    device: Device,
) -> None:
    assert json.loads(device.call("limits", "--json").stdout)["target"] == "qemu-x86_64"
    assert "these are the shipped ones" in device.call("limits").stdout


def test_the_text_for_people_lists_abilities_limitations_and_remedies(device: Device) -> None:
    device.put("/etc/platform/limits.json", data_path("limits/fly-machines.json").read_bytes())
    ended = device.call("limits")
    assert ended.returncode == 0
    text = ended.stdout
    assert "Device   fly-machines\nTier     low\nMemory   2,048 MB (low)\n" in text
    assert "  + telegram\n  + slack\n" in text
    assert (
        "  - Everything that is not on a volume is lost at a restart.  ephemeral-storage\n"
        "    Attach" in text
    )
    assert text.endswith("  - discord\n  - whatsapp-cloud-webhook\n  - matrix\n")


def test_lines_of_shipped_limits_fit_a_wide_terminal() -> None:
    for file in data_path("limits").iterdir():
        for one in json.loads(file.read_text())["limitations"]:
            assert len(f"  - {one['reason']}  {one['id']}") <= 132
            assert len(f"    {one['unblock']}") <= 100


def test_text_from_the_record_is_escaped(device: Device) -> None:
    record = json.loads(data_path("limits/vultr.json").read_text())
    record["target"] = record["cloud"] = "\x1b[2Jx\u202e"
    record["limitations"][0] = dict.fromkeys(("id", "reason", "unblock"), "\x1b]0;x\x07")
    record["capabilities"]["channels_disabled_by_ram"] = ["\x9b31m"]
    device.put("/etc/platform/limits.json", json.dumps(record))
    text = device.call("limits").stdout
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "\\x1b[2Jx" in text
