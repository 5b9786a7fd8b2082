"""The lesson: ARCHITECTURE.md's way of a pod, step by step, as values and as JSON.

Job: the document's text → its steps, each with the function that does it and the original's way.
Invariant: what the lesson says of sampan is ARCHITECTURE.md's own text: there is no second one.
"""

import re
from functools import cache
from pathlib import Path

import sampan
from sampan.api.objects import Obj
from sampan.cmd.tour.originals import ORIGINALS, Original
from sampan.core.fast_dataclass import dataclass

PACKAGE = Path(sampan.__file__).parent
DOCUMENT = "ARCHITECTURE.md"
_HEADING, _END = "## The way of a pod", "\n`kubectl logs`"
UPSTREAM = "https://github.com/kubernetes/kubernetes/blob/release-1.35/"


@dataclass(frozen=True, slots=True)
class LessonStep:
    number: int
    title: str
    text: str
    files: tuple[str, ...]  # of sampan; a folder ends with a slash
    original: Original


def architecture() -> str:
    """Beside the source, or as the build has packed it. Raises OSError."""
    packed = Path(__file__).parent / DOCUMENT
    return (packed if packed.exists() else PACKAGE.parents[1] / DOCUMENT).read_text()


@cache
def lesson() -> tuple[LessonStep, ...]:
    """Raises OSError."""
    return steps_of(architecture())


def steps_of(document: str) -> tuple[LessonStep, ...]:
    section = document.partition(_HEADING)[2].partition(_END)[0]
    originals = {original.title: original for original in ORIGINALS}
    steps = []
    for number, text in enumerate(re.split(r"^ ?\d+\. ", section, flags=re.M)[1:], 1):
        found = re.match(r"\*\*(.+?)\.?\*\*", text)
        assert found is not None, text
        title = found[1]
        said = " ".join(text[found.end() :].split()).removeprefix(": ")
        files = tuple(re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", text))
        steps.append(LessonStep(number, title, said, files, originals[title]))
    return tuple(steps)


@cache
def line_of(function: str) -> int:
    """Where FILE:NAME or FILE:CLASS.NAME begins, counted from 1."""
    file, _, name = function.partition(":")
    lines, at, indent = (PACKAGE / file).read_text().splitlines(), 0, ""
    for word in name.split("."):
        head = re.compile(rf"{indent}(class|def|async def) {word}\b")
        at = next(number for number in range(at, len(lines)) if head.match(lines[number]))
        indent += "    "
    return at + 1


def lesson_object(rest: str) -> Obj | None:
    """As the API serves it, for pages that guide through it; None for any other path."""
    if rest:
        return None
    return {
        "steps": [
            {
                "number": step.number, "title": step.title, "idea": step.original.idea,
                "text": step.text,
                "files": list(step.files), "function": step.original.function,
                "line": line_of(step.original.function), "spans": list(step.original.spans),
                "original": {
                    "file": step.original.file, "url": UPSTREAM + step.original.file,
                    "does": step.original.does,
                },
            }
            for step in lesson()
        ]
    }  # fmt: skip
