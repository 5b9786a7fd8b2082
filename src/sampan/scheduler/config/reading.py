"""Strict reading of a configuration file: every mistake with its path.

Job: look into values of a file; gather what is wrong and what has no effect.
"""

from sampan.api.objects import Obj


class BadConfiguration(Exception):
    """`problems` are lines, each with the path of what is wrong."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Reader:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.notes: list[str] = []

    def mapping(self, written: object, path: str) -> Obj:
        if isinstance(written, dict):
            return written
        self.wrong(path, "an object is wanted")
        return {}

    def items(self, written: object, path: str) -> list[Obj]:
        if written is None:
            return []
        if isinstance(written, list):
            return written
        self.wrong(path, "a list is wanted")
        return []

    def number(self, made: Obj, name: str, otherwise: int) -> float:
        value = made.get(name, otherwise)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        self.wrong(name, f"{value!r} is no number")
        return otherwise

    def known(self, made: Obj, names: set[str], path: str) -> None:
        for name in made:
            if name not in names:
                self.wrong(f"{path}.{name}".lstrip("."), "unknown field")

    def wrong(self, path: str, what: str) -> None:
        self.problems.append(f"{path}: {what}")


def name_in(one: object) -> str:
    return str(one.get("name")) if isinstance(one, dict) else str(one)
