"""The paths of the OpenAPI documents: which method of which resource does what.

Job: resources → operations, in the terms that versions 2 and 3 share. Pure.
Invariant: an operation exists for every verb in the table, and for none besides.
"""

from collections.abc import Iterable, Iterator

from sampan.api.objects import Obj
from sampan.api.resources import Resource, Subresource
from sampan.core.fast_dataclass import dataclass

_PATCH_TYPES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_JSON = ("application/json",)
_LISTED = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit",
    "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_WRITTEN = ("dryRun", "fieldManager", "fieldValidation")
_DELETED = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_TYPES = {
    "allowWatchBookmarks": "boolean", "sendInitialEvents": "boolean", "watch": "boolean",
    "force": "boolean", "orphanDependents": "boolean",
    "limit": "integer", "timeoutSeconds": "integer", "gracePeriodSeconds": "integer",
}  # fmt: skip
_STATUS, _PATCH = "meta.k8s.io Status", "meta.k8s.io Patch"


@dataclass(frozen=True, slots=True)
class Operation:
    path: str
    method: str  # get, post, put, patch, delete …
    action: (
        str  # x-kubernetes-action: list, post, get, put, patch, delete, deletecollection, connect
    )
    operation_id: str
    tag: str
    kind: Obj  # group, version, kind
    query: tuple[str, ...] = ()
    in_path: tuple[str, ...] = ()
    takes: str = ""  # "apiVersion Kind" of the body
    gives: str = ""  # "apiVersion Kind" of the answer; empty: text
    consumes: tuple[str, ...] = _JSON


def parameter_type(name: str) -> str:
    return _TYPES.get(name, "string")


def operations(resources: Iterable[Resource]) -> Iterator[Operation]:
    for row in resources:
        maker = _Maker(row)
        yield from maker.collection()
        yield from maker.item()
        for sub in row.subresources:
            yield from maker.subresource(sub)


class _Maker:
    """The operations of one resource."""

    def __init__(self, row: Resource) -> None:
        self._row = row
        scope = f"{row.path}/namespaces/{{namespace}}" if row.namespaced else row.path
        self._all = f"{row.path}/{row.plural}"
        self._many = f"{scope}/{row.plural}"
        self._one = f"{self._many}/{{name}}"
        self._scoped = ("namespace",) if row.namespaced else ()
        self._named = ("Namespaced" if row.namespaced else "") + row.kind
        self._own = f"{row.api_version} {row.kind}"
        self._group = _camel(row.group) + row.version.capitalize()

    def collection(self) -> Iterator[Operation]:
        row, listed = self._row, f"{self._row.api_version} {self._row.list_kind}"
        if "list" in row.verbs:
            id_ = f"list{self._group}{self._named}"
            yield self._made(self._many, "get", "list", id_, _LISTED, gives=listed)
            if row.namespaced:
                id_ = f"list{self._group}{row.kind}ForAllNamespaces"
                yield self._made(self._all, "get", "list", id_, _LISTED, scoped=(), gives=listed)
        if "create" in row.verbs:
            id_ = f"create{self._group}{self._named}"
            yield self._made(
                self._many, "post", "post", id_, _WRITTEN, takes=self._own, gives=self._own
            )
        if "deletecollection" in row.verbs:
            id_ = f"delete{self._group}Collection{self._named}"
            query = tuple(dict.fromkeys((*_LISTED, *_DELETED)))
            yield self._made(self._many, "delete", "deletecollection", id_, query, gives=_STATUS)

    def item(self) -> Iterator[Operation]:
        yield from self._single(self._one, self._row.verbs, self._named, self._own)
        if "delete" in self._row.verbs:
            id_, takes = f"delete{self._group}{self._named}", "v1 DeleteOptions"
            yield self._made(
                self._one, "delete", "delete", id_, _DELETED,
                scoped=(*self._scoped, "name"), takes=takes, gives=_STATUS,
            )  # fmt: skip

    def subresource(self, sub: Subresource) -> Iterator[Operation]:
        path, row = f"{self._one}/{sub.name}", self._row
        named = self._named + sub.name.capitalize()
        kind = {"group": row.group, "version": row.version, "kind": row.kind}
        whole = self._own
        if sub.kind:
            version = sub.version or row.version
            kind = {"group": sub.group, "version": version, "kind": sub.kind}
            whole = f"{sub.group}/{version} {sub.kind}" if sub.group else f"{version} {sub.kind}"
        if sub.kind.endswith("Options"):
            yield from self._connected(path, sub, named, kind)
            return
        if sub.name == "log":
            whole = ""
        yield from self._single(path, sub.verbs, named, whole, kind)
        if "create" in sub.verbs:
            id_ = f"create{self._group}{named}"
            yield self._made(
                path, "post", "post", id_, _WRITTEN, scoped=(*self._scoped, "name"),
                takes=whole, gives=whole, kind=kind,
            )  # fmt: skip

    def _connected(self, path: str, sub: Subresource, named: str, kind: Obj) -> Iterator[Operation]:
        methods = {
            "create": "post", "get": "get", "update": "put", "patch": "patch", "delete": "delete"
        }  # fmt: skip
        for verb in sub.verbs:
            method = methods[verb]
            id_ = f"connect{self._group}{method.capitalize()}{named}"
            scoped = (*self._scoped, "name")
            yield self._made(path, method, "connect", id_, (), scoped=scoped, kind=kind)

    def _single(
        self, path: str, verbs: tuple[str, ...], named: str, whole: str, kind: Obj | None = None
    ) -> Iterator[Operation]:
        """Reading and changing one object."""
        scoped = (*self._scoped, "name")
        if "get" in verbs:
            id_ = f"read{self._group}{named}"
            yield self._made(path, "get", "get", id_, scoped=scoped, gives=whole, kind=kind)
        if "update" in verbs:
            id_ = f"replace{self._group}{named}"
            yield self._made(
                path, "put", "put", id_, _WRITTEN, scoped=scoped, takes=whole, gives=whole,
                kind=kind,
            )  # fmt: skip
        if "patch" in verbs:
            id_ = f"patch{self._group}{named}"
            yield self._made(
                path, "patch", "patch", id_, (*_WRITTEN, "force"), scoped=scoped, takes=_PATCH,
                gives=whole, kind=kind, consumes=_PATCH_TYPES,
            )  # fmt: skip

    def _made(
        self,
        path: str,
        method: str,
        action: str,
        operation_id: str,
        query: tuple[str, ...] = (),
        *,
        scoped: tuple[str, ...] | None = None,
        takes: str = "",
        gives: str = "",
        kind: Obj | None = None,
        consumes: tuple[str, ...] = _JSON,
    ) -> Operation:
        row = self._row
        own = {"group": row.group, "version": row.version, "kind": row.kind}
        in_path = self._scoped if scoped is None else scoped
        tag = f"{_camel(row.group)}_{row.version}".lower() if row.group else f"core_{row.version}"
        return Operation(
            path, method, action, operation_id, tag, kind or own, (*query, "pretty"), in_path,
            takes, gives, consumes,
        )  # fmt: skip


def _camel(group: str) -> str:
    """`RbacAuthorization`, from `rbac.authorization.k8s.io`."""
    words = (group or "core").removesuffix(".k8s.io").split(".")
    return "".join(word[:1].upper() + word[1:] for word in words)
