"""The answers of the stand-in gateway, in Markdown and in the format of each protocol."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from typing import Any

MODEL = "stand-in"
_MOST_PIECES = 60
_ANSWER = """\
**I am a stand-in, not an assistant.** I repeat what I am told, and think nothing.

You wrote:

{quoted}

It came

- by `POST {path}`
- {before}

| counted | number |
|---|---|
| words | {words} |
| characters | {characters} |

```json
{{"thoughts": 0}}
```
"""


def answer(told: str, path: str, turns: int) -> str:
    """The answer to `told`, the last of `turns` messages: Markdown with a bit of everything."""
    before = f"after {turns - 1} messages" if turns > 1 else "without what was said before"
    return _ANSWER.format(
        quoted="\n".join(f"> {line}" for line in told.splitlines()),
        path=path,
        before=before,
        words=f"{len(told.split()):,}",
        characters=f"{len(told):,}",
    )


def streamed(said: str, pause_s: float) -> Iterator[str]:
    """The events of a streamed answer, as providers send them."""
    step = math.ceil(len(said) / _MOST_PIECES)
    pieces = [said[start : start + step] for start in range(0, len(said), step)]
    deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
    for delta in deltas + [{"content": piece} for piece in pieces]:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        yield json.dumps(completion("chat.completion.chunk", choice))
        time.sleep(pause_s)
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    yield json.dumps(completion("chat.completion.chunk", end))
    yield "[DONE]"


def completion(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    """An object of that kind with its one choice."""
    return {
        "id": "stand-in-1",
        "object": kind,
        "created": int(time.time()),
        "model": MODEL,
        "choices": [choice],
    }
