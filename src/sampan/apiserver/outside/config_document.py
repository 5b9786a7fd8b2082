"""What is wrong with a configuration document, field by field.

Job: gather complaints in upstream's form; refuse the document with all of them.
"""

from sampan.api.objects import Obj

VERSIONS = tuple(f"apiserver.config.k8s.io/{one}" for one in ("v1", "v1beta1", "v1alpha1"))


class BadConfiguration(ValueError):
    """The text says what is wrong, one line per field."""


class Complaints:
    def __init__(self) -> None:
        self._found: list[str] = []

    def settle(self) -> None:
        """Raises BadConfiguration."""
        if self._found:
            raise BadConfiguration("\n".join(self._found))

    def say(self, path: str, why: str) -> None:
        self._found.append(f"{path}: {why}")

    def kind(self, document: Obj, kind: str) -> None:
        if document.get("apiVersion") not in VERSIONS or document.get("kind") != kind:
            shown = f"{document.get('apiVersion')}, {document.get('kind')}"
            self._found.append(f"{shown} is no {kind} of {VERSIONS[0]}")

    def only(self, given: Obj, known: set[str], path: str) -> None:
        for field in sorted(set(given) - known):
            self.say(f"{path}.{field}".lstrip("."), "Invalid value: unknown field")
