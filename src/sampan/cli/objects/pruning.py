"""--prune: what an earlier apply made and the files no longer have.

Job: find the applied objects of the allowed kinds that were not applied now, and delete them.
"""

from collections.abc import Iterator

from sampan.api.objects import Obj, labels_of
from sampan.api.rules.selectors import parse_label_selector
from sampan.cli import common_flags
from sampan.cli.common_flags import DryRun
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.objects import applying, selection, server_side
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.infos import Info, info_of
from sampan.cli.session import Session

# As kubectl's own list, core first.
DEFAULT_KINDS = (
    "core/v1/ConfigMap", "core/v1/Endpoints", "core/v1/Namespace",
    "core/v1/PersistentVolumeClaim", "core/v1/PersistentVolume", "core/v1/Pod",
    "core/v1/ReplicationController", "core/v1/Secret", "core/v1/Service", "batch/v1/Job",
    "batch/v1/CronJob", "networking.k8s.io/v1/Ingress", "apps/v1/DaemonSet", "apps/v1/Deployment",
    "apps/v1/ReplicaSet", "apps/v1/StatefulSet",
)  # fmt: skip
DEPRECATED = (
    "Deprecated: kubectl apply will no longer prune non-namespaced resources by default when used "
    "with the --namespace flag in a future release. To preserve the current behaviour, list the "
    "resources you want to target explicitly in the --prune-allowlist flag."
)


def matches(selector: str, obj: Obj) -> bool:
    return bool(parse_label_selector(selector).matches(labels_of(obj)))


def kinds(allowlist: list[str]) -> list[tuple[str, str]]:
    """(apiVersion, kind) of each."""
    found = []
    for text in allowlist or DEFAULT_KINDS:
        parts = text.split("/")
        if len(parts) != 3:
            raise CliError(
                f"invalid GroupVersionKind format: {text}, please follow <group/version/kind>"
            )
        group, version, kind = parts
        found.append((version if group == "core" else f"{group}/{version}", kind))
    return found


def check_kinds(session: Session, allowlist: list[str]) -> None:
    """Every one that is named must be there."""
    for api_version, kind in kinds(allowlist) if allowlist else ():
        if session.discovery.of_kind(api_version, kind) is None:
            raise CliError(f'no matches for kind "{kind}" in version "{api_version}"')


class Pruning:
    def __init__(self, session: Session, values: Values, done: list[Info], applier: str) -> None:
        """`applier`: what this manager applied on the server counts as applied, too."""
        self._session, self._done, self._applier = session, done, applier
        self._allowlist = values["prune-allowlist"]
        self._selector = values.text("selector")

    def prune(self, strategy: DryRun) -> Iterator[str]:
        """Deletes, and yields what is to be said."""
        for info in self.candidates():
            if strategy != "client":
                body: Obj = {
                    "kind": "DeleteOptions",
                    "apiVersion": "v1",
                    "propagationPolicy": "Background",
                }
                if strategy == "server":
                    body["dryRun"] = ["All"]
                self._session.api.json("DELETE", info.path, body=body)
            yield f"{info.label} pruned{common_flags.suffix(strategy)}"

    def candidates(self, *, warns: bool = False) -> Iterator[Info]:
        """`warns`: of what is going to change, whether or not a namespace was given."""
        if not self._allowlist and (warns or self._session.namespace_is_given):
            self._session.klog("W", "prune.go:71", DEPRECATED)
        kept = {(info.resource.kind, info.namespace, info.name) for info in self._done}
        named = {info.namespace for info in self._done if info.namespace}
        namespaces = sorted(named or {self._session.namespace})
        for resource in self._resources():
            for namespace in namespaces if resource.namespaced else [""]:
                for info in self._applied(resource, namespace):
                    if (resource.kind, info.namespace, info.name) not in kept:
                        yield info

    def _resources(self) -> Iterator[ApiResource]:
        for api_version, kind in kinds(self._allowlist):
            resource = self._session.discovery.of_kind(api_version, kind)
            if resource is not None:
                yield resource
            elif self._allowlist:
                raise CliError(f'no matches for kind "{kind}" in version "{api_version}"')

    def _applied(self, resource: ApiResource, namespace: str) -> Iterator[Info]:
        query = {"labelSelector": self._selector} if self._selector else {}
        for obj in selection.list_objects(self._session, resource, namespace, query):
            if applying.last_applied_of(obj) is not None or (
                self._applier and server_side.is_applied(obj, self._applier)
            ):
                yield info_of(resource, obj, namespace)
