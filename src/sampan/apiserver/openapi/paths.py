"""The paths of the OpenAPI documents: which method of which resource does what.

Job: resources → operations, in the terms that versions 2 and 3 share. Pure.
Invariant: an operation exists for every verb in the table, and for none besides.
"""

from collections.abc import Iterable, Iterator
from dataclasses import field, replace

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
    # x-kubernetes-action: list, post, get, put, patch, delete, deletecollection, connect
    action: str
    operation_id: str
    in_path: tuple[str, ...]
    query: tuple[str, ...] = ()
    takes: str = ""  # "apiVersion Kind" of the body
    gives: str = ""  # "apiVersion Kind" of the answer; empty: text
    consumes: tuple[str, ...] = _JSON
    kind: Obj = field(default_factory=dict)  # group, version, kind
    tag: str = ""


def parameter_type(name: str) -> str:
    return _TYPES.get(name, "string")


def operations(resources: Iterable[Resource]) -> Iterator[Operation]:
    for row in resources:
        yield from _Maker(row).operations()


class _Maker:
    """The operations of one resource."""

    def __init__(self, row: Resource) -> None:
        self._row = row
        scope = f"{row.path}/namespaces/{{namespace}}" if row.namespaced else row.path
        self._all = f"{row.path}/{row.plural}"
        self._many = f"{scope}/{row.plural}"
        self._single = f"{self._many}/{{name}}"
        self._scoped: tuple[str, ...] = ("namespace",) if row.namespaced else ()
        self._in_path = (*self._scoped, "name")
        self._named = ("Namespaced" if row.namespaced else "") + row.kind
        self._own = f"{row.api_version} {row.kind}"
        self._kind = {"group": row.group, "version": row.version, "kind": row.kind}
        self._group = _camel(row.group) + row.version.capitalize()
        group = _camel(row.group) if row.group else "core"
        self._tag = f"{group}_{row.version}".lower()

    def operations(self) -> Iterator[Operation]:
        for operation in (*self._collection(), *self._item()):
            yield self._complete(operation, self._kind)
        for sub in self._row.subresources:
            kind = self._kind_of(sub)
            for operation in self._subresource(sub, kind):
                yield self._complete(operation, kind)

    def _complete(self, operation: Operation, kind: Obj) -> Operation:
        query = (*operation.query, "pretty")
        return replace(operation, query=query, kind=kind, tag=self._tag)

    def _collection(self) -> Iterator[Operation]:
        row, listed = self._row, f"{self._row.api_version} {self._row.list_kind}"
        many, scoped, own = self._many, self._scoped, self._own
        if "list" in row.verbs:
            id_ = f"list{self._group}{self._named}"
            yield Operation(many, "get", "list", id_, scoped, _LISTED, gives=listed)
            if row.namespaced:
                id_ = f"list{self._group}{row.kind}ForAllNamespaces"
                yield Operation(self._all, "get", "list", id_, (), _LISTED, gives=listed)
        if "create" in row.verbs:
            id_ = f"create{self._group}{self._named}"
            yield Operation(many, "post", "post", id_, scoped, _WRITTEN, own, own)
        if "deletecollection" in row.verbs:
            id_ = f"delete{self._group}Collection{self._named}"
            query = tuple(dict.fromkeys((*_LISTED, *_DELETED)))
            action = "deletecollection"
            yield Operation(many, "delete", action, id_, scoped, query, gives=_STATUS)

    def _item(self) -> Iterator[Operation]:
        yield from self._whole(self._single, self._row.verbs, self._named, self._own)
        if "delete" in self._row.verbs:
            id_, takes = f"delete{self._group}{self._named}", "v1 DeleteOptions"
            in_path = self._in_path
            yield Operation(
                self._single, "delete", "delete", id_, in_path, _DELETED, takes, _STATUS
            )

    def _kind_of(self, sub: Subresource) -> Obj:
        if not sub.kind:
            return self._kind
        version = sub.version or self._row.version
        return {"group": sub.group, "version": version, "kind": sub.kind}

    def _subresource(self, sub: Subresource, kind: Obj) -> Iterator[Operation]:
        path, named = f"{self._single}/{sub.name}", self._named + sub.name.capitalize()
        if sub.kind.endswith("Options"):
            yield from self._connect(path, sub, named)
            return
        group = f"{kind['group']}/" if kind["group"] else ""
        whole = "" if sub.name == "log" else f"{group}{kind['version']} {kind['kind']}"
        yield from self._whole(path, sub.verbs, named, whole)
        if "create" in sub.verbs:
            id_ = f"create{self._group}{named}"
            yield Operation(path, "post", "post", id_, self._in_path, _WRITTEN, whole, whole)

    def _connect(self, path: str, sub: Subresource, named: str) -> Iterator[Operation]:
        methods = {
            "create": "post", "get": "get", "update": "put", "patch": "patch", "delete": "delete"
        }  # fmt: skip
        for verb in sub.verbs:
            method = methods[verb]
            id_ = f"connect{self._group}{method.capitalize()}{named}"
            yield Operation(path, method, "connect", id_, self._in_path)

    def _whole(
        self, path: str, verbs: tuple[str, ...], named: str, whole: str
    ) -> Iterator[Operation]:
        """Reading and changing one object."""
        if "get" in verbs:
            id_ = f"read{self._group}{named}"
            yield Operation(path, "get", "get", id_, self._in_path, gives=whole)
        if "update" in verbs:
            id_ = f"replace{self._group}{named}"
            yield Operation(path, "put", "put", id_, self._in_path, _WRITTEN, whole, whole)
        if "patch" in verbs:
            id_, query = f"patch{self._group}{named}", (*_WRITTEN, "force")
            yield Operation(
                path, "patch", "patch", id_, self._in_path, query, _PATCH, whole, _PATCH_TYPES
            )


def _camel(group: str) -> str:
    """`RbacAuthorization`, from `rbac.authorization.k8s.io`."""
    words = (group or "core").removesuffix(".k8s.io").split(".")
    return "".join(word[:1].upper() + word[1:] for word in words)
