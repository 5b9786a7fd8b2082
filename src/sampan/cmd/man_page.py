"""The man page, made of docs/cli.md.

Job: the reference's markdown → roff. The build does it (setup.py) and puts sampan.1 into share/man
    of the wheel; by hand: `python -m sampan.cmd.man_page < docs/cli.md`.
Invariant: the build has no sampan yet: nothing of it is imported.
Invariant: every line of the document is in the page, and no line of it is taken for a request.
"""

import re
import sys
from collections.abc import Iterator

NAME = "sampan \\- a Kubernetes you can pip install"
_FLAG = r"- ((?:`[^`]+`(?:, )?)+) ?(.*)"


def page(markdown: str, version: str) -> str:
    lines = [
        f'.TH SAMPAN 1 "" "sampan {version}" "User Commands"',
        ".SH NAME", NAME,
        ".SH SYNOPSIS", ".B sampan", "VERB [flags]",
        ".SH DESCRIPTION",
    ]  # fmt: skip
    _, _, text = markdown.partition("\n")  # the title is the page's own
    for line in _converted(text.splitlines()):
        if line == ".PP" and lines[-1].startswith((".PP", ".SH", ".SS")):
            continue
        if lines[-1] == ".PP" and line.startswith((".SH", ".SS", ".TP")):
            lines.pop()
        lines.append(line)
    return "\n".join(lines) + "\n"


def _converted(lines: list[str]) -> Iterator[str]:
    is_code = False
    for line in lines:
        if line.startswith("    ") != is_code and line:
            is_code = not is_code
            yield from (".PP", ".RS 4", ".nf") if is_code else (".fi", ".RE")
        if is_code:
            yield _text(line[4:])
        elif line.startswith("### "):
            yield f'.SS "{_text(line[4:])}"'
        elif line.startswith("#"):
            yield f'.SH "{_text(line.lstrip("# ")).upper()}"'
        elif flag := re.fullmatch(_FLAG, line):
            yield from (".TP", _marked(flag[1]), *([_marked(flag[2])] if flag[2] else []))
        else:
            yield _marked(line) or ".PP"
    if is_code:
        yield from (".fi", ".RE")


def _marked(line: str) -> str:
    return re.sub(r"`([^`]+)`", r"\\fB\1\\fR", _text(line))


def _text(line: str) -> str:
    """As it is: a backslash, a hyphen and a mark at the beginning mean something to roff."""
    plain = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


if __name__ == "__main__":
    from sampan.version import VERSION

    print(page(sys.stdin.read(), VERSION), end="")
