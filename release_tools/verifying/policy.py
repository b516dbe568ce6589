"""What a release must satisfy beyond its signatures. The checks read nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from release_tools.manifest.calver import CalVer
from release_tools.manifest.document import Artefact, Manifest
from release_tools.manifest.vocabulary import CHANNELS
from release_tools.signing.minisign import Signature

STALE_AFTER = timedelta(days=45)
_CLOCK_TOLERANCE = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Finding:
    """A failed check; a release with only warnings is still trusted.

    `code` is one word that scripts can rely on (docs/reference/release-tools.md lists them),
    `where` the file or URL, `message` a sentence.
    """

    code: str
    where: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class VerifyPolicy:
    """What the operator requires; None requires nothing. `now` is the same for the whole run."""

    now: datetime
    channel: str | None = None
    not_older_than: CalVer | None = None
    max_age: timedelta | None = None


def check_manifest(policy: VerifyPolicy, manifest: Manifest, where: str) -> Iterator[Finding]:
    """Check the manifest's channel, version and age."""
    if policy.channel is not None and manifest.channel != policy.channel:
        yield Finding(
            "E_CHANNEL",
            where,
            f"the manifest is for the channel {manifest.channel}, not {policy.channel}",
        )
    if policy.not_older_than is not None and manifest.release_version < policy.not_older_than:
        yield Finding(
            "E_ROLLBACK",
            where,
            f"the release {manifest.release_version} is older than {policy.not_older_than}",
        )
    age = policy.now - manifest.released
    limit = STALE_AFTER if policy.max_age is None else policy.max_age
    if age > limit:
        yield Finding(
            "E_FREEZE",
            where,
            f"the manifest is {age.days} days old, over the limit of {limit.days}:"
            " newer releases may be kept from you",
            warning=policy.max_age is None,
        )
    if -age > _CLOCK_TOLERANCE:
        yield Finding(
            "E_FUTURE",
            where,
            f"the manifest was released in the future ({manifest.released_at}),"
            " or this machine's clock is wrong",
            # Without an age limit, a wrong clock alone must not cause a release to be refused.
            warning=policy.max_age is None,
        )


def check_name(manifest: Manifest, artefact: Artefact, where: str) -> Iterator[Finding]:
    """Check that the artefact's file name agrees with its entry."""
    tail = f"-{manifest.release_version}-{manifest.channel}.{artefact.format}"
    if artefact.filename == f"platform-{artefact.profile}-{artefact.target}{tail}":
        return
    others = [channel for channel in CHANNELS if channel != manifest.channel]
    if any(artefact.filename.endswith(f"-{other}.{artefact.format}") for other in others):
        yield Finding("E_CHANNEL", where, "the file name is for another channel than the manifest")
        return
    yield Finding(
        "E_NAME",
        where,
        "the file name is not platform-<profile>-<target>-<version>-<channel>.<ext> of its entry",
        warning=True,
    )


def check_comment(
    signature: Signature, filename: str, manifest: Manifest | None, where: str
) -> Iterator[Finding]:
    """Check the trusted comment of a signature, and the form of its file.

    The words `file`, `release` and `channel`, where present, must agree with the release, and
    the file must have no `Signature.oddities`.
    """
    wanted = {"file": filename}
    if manifest is not None:
        wanted |= {"release": manifest.release_version.text, "channel": manifest.channel}
    words = signature.comment_words
    for name, value in words:
        # Every occurrence counts: a file name with a tab in it may have added a second one.
        if value != wanted.get(name, value):
            yield Finding(
                "E_COMMENT",
                where,
                f"the signature was made for the {name} {value!a}, not {wanted[name]!a}",
            )
    if not any(name == "file" for name, _ in words):
        yield Finding("E_COMMENT", where, "the signature does not name a file", warning=True)
    for oddity in signature.oddities:
        yield Finding("E_SIG", where, f"the signature file has {oddity}")
