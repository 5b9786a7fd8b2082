"""The aggregation layer: groups and versions that other API servers serve, beside our own.

Job: put its parts together, start and stop them, and say what discovery has to add.
"""

from collections.abc import Mapping, Sequence

from sampan.api.calls import Answer, Call, ListAnswer
from sampan.api.errors import ServiceUnavailable
from sampan.api.objects import Obj, spec_of
from sampan.api.resources import API_SERVICES, Resource
from sampan.apiserver.aggregation.calls import perform_elsewhere
from sampan.apiserver.aggregation.checks import Checks
from sampan.apiserver.aggregation.foreign_documents import ForeignOpenApi
from sampan.apiserver.aggregation.proxy import AggregatedProxy
from sampan.apiserver.aggregation.servers import (
    AggregatedServer,
    AggregatedServers,
    GroupVersion,
)
from sampan.apiserver.authn.user import User
from sampan.apiserver.write.request_scope import RequestScope
from sampan.core.metrics import Metrics


class Aggregation:
    def __init__(self, scope: RequestScope, metrics: Metrics) -> None:
        self._registry = scope.registry
        self.servers = AggregatedServers(scope.registry, scope.settings, scope.rng)
        self.proxy = AggregatedProxy(self.servers, scope)
        self._checks = Checks(scope, self.servers, metrics)
        self._documents = self._checks.documents

    @property
    def generation(self) -> int:
        """Grows whenever discovery has something else to say."""
        return self._documents.generation

    def start(self) -> None:
        self.servers.start()
        self._checks.start()

    async def stop(self) -> None:
        await self._checks.stop()
        await self.servers.stop()

    def server_of(self, resource: Resource) -> AggregatedServer | None:
        """Who serves it, where that is not this server."""
        servers = self.servers.by_version
        return servers.get((resource.group, resource.version)) if servers else None

    def resources(self, group: str, version: str) -> list[Resource] | None:
        """Of another server; None where it is ours. Raises ServiceUnavailable."""
        server = self.servers.by_version.get((group, version))
        if server is None:
            return None
        if server.is_scripted:
            return []
        found = self._documents.versions.get((group, version))
        if found is None:
            raise ServiceUnavailable(f"stale GroupVersion discovery: {group}/{version}")
        return [
            Resource(
                group, version, entry["responseKind"].get("kind", ""), entry["resource"],
                entry["scope"] == "Namespaced", verbs=tuple(entry["verbs"]),
            )
            for entry in found
        ]  # fmt: skip

    async def perform(
        self, server: AggregatedServer, user: User, call: Call
    ) -> Answer | ListAnswer:
        """For callers in this process. Raises ApiError."""
        return await perform_elsewhere(self.proxy, server, user, call)

    def elsewhere(self) -> Mapping[GroupVersion, Sequence[Obj] | None]:
        """What other servers serve; None: one that cannot be asked."""
        return {
            version: () if server.is_scripted else self._documents.versions.get(version)
            for version, server in self.servers.by_version.items()
        }

    @property
    def openapi_generation(self) -> int:
        return self._documents.openapi_generation

    def openapi(self) -> Mapping[str, ForeignOpenApi]:
        """By the documents' names, as "apis/GROUP/VERSION"; a copy, for other threads."""
        return dict(self._documents.openapi)

    def openapi_server(self, path: str) -> AggregatedServer | None:
        """Who has the document of version 3 at this path, where that is not this server."""
        start = "/openapi/v3/apis/"
        if not self.servers.by_version or not path.startswith(start):
            return None
        found = self.servers.at(path.removeprefix("/openapi/v3"))
        return None if found is None or found.is_scripted else found

    def priorities(self) -> Mapping[GroupVersion, tuple[int, int]]:
        found = {}
        for item in self._registry.kind(API_SERVICES).items.values():
            spec = spec_of(item.obj)
            version = (str(spec.get("group") or ""), str(spec.get("version") or ""))
            found[version] = (
                int(spec.get("groupPriorityMinimum") or 0),
                int(spec.get("versionPriority") or 0),
            )
        return found
