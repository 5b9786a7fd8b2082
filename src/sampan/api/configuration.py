"""Strict decoding of configuration documents: every mistake, with the path of its field.

Job: look into the values of a document; gather what is wrong and what has no effect. Pure.
Invariant: a document with a mistake is refused whole, with all of its mistakes.
"""

from collections.abc import Collection, Sequence

from sampan.api.objects import Obj


class BadConfiguration(ValueError):
    """`problems` are lines, each with the path of what is wrong."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


class ConfigReader:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.notes: list[str] = []  # settings without an effect

    def wrong(self, path: str, what: str) -> None:
        self.problems.append(f"{path}: {what}" if path else what)

    def settle(self) -> None:
        """Raises BadConfiguration."""
        if self.problems:
            raise BadConfiguration(self.problems)

    def document(self, written: object, kind: str, versions: Sequence[str]) -> Obj:
        """Of that kind, in one of these versions. Raises BadConfiguration at once."""
        if not isinstance(written, dict):
            raise BadConfiguration([f"the file: expected an object of kind {kind}"])
        if written.get("apiVersion") not in versions or written.get("kind") != kind:
            found = f"{written.get('apiVersion')}, {written.get('kind')}"
            raise BadConfiguration([f"{found} is no {kind} of {versions[0]}"])
        return written

    def mapping(self, written: object, path: str) -> Obj:
        if isinstance(written, dict):
            return written
        self.wrong(path, "expected an object")
        return {}

    def items(self, written: object, path: str) -> list[Obj]:
        if written is None:
            return []
        if isinstance(written, list):
            return written
        self.wrong(path, "expected a list")
        return []

    def number(self, given: Obj, name: str, otherwise: int) -> float:
        value = given.get(name, otherwise)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        self.wrong(name, f"{value!r} is no number")
        return otherwise

    def known(self, given: Obj, names: Collection[str], path: str) -> None:
        for name in given:
            if name not in names:
                self.wrong(f"{path}.{name}".lstrip("."), "unknown field")


def name_in(one: object) -> str:
    return str(one.get("name")) if isinstance(one, dict) else str(one)
