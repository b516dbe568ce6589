"""File names of artefacts, and where the URLs of a manifest lead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_common.errors import PlatformError
from platform_common.resources import data_path
from release_tools.calver import CalVer
from release_tools.naming import (
    ArtefactName,
    NamingError,
    WrongReleaseError,
    leaves_tree,
    parse_name,
    profile_ids,
    resolve,
    target_matrix,
)
from release_tools.vocabulary import CHANNELS, FORMATS
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
    return parse_name(
        filename,
        version=CalVer.parse(version),
        channel=channel,
        profiles=profiles,
        targets=targets,
    )


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
    assert str(name) == filename


def test_a_suffix_with_hyphens_and_channel_words_is_read() -> None:
    filename = "platform-khoj-rpi5-2026.11.1-rc-beta-1-dev.img.xz"
    name = read(filename, version="2026.11.1-rc-beta-1", channel="dev")
    assert (name.version.text, name.channel) == ("2026.11.1-rc-beta-1", "dev")


@pytest.mark.parametrize(
    ("filename", "sentence"),
    [
        ("README.md", "is not named platform-"),
        ("platform-khoj-rpi5-2026.11.1-stable.iso", "is not named platform-"),
        ("platform-khoj-rpi5-2026.11.1-stable", "is not named platform-"),
        ("Platform-khoj-rpi5-2026.11.1-stable.img.xz", "is not named platform-"),
        ("khoj-rpi5-2026.11.1-stable.img.xz", "is not named platform-"),
        ("platform-khoj-rpi5-2026.11.1-nightly.img.xz", "names no channel (dev, beta, stable)"),
        ("platform-khoj-rpi5-2026.11.1.img.xz", "names no channel"),
        ("platform-.oci", "names no channel"),
        ("platform-stable.oci", "is not of the version 2026.11.1"),
        ("platform-khoj-rpi5-2026.11.1-beta.img.xz", "channel beta, and this release is for st"),
        ("platform-khoj-rpi5-2026.11.2-stable.img.xz", "is not of the version 2026.11.1"),
        ("platform-khoj-rpi5-2026.11.1-rc1-stable.img.xz", "is not of the version 2026.11.1"),
        ("platform-khoj-rpi5-2026.11.01-stable.img.xz", "is not of the version 2026.11.1"),
        ("platform-khoj-rpi52026.11.1-stable.img.xz", "is not of the version 2026.11.1"),
        (
            "platform-khoj-rpi9-2026.11.1-stable.img.xz",
            "no known profile and target in 'khoj-rpi9'",
        ),
        ("platform-other-rpi5-2026.11.1-stable.img.xz", "no known profile and target"),
        ("platform-khoj-2026.11.1-stable.img.xz", "no known profile and target in 'khoj'"),
        ("platform--2026.11.1-stable.img.xz", "no known profile and target in ''"),
        ("platform-khoj--rpi5-2026.11.1-stable.img.xz", "no known profile and target"),
        ("platform-khoj-rpi5-2026.11.1-stable.qcow2", "and the target rpi5 takes img.xz"),
    ],
)
def test_an_error_names_the_file_and_what_is_wrong(filename: str, sentence: str) -> None:
    with pytest.raises(NamingError) as caught:
        read(filename)
    assert filename in caught.value.message
    assert sentence in caught.value.message


@pytest.mark.parametrize("part", ["2026.11.2-stable", "2026.11.1-beta"])
def test_a_file_of_another_release_is_told_from_a_stranger(part: str) -> None:
    with pytest.raises(WrongReleaseError):
        read(f"platform-khoj-rpi5-{part}.img.xz")


def test_an_unknown_profile_lists_what_is_known() -> None:
    with pytest.raises(NamingError) as caught:
        read("platform-other-rpi5-2026.11.1-stable.img.xz")
    assert "hermes, khoj, openclaw" in caught.value.hint
    assert "fly-machines, qemu-x86_64, rpi5, wsl2" in caught.value.hint


def test_a_name_that_can_be_read_in_two_ways_names_both() -> None:
    with pytest.raises(NamingError) as caught:
        read(
            "platform-a-b-c-2026.11.1-stable.oci",
            profiles=["a", "a-b"],
            targets={"b-c": "oci", "c": "oci"},
        )
    assert "'platform-a-b-c-2026.11.1-stable.oci' can be read in two ways" in caught.value.message
    assert "profile a on target b-c or profile a-b on target c" in caught.value.message


def test_a_control_character_in_a_name_is_escaped() -> None:
    with pytest.raises(NamingError) as caught:
        read("platform-\x1b[31m-2026.11.1-stable.oci")
    assert "\x1b" not in caught.value.message


_ids = st.lists(st.sampled_from(["a", "b", "1", "x86_64"]), min_size=1, max_size=3).map("-".join)
_versions = st.sampled_from(["2026.11.1", "2026.1.01-rc1", "2026.1.1-a-dev-b", "2026.1.1-.."])


@examples(500)
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
    profile, target = (
        data.draw(st.sampled_from(sorted(profiles))),
        data.draw(st.sampled_from(sorted(targets))),
    )
    name = ArtefactName(profile, target, CalVer.parse(version), channel, targets[target])
    middle = f"{profile}-{target}"
    cuts = [index for index, letter in enumerate(middle) if letter == "-"]
    splits = [cut for cut in cuts if middle[:cut] in profiles and middle[cut + 1 :] in targets]

    def reading() -> ArtefactName:
        return read(
            str(name), version=version, channel=channel, profiles=list(profiles), targets=targets
        )

    if len(splits) == 1:
        assert reading() == name
    else:
        with pytest.raises(NamingError, match="can be read in two ways"):
            reading()


@examples(300)
@given(st.text(st.characters(codec="utf-8")) | st.from_regex(r"platform-[a-z0-9.-]*\.oci"))
def test_any_text_is_a_name_or_refused(filename: str) -> None:
    try:
        name = read(filename)
    except NamingError:
        return
    assert str(name) == filename


# Profiles and targets from files.


def test_the_shipped_profiles_have_their_ids() -> None:
    assert profile_ids(data_path("profiles")) == ["hermes", "khoj", "openclaw"]


def test_profiles_are_the_toml_files_of_a_folder(tmp_path: Path) -> None:
    for name in ("b.toml", "a-1.toml", "notes.txt"):
        (tmp_path / name).touch()
    assert profile_ids(tmp_path) == ["a-1", "b"]


def test_a_folder_without_profiles_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="holds no profile definition"):
        profile_ids(tmp_path)


def test_profiles_must_be_in_a_folder(tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="is not a folder"):
        profile_ids(tmp_path / "none")


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
        (b"#" * ((1 << 20) + 1), "is larger than"),
    ],
    ids=lambda value: ascii(value)[:24],
)
def test_a_bad_target_matrix_is_one_sentence(tmp_path: Path, text: bytes, sentence: str) -> None:
    path = tmp_path / "targets.toml"
    path.write_bytes(text)
    with pytest.raises(PlatformError, match=sentence):
        target_matrix(path)


# URLs.

HTTPS = "https://dl.example/stable/manifest.json"
LOCAL = "http://127.0.0.1:8080/dist/stable/manifest.json?token=a/b"
FILE = "file:///srv/dist/stable/manifest.json"
STORE = "s3://bucket/dist/stable/manifest.json"

RESOLUTIONS = [
    (HTTPS, "2026.11.1/f.qcow2", "https://dl.example/stable/2026.11.1/f.qcow2"),
    (HTTPS, "f", "https://dl.example/stable/f"),
    (HTTPS, "./f", "https://dl.example/stable/f"),
    (HTTPS, "../beta/f", "https://dl.example/beta/f"),
    (HTTPS, "../../../f", "https://dl.example/f"),
    (HTTPS, "/abs/f", "https://dl.example/abs/f"),
    (HTTPS, "//other.example/f", "https://other.example/f"),
    (HTTPS, "f?token=1", "https://dl.example/stable/f?token=1"),
    (HTTPS, "?x=1", "https://dl.example/stable/manifest.json?x=1"),
    (HTTPS, "a%20b", "https://dl.example/stable/a%20b"),
    (HTTPS, "a%2Fb", "https://dl.example/stable/a%2Fb"),
    (HTTPS, "http/f", "https://dl.example/stable/http/f"),
    (HTTPS, ".", "https://dl.example/stable/"),
    (HTTPS, "..", "https://dl.example/"),
    (HTTPS, "https://cdn.example/f", "https://cdn.example/f"),
    (HTTPS, "HTTPS://CDN.Example/../F", "HTTPS://CDN.Example/../F"),
    (HTTPS, "http://cdn.example/f", "http://cdn.example/f"),
    (HTTPS, "file:///etc/passwd", "file:///etc/passwd"),
    (HTTPS, "oci://registry.example/n@sha256:ab", "oci://registry.example/n@sha256:ab"),
    (HTTPS, "do://snapshots/17", "do://snapshots/17"),
    (HTTPS, "s3://bucket/f", "s3://bucket/f"),
    (HTTPS, "javascript:alert(1)", "javascript:alert(1)"),
    (HTTPS, "oci:name", "oci:name"),
    ("https://dl.example/manifest.json", "v/f", "https://dl.example/v/f"),
    ("https://user@dl.example/a/manifest.json", "f", "https://user@dl.example/a/f"),
    ("https://[::1]:8443/a/manifest.json", "v/f", "https://[::1]:8443/a/v/f"),
    ("HTTPS://dl.example/a/manifest.json", "v/f", "https://dl.example/a/v/f"),
    ("https://dl.example/a/manifest.json#x", "v/f", "https://dl.example/a/v/f"),
    ("https://dl.example/a%20b/manifest.json", "f", "https://dl.example/a%20b/f"),
    (LOCAL, "v/f", "http://127.0.0.1:8080/dist/stable/v/f"),
    (LOCAL, "/f", "http://127.0.0.1:8080/f"),
    (LOCAL, "https://cdn.example/f", "https://cdn.example/f"),
    (FILE, "2026.11.1/f", "file:///srv/dist/stable/2026.11.1/f"),
    (FILE, "../f", "file:///srv/dist/f"),
    (FILE, "/etc/passwd", "file:///etc/passwd"),
    (FILE, "//host/share/f", "file://host/share/f"),
    (FILE, "https://dl.example/f", "https://dl.example/f"),
    (FILE, "file:///else/f", "file:///else/f"),
    (FILE, "a%2e/b%20c", "file:///srv/dist/stable/a%2e/b%20c"),
    (STORE, "2026.11.1/f", "s3://bucket/dist/stable/2026.11.1/f"),
    (STORE, "../beta/f", "s3://bucket/dist/beta/f"),
    (STORE, "/f", "s3://bucket/f"),
    (STORE, "//other/f", "s3://other/f"),
    (STORE, "s3://other/f", "s3://other/f"),
    ("gs://bucket/manifest.json", "v/f", "gs://bucket/v/f"),
    ("az://container/a/manifest.json", "./v/f", "az://container/a/v/f"),
]


@pytest.mark.parametrize(("base", "url", "expected"), RESOLUTIONS)
def test_rel_16_a_url_leads_where_the_specification_says(
    base: str, url: str, expected: str
) -> None:
    assert resolve(base, url) == expected


def test_rel_16_there_are_forty_resolutions() -> None:
    assert len(RESOLUTIONS) >= 40


OUTWARD = (
    *(
        "../f",
        "..",
        "a/../../f",
        "/f",
        "/stable/../f",
        "//dl.example:1/stable/f",
        "//other.example/f",
    ),
    *("%2e%2e/f", "%2E%2e/f", ".%2e/f", "%2e./f", "a/%2e%2e/%2e%2e/f", "..%2ff", "..%2Ff"),
    *("a%2f..%2f..%2ff", "..\\f", "a\\..\\..\\f", "..%5cf", "..%5Cf", "%2e%2e%5Cf", "a/.."),
)
INWARD = (
    *("f", "v/f", "./f", "v/./f", "v//f", "...", "..f", "f..", "a..b/f", "v/...", "%2e%2ef"),
    *("?x=../y", "#../y", "%252e%252e/f", "2026.11.1-../f"),
    *("https://other.example/../f", "oci://registry.example/../x", "file:///etc/passwd"),
)


@pytest.mark.parametrize("base", [HTTPS, LOCAL, FILE, STORE], ids=["https", "http", "file", "s3"])
@pytest.mark.parametrize("url", OUTWARD)
def test_rel_16_a_relative_url_that_leaves_the_tree_is_noticed(base: str, url: str) -> None:
    assert leaves_tree(base, url)


@pytest.mark.parametrize("base", [HTTPS, LOCAL, FILE, STORE], ids=["https", "http", "file", "s3"])
@pytest.mark.parametrize("url", INWARD)
def test_a_url_in_the_tree_and_an_absolute_one_are_let_through(base: str, url: str) -> None:
    assert not leaves_tree(base, url)
