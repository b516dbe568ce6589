"""What a verified release must fulfil beyond its signatures: pure questions, no reading.

Each answer is a `Finding` or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from platform_common.errors import PlatformError
from release_tools.manifest.calver import CalVer
from release_tools.manifest.document import Artefact, Manifest
from release_tools.manifest.vocabulary import CHANNELS
from release_tools.signing.minisign import Signature

STALE_AFTER = timedelta(days=45)
_CLOCK_TOLERANCE = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it must be; a warning alone leaves a release trusted.

    `code` is one word that scripts can rely on (docs/reference/release-tools.md lists
    them), `where` the file or the URL, `message` a sentence.
    """

    code: str
    where: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class VerifyPolicy:
    """What the operator asks for; None asks for nothing. `now` is one moment for one run."""

    now: datetime
    channel: str | None = None
    not_older_than: CalVer | None = None
    max_age: timedelta | None = None


def check_manifest(policy: VerifyPolicy, manifest: Manifest, where: str) -> Iterator[Finding]:
    """The findings on channel, version and age."""
    if policy.channel is not None and manifest.channel != policy.channel:
        yield Finding(
            "E_CHANNEL",
            where,
            f"the manifest is of the channel {manifest.channel}, not {policy.channel}",
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
            # Age matters to who gives a limit; for others a wrong clock must not refuse a release.
            warning=policy.max_age is None,
        )


def check_name(manifest: Manifest, artefact: Artefact, where: str) -> Iterator[Finding]:
    """The findings on a file name that does not say what its entry says."""
    tail = f"-{manifest.release_version}-{manifest.channel}.{artefact.format}"
    if artefact.filename == f"platform-{artefact.profile}-{artefact.target}{tail}":
        return
    others = [channel for channel in CHANNELS if channel != manifest.channel]
    if any(artefact.filename.endswith(f"-{other}.{artefact.format}") for other in others):
        yield Finding("E_CHANNEL", where, "the file name is of another channel than the manifest")
        return
    yield Finding(
        "E_NAME",
        where,
        "the file name is not platform-<profile>-<target>-<version>-<channel>.<ext> of its entry",
        warning=True,
    )


def render_comment(filename: str, timestamp: int, release: Manifest | None = None) -> str:
    """The trusted comment of a signature that we make (docs/reference/manifest.md, "Signatures").

    Raises `PlatformError` for a file name that would bring words of its own.
    """
    if "\t" in filename:
        raise PlatformError(
            f"{filename!a} has a tab in its name, and a tab ends a word of a trusted comment",
            hint="Give the file another name.",
        )
    words = [f"timestamp:{timestamp}", f"file:{filename}", "hashed"]
    if release is not None:
        words += [f"release:{release.release_version}", f"channel:{release.channel}"]
    return "\t".join(words)


def check_comment(
    signature: Signature, filename: str, manifest: Manifest | None, where: str
) -> Iterator[Finding]:
    """The findings on what a release's signature says of itself.

    The words `file`, `release` and `channel` must agree with the release where
    they are there, and the file must have none of the liberties that minisign
    grants it.
    """
    wanted = {"file": filename}
    if manifest is not None:
        wanted |= {"release": manifest.release_version.text, "channel": manifest.channel}
    words = signature.comment_words
    for name, value in words:
        # Each of them: a file name with a tab in it may have brought a second word.
        if value != wanted.get(name, value):
            yield Finding(
                "E_COMMENT",
                where,
                f"the signature was made for the {name} {value!a}, not {wanted[name]!a}",
            )
    if not any(name == "file" for name, _ in words):
        yield Finding("E_COMMENT", where, "the signature names no file", warning=True)
    for oddity in signature.oddities:
        yield Finding("E_SIG", where, f"the signature file has {oddity}")
