"""Every parser of foreign bytes: any input is either read or refused with the parser's own errors.

Hypothesis draws the damage; the short version always draws the same, in a few seconds for each
parser.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import strategies as st

from platform_common.formats.strict_json import JsonError, load_strict
from release_tools.building.naming import NamingError, parse_name
from release_tools.distribution.manifest_location import ManifestLocation
from release_tools.manifest.calver import CalVerError
from release_tools.manifest.document import Manifest, ManifestError, SchemaVersionError, render
from release_tools.manifest.parser import parse
from release_tools.reporting import print_manifest
from release_tools.signing import secret_key as secret_key_module
from release_tools.signing.minisign import (
    LEGACY,
    FormatError,
    PublicKey,
    Signature,
    SignatureError,
    prehash,
)
from release_tools.signing.secret_key import parse_secret_key, render_secret_key
from release_tools.signing.signature_check import check_legacy_signature, check_signature
from release_tools.verifying.policy import VerifyPolicy, check_comment, check_manifest, check_name
from tests.fuzz.conftest import Fuzz
from tests.support.manifests import CASES, HOSTILE_JSON, document, encode, entry, many
from tests.support.mutations import mutations
from tests.support.signatures import MESSAGE, secret_key, signed, signed_legacy

NOW = datetime(2026, 11, 1, tzinfo=UTC)
KEY = secret_key().public_key
KEY_FILE = render_secret_key(secret_key(), "", salt=bytes(32))

_MANIFESTS = [encode(document()), json.dumps(document(artefacts=many(3))).encode()]
_MEMBERS = [f'"{name}"'.encode() for name in (*document(), *entry())]
_SIGNATURES = [signed().render(), signed_legacy().render(), signed(comment="").render()]
_PREFIXES = [b"untrusted comment: ", b"trusted comment: ", b"RW", b"RU", b"==", b"A" * 8200]


def use(manifest: Manifest) -> None:
    """Do everything with a valid manifest that the commands do."""
    location = ManifestLocation("https://dl.example/stable/manifest.json")
    assert parse(render(manifest)) == manifest
    list(check_manifest(VerifyPolicy(NOW), manifest, "m"))
    for artefact in manifest.artefacts:
        list(check_name(manifest, artefact, "m"))
        for url in (artefact.url or artefact.filename, artefact.minisig_url):
            location.resolve(url)
            location.leaves_folder(url)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        print_manifest(location, manifest)
    assert all(letter.isprintable() or letter == "\n" for letter in shown.getvalue())


def refuse_or_use(data: bytes) -> Manifest | None:
    try:
        manifest = parse(data)
    except (ManifestError, SchemaVersionError) as error:
        assert error.message.replace("…", "").isprintable()  # noqa: PT017 - any error is fine
        return None
    use(manifest)
    return manifest


def test_damaged_json_is_refused_or_written_back(fuzz: Fuzz) -> None:
    @fuzz(
        1500,
        mutations([*_MANIFESTS, *(data for data, _ in HOSTILE_JSON.values() if len(data) < 9000)]),
    )
    def check(data: bytes) -> None:
        try:
            value = load_strict(data)
        except JsonError:
            return
        assert load_strict(json.dumps(value).encode()) == value


def test_a_damaged_manifest_is_refused_or_usable(fuzz: Fuzz) -> None:
    @fuzz(1500, mutations(_MANIFESTS, _MEMBERS))
    def check(data: bytes) -> None:
        refuse_or_use(data)


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_pieces = st.sampled_from([case.value for case in CASES if isinstance(case.value, str)])
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, -1, 1.0, 10**400, 2**63])
    | _texts
    | _pieces,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)


def _some(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(names) | _texts, _values, max_size=3)


def test_a_manifest_of_other_values_is_refused_or_usable(fuzz: Fuzz) -> None:
    @fuzz(600, _some(list(document())), st.lists(_some(list(entry())), max_size=3), st.booleans())
    def check(members: dict[str, Any], entries: list[dict[str, Any]], first_is_good: bool) -> None:
        artefacts = [
            entry(target=f"t{n}", filename=f"f{n}") | item for n, item in enumerate(entries)
        ]
        whole = document(artefacts=[entry()] * first_is_good + artefacts) | members
        refuse_or_use(encode(whole | {"schema_version": members.get("schema_version", 1)}))


def test_a_manifest_with_unknown_members_is_written_back_byte_for_byte(fuzz: Fuzz) -> None:
    unknown = st.dictionaries(_texts.map("x_{}".format), _values, max_size=3)

    @fuzz(300, unknown, unknown, st.sampled_from(["tracker", "wizard_version", "chat_ui_version"]))
    def check(of_all: dict[str, Any], of_one: dict[str, Any], left_out: str) -> None:
        whole = document(artefacts=[entry() | of_one]) | of_all
        del whole[left_out]
        manifest = refuse_or_use(data := encode(whole))
        assert manifest is not None
        assert render(manifest) == data


def test_a_damaged_signature_is_refused_or_unchanged(fuzz: Fuzz) -> None:
    @fuzz(1500, mutations(_SIGNATURES, _PREFIXES))
    def judged(data: bytes) -> None:
        try:
            signature = Signature.parse(data)
        except FormatError:
            return
        assert (
            replace(Signature.parse(signature.render()), oddities=signature.oddities) == signature
        )
        list(check_comment(signature, "f", None, "f.minisig"))
        try:
            if signature.legacy:
                check_legacy_signature([KEY], signature, lambda: [memoryview(MESSAGE)])
            else:
                check_signature([KEY], signature, prehash(MESSAGE))
        except SignatureError:
            return
        good = signed_legacy() if signature.legacy else signed()
        empty = signed(comment="")
        assert replace(signature, oddities=()) in (good, empty)


def test_a_damaged_public_key_is_refused_or_verifies_nothing(fuzz: Fuzz) -> None:
    @fuzz(1500, mutations([KEY.render(), KEY_FILE], [b"RW", b"RU", b"untrusted comment: "]))
    def judged(data: bytes) -> None:
        try:
            key = PublicKey.parse(data)
        except FormatError:
            return
        assert PublicKey.parse(key.render()) == key
        for signature in (signed(), replace(signed_legacy(), algorithm=LEGACY)):
            try:
                if signature.legacy:
                    check_legacy_signature([key], signature, lambda: [memoryview(MESSAGE)])
                else:
                    check_signature([key], signature, prehash(MESSAGE))
            except SignatureError:
                continue
            assert key == KEY


_RAW_KEY = base64.b64decode(KEY_FILE.split(b"\n")[1])


def _key_file(raw: bytes) -> bytes:
    """A key file of the right size, so that the damage is found after the base64 is decoded."""
    return base64.b64encode(raw[:158].ljust(158, b"\0"))


def test_a_secret_key_with_damaged_fields_is_refused_or_unchanged(fuzz: Fuzz) -> None:
    @fuzz(
        1500,
        mutations([_RAW_KEY], [b"Ed", b"Sc", b"\0\0", b"B2", bytes(32), bytes(8)]).map(_key_file),
    )
    def check(data: bytes) -> None:
        with pytest.MonkeyPatch.context() as cheap:
            cheap.setattr(secret_key_module, "DEFAULT_OPSLIMIT", 1 << 20)
            cheap.setattr(secret_key_module, "DEFAULT_MEMLIMIT", 1 << 25)
            try:
                key = parse_secret_key(data, lambda: "x")
            except (FormatError, SignatureError):
                return
        assert key.public_key.point == KEY.point


def test_a_damaged_secret_key_is_refused_or_unchanged(fuzz: Fuzz) -> None:
    @fuzz(
        1500,
        mutations([KEY_FILE, KEY_FILE.split(b"\n")[1], KEY.render()], [b"RW", b"RWRC", b"AAAA"]),
    )
    def check(data: bytes) -> None:
        try:
            # A mutation may mark the key as encrypted; then its password is asked for.
            key = parse_secret_key(data, lambda: "x")
        except (FormatError, SignatureError):
            return
        # Without a checksum, only the public half protects the key.
        assert key.public_key.point == KEY.point


_PARTS_OF_NAMES = (
    *("platform", "khoj", "rpi5", "2026.11.1", "stable", "beta", "-", ".", ".img.xz", ".oci"),
)


def test_a_name_of_random_pieces_is_read_or_refused(fuzz: Fuzz) -> None:
    @fuzz(
        600,
        st.lists(st.sampled_from(_PARTS_OF_NAMES) | st.text(max_size=5)),
    )
    def check(pieces: list[str]) -> None:
        for text in ("".join(pieces), "-".join(pieces)):
            with contextlib.suppress(NamingError, CalVerError):
                name = parse_name(
                    text,
                    version=parse(_MANIFESTS[0]).release_version,
                    channel="stable",
                    profiles=["khoj", "khoj-rpi5"],
                    targets={"rpi5": "img.xz", "oci": "oci"},
                )
                middle = f"{name.profile}-{name.target}"
                assert text == f"platform-{middle}-2026.11.1-stable.{name.format}"
