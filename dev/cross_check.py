"""Compare our verdicts on minisign signatures with those that minisign gave.

`python -m dev.cross_check FOLDER`: FOLDER holds `index.json`, a list of cases,
each with the paths of a public key, a message and a signature and with the exit
codes of `minisign -V` and `minisign -V -H`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from platform_common.errors import PlatformError
from release_tools.progress import byte_progress
from release_tools.signing.keys import load_public_key
from release_tools.verifying.verify_file import verify_one

# The version of minisign that Debian 12 has.
_AUTHORITY = "0.11"


def refusal_of(folder: Path, case: dict[str, Any], *, legacy: bool) -> str:
    """Why we refuse the signature of `case`; empty if we accept it."""
    try:
        key = load_public_key(str(folder / case["pubkey_file"]))
        with byte_progress("", shown=False) as start:
            message, signature = folder / case["message_file"], folder / case["sig_file"]
            verify_one(message, signature, [key], start, legacy=legacy, strict=False)
    except PlatformError as error:
        return error.message or type(error).__name__
    return ""


def main(arguments: list[str]) -> int:
    """Print every disagreement and the count; return 1 if there is one."""
    folder = Path(arguments[0])
    failed = 0
    cases = json.loads((folder / "index.json").read_text("utf-8"))
    for case in cases:
        verdict = case["verdicts"][_AUTHORITY]
        agreed = True
        for legacy, status in ((True, verdict["exit"]), (False, verdict["exit_with_H"])):
            refusal = refusal_of(folder, case, legacy=legacy)
            if bool(refusal) is not bool(status):
                agreed = False
                ours = f"refuse it ({refusal})" if refusal else "accept it"
                option = "" if legacy else " -H"
                print(f"{case['name']}: minisign -V{option} exits {status}, and we {ours}")
        failed += not agreed
    print(f"minisign {_AUTHORITY} verdicts: {len(cases) - failed} passed, {failed} failed")
    return int(failed > 0 or not cases)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
