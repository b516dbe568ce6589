"""Conversations for the page of the chat, with examples of all that an answer may contain."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from tests.support.devices import Device

# Nothing listens there.
NOBODY = "http://127.0.0.1:9"
QUESTION = f"Plan my week in the kitchen, please.\n\nAlso: {'long' * 30}"
ANSWER = f"""\
Here is **a plan**, with `inline code`, [a link](https://example.org/{"path/" * 20}), ~~no~~ and
{"https://example.org/" + "w" * 90}

# What to buy

1. Flour
2. Yeast
   - fresh
   - dry

     of another sort

| Weekday | What is cooked | Who does it | Minutes it takes | Notes |
|---|---|---|--:|---|
| Monday | Bread with a crust | Anna | 120 | {"begin-on-Sunday-" * 3} |
| Tuesday | Soup | Ben | 45 | nothing |

```python
{"def knead(dough, minutes): return dough  # " * 4}
```

    indented

> Good bread satisfies.
>
> > Quoted twice.

---

### Further below

![A picture](https://example.org/picture.png)
"""
WHY = (
    "Box gave no answer: it refused the connection. See that it runs: systemctl status box.service"
)
_BEGUN = datetime(2026, 11, 20, 21, 30, tzinfo=UTC)


def turns(count: int = 4) -> Iterator[Mapping[str, object]]:
    """The lines of a conversation with `count` questions, the last of which has no answer."""
    for number in range(count):
        at = (_BEGUN + timedelta(hours=number)).isoformat()
        yield {"role": "user", "content": QUESTION, "at": at}
        if number == count - 1:
            yield {"role": "assistant", "content": WHY, "at": at, "error": True}
        else:
            yield {"role": "assistant", "content": ANSWER, "at": at, "stopped": number == count - 2}


def put_turns(out: Device, *said: Mapping[str, object], profile: str = "box") -> None:
    """Store these turns as the history."""
    history = f"/home/agent/.{profile}/chat-history.jsonl"
    out.put(history, "".join(f"{json.dumps(one)}\n" for one in said))


def known_values() -> set[str]:
    """Text on these pages that is not ours."""
    lines = {line for text in (QUESTION, ANSWER) for line in text.splitlines()}
    words = {word for line in lines for word in re.split(r"[^\w/:.-]+", line)}
    return {one.strip(":.|- ") for one in lines | words} | {"Box"}
