"""Pages for people as scripts: the blocks of a markdown page that its reader pastes.

Job: markdown → steps; what a page shows of an output against what was printed.
Invariant: every block of a page is a step, or has a note that its reader sees, too.

A block may have a note in the paragraph before it, which the reader sees as well as we do:
`*(needs …)*` it cannot run here; `*(stays in the foreground)*` the next block is for another
terminal; `*(on the other machine)*`. A block of another language after "save as `NAME`" is a file.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sampan.core.fast_dataclass import dataclass

SHELLS = ("console", "sh")
NEEDS = {"the internet", "Docker or podman", "systemd", "kind"}
FOREGROUND, ELSEWHERE = "stays in the foreground", "on the other machine"
ANY = "…"


class PageError(Exception):
    """A page that cannot be followed; the message says what and where."""


REFUSALS = ("sampan: ", "error: ", "Error from server")


@dataclass(frozen=True, slots=True)
class Command:
    words: str
    output: tuple[str, ...] | None  # None: the page shows none
    line: int

    @property
    def is_refused(self) -> bool:
        """The page shows how it fails."""
        return bool(self.output) and self.output[0].startswith(REFUSALS)


@dataclass(frozen=True, slots=True)
class Step:
    """A block: commands, or a file to save."""

    commands: tuple[Command, ...] = ()
    file: str = ""
    text: str = ""
    notes: frozenset[str] = frozenset()

    @property
    def needs(self) -> str:
        return next((note for note in self.notes if note.startswith("needs ")), "")


@dataclass(frozen=True, slots=True)
class _Block:
    language: str
    lines: tuple[str, ...]
    before: str  # the paragraph above it
    line: int


def steps_of(text: str) -> list[Step]:
    return [step for block in _blocks(text.splitlines()) for step in _steps(block)]


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    paragraph: list[str] = []
    at = 0
    while at < len(lines):
        fence = re.fullmatch(r"( *)```(\w*)", lines[at])
        if fence is None:
            # The note of a block is in the paragraph right above it, not further up.
            is_new = at > 0 and not lines[at - 1].strip()
            paragraph = [lines[at]] if is_new and lines[at].strip() else [*paragraph, lines[at]]
            at += 1
            continue
        end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == "```")
        inside = tuple(line.removeprefix(fence[1]) for line in lines[at + 1 : end])
        yield _Block(fence[2], inside, " ".join(paragraph), at + 2)
        paragraph, at = [], end + 1


def _steps(block: _Block) -> Iterator[Step]:
    notes = frozenset(re.findall(r"\*\(([^)]+)\)\*", block.before))
    known = {FOREGROUND, ELSEWHERE, *(f"needs {what}" for what in NEEDS)}
    if not notes <= known:
        raise PageError(f"line {block.line}: unknown notes {sorted(notes - known)}")
    if block.language in SHELLS:
        commands = _console(block) if block.language == "console" else _script(block)
        yield Step(tuple(commands), notes=notes)
        return
    saved = re.search(r"[Ss]ave (?:it |this )?as `([^`]+)`", block.before)
    if saved:
        yield Step(file=saved[1], text="\n".join(block.lines) + "\n", notes=notes)
    elif block.language != "text":
        raise PageError(f"line {block.line}: a block that is neither run nor saved")


def _script(block: _Block) -> Iterator[Command]:
    yield Command("\n".join(block.lines), None, block.line)


def _console(block: _Block) -> Iterator[Command]:
    words: list[str] = []
    output: list[str] = []
    began = block.line
    for number, line in enumerate(block.lines, block.line):
        if line.startswith("$ "):
            if words:
                yield Command("\n".join(words), tuple(output), began)
            words, output, began = [line[2:]], [], number
        elif line.startswith("> ") and words and not output:
            words.append(line[2:])
        elif words:
            output.append(line)
        else:
            raise PageError(f"line {number}: output before any command")
    if words:
        yield Command("\n".join(words), tuple(output), began)


_MASKS = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"^W \S+ core\.telemetry\.loop_watch: .*"), ""),  # the machine is busy
    (re.compile(r" \(\d+:\d\d:\d\d\)"), ""),  # pytest's, of what took more than a minute
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s)\b|\b(\d+[dhms]){1,3}\b"), "AGE"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"-[bcdf-hj-np-tv-z2-9]{8,10}-[bcdf-hj-np-tv-z2-9]{5}\b"), "-HASH"),
    (re.compile(r"-[bcdf-hj-np-tv-z2-9]{8,10}\b"), "-HASH"),
    (re.compile(r"\bsha256:[0-9a-f]{8,64}\b"), "sha256:HASH"),
    (re.compile(r"\b\d+(\.\d+)? (B|[KMG]i?B)\b"), "SIZE"),
    (re.compile(r"\b(process|pid|PID) \d+\b"), "PROCESS"),
    (re.compile(r"\s+"), " "),
)


def masked(line: str) -> str:
    """Without what differs from run to run: ages, hashes, addresses, sizes, widths."""
    for pattern, name in _MASKS:
        line = pattern.sub(name, line)
    return line.strip()


def is_shown(shown: Sequence[str], printed: Sequence[str]) -> bool:
    """Is it what the page shows? `…` stands for anything in a line, alone for any lines."""
    expected = [line for line in map(masked, shown) if line]
    found = [line for line in map(masked, printed) if line]
    return _match(expected, found)


def _match(expected: list[str], found: list[str]) -> bool:
    if not expected:
        return not found
    if expected[0] == ANY:
        return any(_match(expected[1:], found[skip:]) for skip in range(len(found) + 1))
    return bool(found) and _line_matches(expected[0], found[0]) and _match(expected[1:], found[1:])


def _line_matches(expected: str, found: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in expected.split(ANY))
    return re.fullmatch(pattern, found) is not None


_READING = re.compile(r"(sampan|kubectl) (get|logs|why|trace|describe|list|snapshot diff)\b")


def is_reading(command: Command) -> bool:
    """It changes nothing: whoever comes too early asks again."""
    return _READING.match(command.words) is not None


def pages(root: Path) -> list[Path]:
    guide = sorted((root / "docs" / "guide").glob("*.md"))
    return [root / "README.md", root / "docs" / "testkit.md", *guide]
