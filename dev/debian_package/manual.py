"""Manual pages of the programs, generated from the help of their commands."""

from __future__ import annotations

import inspect
import re
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping

import click

from platform_common.version import VERSION

# click's marker for a paragraph that it must not wrap.
_VERBATIM = "\b\n"
_CODE = re.compile(r"^ *([0-9]+) +(\S.*)$", re.MULTILINE)
_WIDTH = 72
# Characters that roff interprets, or prints as typographic ones.
_SIGNS = {
    "\\": r"\e",
    "-": r"\-",
    "'": r"\(aq",
    '"': r"\(dq",
    "`": r"\(ga",
    "^": r"\(ha",
    "~": r"\(ti",
}
_RECORDS = ("/etc/platform/", "Records of this device; records.md has what each is.")
_SETTINGS = ("/etc/default/platform-appliance", "Settings of the services.")
# The files of each program.
FILES: Mapping[str, Iterable[tuple[str, str]]] = {
    "platformctl": (
        _RECORDS,
        ("/etc/platform/secrets.env", "Keys of the providers; root and the gateways read it."),
        ("/var/lib/platform/", "State of the wizard and the dashboard."),
        ("/run/platform/control.sock", "Socket of the root helper."),
        _SETTINGS,
    ),
    "pwa-app": (
        _RECORDS,
        ("/var/lib/platform/vapid.pem", "Key that notifications are signed with."),
        ("/var/lib/platform/push-subscriptions.jsonl", "Browsers that are notified."),
        _SETTINGS,
    ),
    "wizard-app": (
        ("/etc/platform/setup-complete", "While it exists, the wizard does not start."),
        ("/var/lib/platform/wizard-state.json", "Answers, without secrets."),
        ("/run/platform/wizard.token", "Launch token, while it is unused."),
        _SETTINGS,
    ),
    "release-tools": (
        ("manifest.json", "What a release contains."),
        ("manifest.json.minisig", "Its signature."),
    ),
}
_DOCUMENTS = "/usr/share/doc/platform-appliance/"


def page(program: str, main: click.Group, moment: int) -> str:
    """Return the manual page (section 1) of a program, dated `moment`."""
    day = time.strftime("%Y-%m-%d", time.gmtime(moment))
    source = f"platform-appliance {VERSION}"
    context = click.Context(main, info_name=program, **main.context_settings)
    first, *paragraphs = _paragraphs(main.help)
    codes = [text for text in paragraphs if text.startswith(_VERBATIM)]
    return "".join(
        f"{line}\n"
        for line in (
            # Not escaped, because programs read the date.
            f'.TH {_quoted(program.upper())} 1 "{day}" {_quoted(source)} "Platform appliance"',
            '.SH "NAME"',
            # apropos splits the line at this dash.
            f"{_escaped(program)} \\- {_escaped(first[0].lower() + first[1:].rstrip('.'))}",
            '.SH "SYNOPSIS"',
            *_synopsis(context),
            '.SH "DESCRIPTION"',
            *_prose([first, *(text for text in paragraphs if text not in codes)]),
            '.SH "OPTIONS"',
            *_options(context),
            '.SH "COMMANDS"',
            *_commands(context),
            '.SH "EXIT STATUS"',
            *_terms(match for text in codes for match in _CODE.findall(text)),
            '.SH "FILES"',
            *_terms(FILES[program], font="I"),
            '.SH "SEE ALSO"',
            *_see_also(program),
        )
    )


def _commands(context: click.Context) -> Iterator[str]:
    """Yield a section for each visible command, in the program's order."""
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        below = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group) and not command.invoke_without_command:
            yield from _commands(below)
        else:
            yield f".SS {_quoted(below.command_path)}"
            yield from _synopsis(below)
            yield ".PP"
            yield from _prose(_paragraphs(command.help))
            yield from _options(below)
            yield from _prose(_paragraphs(command.epilog), before=".PP")
            if isinstance(command, click.Group):
                yield from _commands(below)


def _synopsis(context: click.Context) -> Iterator[str]:
    yield f".B {_quoted(context.command_path)}"
    yield _escaped(" ".join(context.command.collect_usage_pieces(context)))


def _options(context: click.Context) -> Iterator[str]:
    records = (parameter.get_help_record(context) for parameter in _parameters(context))
    # click puts two blanks before text in brackets.
    yield from _terms((names, text.replace("  [", " [")) for names, text in filter(None, records))


def _parameters(context: click.Context) -> Iterator[click.Parameter]:
    """Yield all parameters, except a command's own help option."""
    helping = context.command.get_help_option(context)
    for parameter in context.command.get_params(context):
        if context.parent is None or parameter is not helping:
            yield parameter


def _terms(pairs: Iterable[tuple[str, str]], font: str = "B") -> Iterator[str]:
    for term, text in pairs:
        yield from (".TP", f".{font} {_quoted(term)}", *map(_escaped, _lines(text)))


def _see_also(program: str) -> Iterator[str]:
    others = [other for other in sorted(FILES) if other != program]
    for other in [*others, "systemctl", "journalctl"]:
        yield f".BR {_quoted(other)} (1),"
    yield f"{_escaped(_DOCUMENTS)}"


def _paragraphs(text: str | None) -> list[str]:
    return [part for part in inspect.cleandoc(text or "").split("\n\n") if part.strip()]


def _prose(paragraphs: Iterable[str], before: str = "") -> Iterator[str]:
    """Yield paragraphs; lines that click does not wrap are not filled here either."""
    for paragraph in paragraphs:
        if before:
            yield before
        before = ".PP"
        if not paragraph.startswith(_VERBATIM):
            yield from map(_escaped, _lines(paragraph))
            continue
        title, _, lines = paragraph.removeprefix(_VERBATIM).partition("\n")
        yield from (_escaped(title), ".PP", ".in +4", ".EX")
        yield from map(_escaped, textwrap.dedent(lines).splitlines())
        yield from (".EE", ".in")


def _lines(text: str) -> list[str]:
    """Wrap text that roff fills anyway, so that the source is readable."""
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _quoted(word: str) -> str:
    """Quote text as one argument of a macro."""
    return f'"{_escaped(word)}"'


def _escaped(text: str) -> str:
    """Escape text for roff."""
    line = "".join(
        _SIGNS.get(sign, sign if sign.isascii() else f"\\[u{ord(sign):04X}]") for sign in text
    )
    # A line that starts with a full stop is a roff request.
    return rf"\&{line}" if line.startswith(".") else line
