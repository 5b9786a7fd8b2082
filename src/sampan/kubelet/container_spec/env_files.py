"""Variables from files of a volume (`fileKeyRef`). Pure.

Job: which files a container's environment is read from, and what such a file says of a name.
Invariant: as upstream, every value is in single quotes and taken as it is; what is not of this form
    is an error, also where it is about another name.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from sampan.api.objects import Obj

EnvFile: TypeAlias = tuple[str, str]  # the volume's name, and the path in it
_BLANKS = " \t"


class BadEnvFile(Exception):
    """The file is not of the form."""


def env_files_of(container: Obj) -> set[EnvFile]:
    references = [
        (entry.get("valueFrom") or {}).get("fileKeyRef") for entry in container.get("env") or ()
    ]
    return {
        (reference.get("volumeName", ""), reference.get("path", ""))
        for reference in references
        if reference
    }


class EnvText:
    """One file, as it was read. Thousands of variables may come from it: it is parsed once."""

    def __init__(self, path: str, text: str | None) -> None:
        """`path`: on the node; without a text it cannot be read."""
        self.path, self.text = path, text
        self._values: dict[str, str] | None = None
        self._fault: BadEnvFile | None = None

    def value_of(self, name: str) -> str:
        """Empty where it is not there. Raises BadEnvFile, unless the name stands before what is
        wrong."""
        values = self.values()
        if name not in values and self._fault is not None:
            raise self._fault
        return values.get(name, "")

    def values(self) -> Mapping[str, str]:
        """Of each name the first one; up to what is wrong."""
        if self._values is None:
            self._values = {}
            try:
                for name, value in _assignments(self.text or ""):
                    self._values.setdefault(name, value)
            except BadEnvFile as error:
                self._fault = error
        return self._values


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Raises BadEnvFile."""
    lines = enumerate(text.removesuffix("\n").split("\n"), 1)
    for number, line in lines:
        line = line.removesuffix("\r").lstrip(_BLANKS)
        if not line or line.startswith("#"):
            continue
        found, value = _assigned(number, line)
        if value[:1] in ("", " ", "\t"):
            value = _nothing(number, value)
        else:
            said = [value[1:]]
            while "'" not in said[-1]:
                _, more = next(lines, (0, None))
                if more is None:
                    raise _bad(number, "unclosed single quote", "starting at")
                said.append(more.removesuffix("\r"))
            last, _, after = said[-1].partition("'")
            if after.lstrip(_BLANKS)[:1] not in ("", "#"):
                raise _bad(number + len(said) - 1, "unexpected content after closing quote")
            value = "\n".join([*said[:-1], last])
        yield found, value


def _assigned(number: int, line: str) -> tuple[str, str]:
    """Name, and what stands behind its `=`."""
    name, equals, value = line.partition("=")
    if not equals:
        raise _bad(number, "missing '='")
    if not name.rstrip(_BLANKS):
        raise _bad(number, "empty variable name")
    if name != name.rstrip(_BLANKS):
        raise _bad(number, "whitespace before '=' is not allowed")
    if value and value[0] not in f"'{_BLANKS}":
        raise _bad(number, "value must be enclosed in single quotes")
    return name, value


def _nothing(number: int, value: str) -> str:
    """As in a shell: `NAME= 'value'` says that it is empty; nothing at all is no value."""
    if not value:
        raise _bad(number, "value must be enclosed in single quotes")
    return ""


def _bad(line: int, why: str, where: str = "at") -> BadEnvFile:
    return BadEnvFile(f"invalid environment variable format {where} line {line}: {why}")
