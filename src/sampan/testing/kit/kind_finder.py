"""Which resource a test means by `deploy`, `Deployment`, `deployments.apps` or an object.

Job: words and objects → paths. What the published kinds do not say, the server is asked for.
"""

from pathlib import Path

from sampan.api.objects import Obj
from sampan.api.served import served_resources
from sampan.cli.errors import CliError
from sampan.cli.objects.discovery import ApiResource, Discovery
from sampan.client.blocking import BlockingClient
from sampan.core.clock import SystemClock


class UnknownKind(Exception):
    """The server has no such kind."""


def _published() -> list[ApiResource]:
    return [
        ApiResource(
            row.group, row.version, row.kind, row.plural, row.singular, row.namespaced,
            row.short_names, row.categories, row.verbs,
        )
        for row in served_resources()
    ]  # fmt: skip


class KindFinder:
    def __init__(self, api: BlockingClient, directory: Path) -> None:
        self._discovery = Discovery(api, str(directory / "cache"), SystemClock())
        self._by_word: dict[str, ApiResource] = {}
        self._by_kind: dict[tuple[str, str], ApiResource] = {}
        for row in _published():
            self._by_kind[row.api_version, row.kind] = row
            for word in (row.plural, row.singular, row.qualified, *row.short_names):
                self._by_word.setdefault(word, row)

    def find(self, word: str) -> ApiResource:
        """By plural, singular, short name or kind, as kubectl."""
        known = self._by_word.get(word.lower())
        if known is not None:
            return known
        try:
            self._discovery.refresh()
            return self._discovery.find(word)
        except CliError as error:
            raise UnknownKind(str(error)) from error

    def of(self, obj: Obj) -> ApiResource:
        """The resource of an object that says what it is."""
        said = (str(obj.get("apiVersion", "")), str(obj.get("kind", "")))
        known = self._by_kind.get(said)
        if known is not None:
            return known
        self._discovery.refresh()
        found = self._discovery.of_kind(*said)
        if found is None:
            raise UnknownKind(f"the server has no kind {said[1]!r} in version {said[0]!r}")
        return found

    def everything(self) -> list[ApiResource]:
        """Each kind once, in the version that the server puts first."""
        self._discovery.refresh()
        return [row for row in self._discovery.preferred() if "list" in row.verbs]
