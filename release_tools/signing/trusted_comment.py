"""The trusted comment of a signature: when and for what it was made."""

from __future__ import annotations

from platform_common.errors import PlatformError
from release_tools.manifest.document import Manifest


def render_comment(filename: str, timestamp: int, release: Manifest | None = None) -> str:
    """Return the trusted comment for a new signature (docs/reference/manifest.md, "Signatures").

    Raises `PlatformError` for a file name that would add words to it.
    """
    if "\t" in filename:
        raise PlatformError(
            f"{filename!a} has a tab in its name, which would end a word of the trusted comment",
            hint="Rename the file.",
        )
    words = [f"timestamp:{timestamp}", f"file:{filename}", "hashed"]
    if release is not None:
        words += [f"release:{release.release_version}", f"channel:{release.channel}"]
    return "\t".join(words)
