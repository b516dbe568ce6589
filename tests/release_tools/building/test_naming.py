"""File names of artefacts: how they are read, and which are refused."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_common.errors import PlatformError
from platform_common.resources import data_path
from release_tools.building.naming import (
    ArtefactName,
    NamingError,
    parse_name,
    profile_ids,
    target_matrix,
)
from release_tools.manifest.calver import CalVer
from release_tools.manifest.vocabulary import CHANNELS, FORMATS
from tests.support.properties import examples

PROFILES = ("hermes", "khoj", "openclaw")
TARGETS = {"rpi5": "img.xz", "qemu-x86_64": "qcow2", "wsl2": "tar.gz", "fly-machines": "oci"}


def read(
    filename: str,
    *,
    version: str = "2026.11.1",
    channel: str = "stable",
    profiles: Sequence[str] = PROFILES,
    targets: Mapping[str, str] = TARGETS,
) -> ArtefactName:
    release: dict[str, Any] = {"version": CalVer.parse(version), "channel": channel}
    return parse_name(filename, **release, profiles=profiles, targets=targets)


# Names.


@pytest.mark.parametrize(
    ("filename", "profile", "target"),
    [
        ("platform-khoj-rpi5-2026.11.1-stable.img.xz", "khoj", "rpi5"),
        ("platform-openclaw-qemu-x86_64-2026.11.1-stable.qcow2", "openclaw", "qemu-x86_64"),
        ("platform-hermes-fly-machines-2026.11.1-stable.oci", "hermes", "fly-machines"),
        ("platform-khoj-wsl2-2026.11.1-stable.tar.gz", "khoj", "wsl2"),
    ],
)
def test_a_name_is_read_from_the_right(filename: str, profile: str, target: str) -> None:
    name = read(filename)
    assert (name.profile, name.target, name.format) == (profile, target, TARGETS[target])


@pytest.mark.parametrize(
    ("filename", "sentence"),
    [
        ("README.md", "is not named platform-"),
        ("platform-khoj-rpi5-2026.11.1-stable.iso", "is not named platform-"),
        ("platform-khoj-rpi5-2026.11.1-stable", "is not named platform-"),
        ("Platform-khoj-rpi5-2026.11.1-stable.img.xz", "is not named platform-"),
        ("khoj-rpi5-2026.11.1-stable.img.xz", "is not named platform-"),
        (
            "platform-khoj-rpi5-2026.11.1-nightly.img.xz",
            "does not end in a channel (dev, beta, stable)",
        ),
        ("platform-khoj-rpi5-2026.11.1.img.xz", "does not end in a channel"),
        ("platform-.oci", "does not end in a channel"),
        ("platform-stable.oci", "is not for the version 2026.11.1"),
        ("platform-khoj-rpi5-2026.11.1-beta.img.xz", "channel beta, but this release is for st"),
        ("platform-khoj-rpi5-2026.11.2-stable.img.xz", "is not for the version 2026.11.1"),
        ("platform-khoj-rpi5-2026.11.1-rc1-stable.img.xz", "is not for the version 2026.11.1"),
        ("platform-khoj-rpi5-2026.11.01-stable.img.xz", "is not for the version 2026.11.1"),
        ("platform-khoj-rpi52026.11.1-stable.img.xz", "is not for the version 2026.11.1"),
        ("platform-khoj-rpi9-2026.11.1-stable.img.xz", "profile and target in 'khoj-rpi9'"),
        ("platform-other-rpi5-2026.11.1-stable.img.xz", "no known profile and target"),
        ("platform-khoj-2026.11.1-stable.img.xz", "no known profile and target in 'khoj'"),
        ("platform--2026.11.1-stable.img.xz", "no known profile and target in ''"),
        ("platform-khoj--rpi5-2026.11.1-stable.img.xz", "no known profile and target"),
        ("platform-khoj-rpi5-2026.11.1-stable.qcow2", "but the target rpi5 needs img.xz"),
    ],
)
def test_an_error_names_the_file_and_what_is_wrong(filename: str, sentence: str) -> None:
    with pytest.raises(NamingError) as caught:
        read(filename)
    assert filename in caught.value.message
    assert sentence in caught.value.message


def test_an_unknown_name_is_shown_escaped_with_the_known_ids() -> None:
    with pytest.raises(NamingError) as caught:
        read("platform-\x1b[31m-2026.11.1-stable.oci")
    assert "\x1b" not in caught.value.message
    assert "hermes, khoj, openclaw" in caught.value.hint
    assert "fly-machines, qemu-x86_64, rpi5, wsl2" in caught.value.hint


def test_the_error_for_an_ambiguous_name_shows_both_readings() -> None:
    name = "platform-a-b-c-2026.11.1-stable.oci"
    with pytest.raises(NamingError) as caught:
        read(name, profiles=["a", "a-b"], targets={"b-c": "oci", "c": "oci"})
    assert f"'{name}' can be read in two ways" in caught.value.message
    assert "profile a on target b-c or profile a-b on target c" in caught.value.message


_ids = st.lists(st.sampled_from(["a", "b", "1", "x86_64"]), min_size=1, max_size=3).map("-".join)
_versions = st.sampled_from(["2026.11.1", "2026.1.01-rc1", "2026.1.1-a-dev-b", "2026.1.1-.."])


@examples(80)
@given(
    st.sets(_ids, min_size=1, max_size=4),
    st.dictionaries(_ids, st.sampled_from(FORMATS), min_size=1, max_size=4),
    _versions,
    st.sampled_from(CHANNELS),
    st.data(),
)
def test_a_name_is_read_back_unless_two_splits_exist(
    profiles: set[str], targets: dict[str, str], version: str, channel: str, data: st.DataObject
) -> None:
    profile, target = (data.draw(st.sampled_from(sorted(ids))) for ids in (profiles, targets))
    middle, form = f"{profile}-{target}", targets[target]
    filename = f"platform-{middle}-{version}-{channel}.{form}"
    cuts = [index for index, letter in enumerate(middle) if letter == "-"]
    splits = [cut for cut in cuts if middle[:cut] in profiles and middle[cut + 1 :] in targets]
    two_ways = pytest.raises(NamingError, match="can be read in two ways")
    with contextlib.nullcontext() if len(splits) == 1 else two_ways:
        known: dict[str, Any] = {"profiles": list(profiles), "targets": targets}
        name = read(filename, version=version, channel=channel, **known)
        assert name == ArtefactName(profile, target, form)


# Profiles and targets from files.


def test_profiles_are_the_toml_files_of_a_folder(tmp_path: Path) -> None:
    for name in ("b.toml", "a-1.toml", "notes.txt"):
        (tmp_path / name).touch()
    assert profile_ids(tmp_path) == ["a-1", "b"]
    assert profile_ids(data_path("profiles")) == ["hermes", "khoj", "openclaw"]
    (tmp_path / "empty").mkdir()
    for folder, sentence in (("empty", "holds no profile definition"), ("none", "is not a folder")):
        with pytest.raises(PlatformError, match=sentence):
            profile_ids(tmp_path / folder)


@pytest.mark.parametrize("name", ["-x", ".x", "a b", "ä", "a\nb"], ids=ascii)
def test_an_id_that_cannot_be_part_of_a_name_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.toml").touch()
    with pytest.raises(PlatformError, match="cannot be part of a file name"):
        profile_ids(tmp_path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "has no table"),
        (b"[targets]\n", "has no table"),
        (b"targets = 1\n", "has no table"),
        (b"[targets]\nrpi5 = 'iso'\n", r"\[targets\].rpi5 must be one of img.xz, .*, not 'iso'"),
        (b"[targets]\nrpi5 = 5\n", "must be one of"),
        (b"[targets]\nrpi5 = ['oci']\n", "must be one of"),
        (b"[targets]\n'a/b' = 'oci'\n", "'a/b' cannot be part of a file name"),
        (b"[targets\n", "is not valid TOML"),
        (b"\xff\n", "is not valid TOML"),
        (b"a=" + b"[" * 100_000, "is nested too deeply"),
        (b"#" * ((1 << 20) + 1), "is larger than"),
    ],
    ids=lambda value: ascii(value)[:24],
)
def test_a_bad_target_matrix_is_reported_in_one_sentence(
    tmp_path: Path, text: bytes, sentence: str
) -> None:
    path = tmp_path / "targets.toml"
    path.write_bytes(text)
    with pytest.raises(PlatformError, match=sentence):
        target_matrix(path)
