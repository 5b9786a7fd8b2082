"""Every kind that a server serves now: the built-in ones, and those that definitions add.

Job: look up a resource by plural or by kind; take the rows of a definition in and out.
Invariant: a built-in row is never hidden by a custom one.
Owner: who follows the definitions (apiserver/extension/definitions.py); everybody else reads.
"""

from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj
from sampan.api.resources import MEASURED, Resource, Subresource
from sampan.api.served import served_resources


class Kinds:
    def __init__(self) -> None:
        self.generation = 0  # grows with every change
        self.built_in = served_resources()
        self._own = {
            (row.group, row.version, row.plural): row for row in (*self.built_in, *MEASURED)
        }
        self._own_kinds = {(row.api_version, row.kind): row for row in self.built_in}
        self._rows: dict[str, tuple[Resource, ...]] = {}  # by the definition's name
        self._by_plural: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}

    def by_plural(self, group: str, version: str, plural: str) -> Resource | None:
        key = (group, version, plural)
        return self._own.get(key) or self._by_plural.get(key)

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        key = (api_version, kind)
        return self._own_kinds.get(key) or self._by_kind.get(key)

    def served(self, resource: Resource) -> Resource | None:
        """The row that is served under the names of `resource`, which somebody else has made."""
        return self.by_plural(resource.group, resource.version, resource.plural)

    def of_definition(self, definition: str) -> tuple[Resource, ...]:
        return self._rows.get(definition, ())

    def custom(self) -> list[Resource]:
        return [row for rows in self._rows.values() for row in rows]

    def all(self) -> Sequence[Resource]:
        return (*self.built_in, *self.custom())

    def replace(self, definition: str, rows: Iterable[Resource]) -> bool:
        """The rows of a definition from now on; none where it serves nothing. Whether that is
        another answer than before."""
        new = tuple(rows)
        old = self._rows.pop(definition, ())
        for row in old:
            self._by_plural.pop((row.group, row.version, row.plural), None)
            self._by_kind.pop((row.api_version, row.kind), None)
        if new:
            self._rows[definition] = new
        for row in new:
            self._by_plural[row.group, row.version, row.plural] = row
            self._by_kind[row.api_version, row.kind] = row
        self.generation += 1
        return old != new


def listed_resources(listed: Obj, group: str, version: str) -> list[Resource]:
    """Of an APIResourceList; of the subresources only that they are there."""
    rows = listed.get("resources") or ()
    parts: dict[str, list[Subresource]] = {}
    for row in rows:
        plural, slash, name = str(row["name"]).partition("/")
        if slash:
            parts.setdefault(plural, []).append(Subresource(name, tuple(row.get("verbs") or ())))
    return [
        Resource(
            group, version, str(row.get("kind") or ""), str(row["name"]),
            row.get("namespaced") is True, verbs=tuple(row.get("verbs") or ()),
            subresources=tuple(parts.get(row["name"], ())),
        )
        for row in rows
        if "/" not in row["name"]
    ]  # fmt: skip
