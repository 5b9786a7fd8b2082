"""The objects of one cluster, as plain dicts.

Job: words and manifests → requests; answers → dicts, or the ApiError that they stand for.
"""

from pathlib import Path

from sampan.api.errors import NotFound
from sampan.api.objects import Obj, name_of, namespace_of
from sampan.cli.objects.discovery import ApiResource
from sampan.client.blocking import JSON, BlockingClient
from sampan.testing.kit.kind_finder import KindFinder, UnknownKind
from sampan.testing.kit.manifests import Manifest, documents
from sampan.testing.kit.pacing import ClusterClock

MANAGER = "sampan-test"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
DEFINITION_SECONDS = 10.0  # until a kind is served whose definition is there
ObjectList = list[Obj]  # `list` is a verb below


class Objects:
    def __init__(self, api: BlockingClient, clock: ClusterClock, directory: Path) -> None:
        self._api, self._clock = api, clock
        self.kinds = KindFinder(api, directory)

    def apply(self, manifest: Manifest, namespace: str = "default") -> ObjectList:
        """Create or change what the manifest says (YAML, a file, an object, or several); returns
        the objects as the server has them."""
        return [self._apply(obj, namespace) for obj in documents(manifest)]

    def create(self, obj: Obj, namespace: str = "default") -> Obj:
        kind = self.kinds.of(obj)
        return self._write("POST", kind.path(namespace_of(obj) or namespace), body=obj)

    def get(self, what: str, name: str = "", *, namespace: str = "default") -> Obj:
        """`get("pod/web")`, `get("pod", "web")`. Raises NotFound."""
        kind, name = self.target(what, name)
        return self._api.json("GET", kind.path(namespace, name))

    def find(self, what: str, name: str = "", *, namespace: str = "default") -> Obj | None:
        """None where it is not there."""
        try:
            return self.get(what, name, namespace=namespace)
        except NotFound:
            return None

    def list(
        self, what: str, *, namespace: str = "default", labels: str = "", fields: str = ""
    ) -> ObjectList:
        """All of a kind; `namespace=""` of all namespaces."""
        query = {"labelSelector": labels, "fieldSelector": fields}
        path = self.kinds.find(what).path(namespace)
        answer = self._api.json("GET", path, {key: text for key, text in query.items() if text})
        # Items of a list do not say what they are; those who read them want to know.
        said = {"apiVersion": answer["apiVersion"], "kind": answer["kind"].removesuffix("List")}
        return [{**said, **item} for item in answer["items"]]

    def patch(
        self, what: str, patch: Obj, *, namespace: str = "default", status: bool = False
    ) -> Obj:
        """A merge patch."""
        kind, name = self.target(what, "")
        path = kind.path(namespace, name, "status" if status else "")
        return self._write("PATCH", path, body=patch, content_type=MERGE)

    def delete(self, what: str, name: str = "", *, namespace: str = "default") -> None:
        """Returns when the server has heard of it; `wait_for(…, "deleted")` waits for the rest."""
        kind, name = self.target(what, name)
        self._write("DELETE", kind.path(namespace, name))

    def events(
        self, about: str = "", *, namespace: str = "default", reason: str = ""
    ) -> ObjectList:
        """The oldest first; of one object where it is named."""
        kind, _, name = about.partition("/")
        wanted = self.kinds.find(kind).kind if about else ""
        found = [
            event
            for event in self.list("events", namespace=namespace)
            if (not about or _concerns(event, wanted, name)) and reason in ("", event.get("reason"))
        ]
        return sorted(found, key=lambda event: event["metadata"]["creationTimestamp"])

    def _apply(self, obj: Obj, namespace: str) -> Obj:
        kind = self._kind_of(obj)
        where = namespace_of(obj) or namespace
        if not (obj.get("metadata") or {}).get("name"):
            return self._write("POST", kind.path(where), body=obj)
        query = {"fieldManager": MANAGER, "force": "true"}
        path = kind.path(where, name_of(obj))
        return self._write("PATCH", path, query, body=obj, content_type=APPLY)

    def _write(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        *,
        body: Obj | None = None,
        content_type: str = JSON,
    ) -> Obj:
        answer = self._api.json(method, path, query, body=body, content_type=content_type)
        self._clock.settle_virtually()
        return answer

    def _kind_of(self, obj: Obj) -> ApiResource:
        """Perhaps of a kind whose definition was applied a moment ago."""
        found: list[ApiResource] = []

        def known() -> bool:
            try:
                found.append(self.kinds.of(obj))
            except UnknownKind:
                return False
            return True

        if known() or (
            self._has_definition(obj) and self._clock.wait_until(known, DEFINITION_SECONDS)
        ):
            return found[0]
        return self.kinds.of(obj)

    def _has_definition(self, obj: Obj) -> bool:
        group = str(obj.get("apiVersion", "")).partition("/")[0]
        return any(
            (item["spec"]["group"], item["spec"]["names"]["kind"]) == (group, obj.get("kind"))
            for item in self.list("customresourcedefinitions", namespace="")
        )

    def target(self, what: str, name: str) -> tuple[ApiResource, str]:
        kind, slash, inner = what.partition("/")
        if not (slash and inner) and not name:
            raise ValueError(f"{what!r} names no object: write kind/name")
        return self.kinds.find(kind), name or inner

    def look(self, kind: ApiResource, namespace: str, name: str) -> Obj | None:
        try:
            return self._api.json("GET", kind.path(namespace, name))
        except NotFound:
            return None


def _concerns(event: Obj, kind: str, name: str) -> bool:
    about = event.get("involvedObject") or {}
    return about.get("kind") == kind and name in ("", about.get("name"))
