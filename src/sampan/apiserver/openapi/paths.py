"""The operations of the OpenAPI documents: which method of which resource does what.

Job: resources → operations, in the terms that versions 2 and 3 share. Pure.
Invariant: an operation exists for every verb in the table, and for none besides.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from sampan.api.objects import Obj
from sampan.api.resources import Resource, Subresource
from sampan.apiserver.openapi.parameters import (
    CONNECTED,
    DELETED,
    LISTED,
    LOGGED,
    SELECTED,
    WRITTEN,
    Parameter,
    in_path,
    in_query,
)
from sampan.core.fast_dataclass import dataclass

_JSON, _YAML = "application/json", "application/yaml"
FORMS = (_JSON, _YAML, "application/vnd.kubernetes.protobuf")
_STREAMS = (f"{_JSON};stream=watch", f"{FORMS[2]};stream=watch")
_JSON_PATCH, _MERGE = "application/json-patch+json", "application/merge-patch+json"
_STRATEGIC, _APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
ANY = ("*/*",)
TEXT = "text"  # instead of a kind: an answer that is no object
STATUS, _PATCH, _WATCH = "meta.k8s.io Status", "meta.k8s.io Patch", "v1 WatchEvent"
_OPTIONS = "v1 DeleteOptions"
# Whose delete is published to give the object (a Namespace's does, too, and says nothing of it).
_GIVES_DELETED = frozenset(
    {
        "persistentvolumeclaims",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
        "persistentvolumes",
        "csidrivers",
        "csinodes",
        "storageclasses",
        "volumeattachments",
        "volumeattributesclasses",
    }
)
_GIVES_DELETED_GROUPS = frozenset({"resource.k8s.io"})
_USE_WATCH = "deprecated: use the 'watch' parameter with a list operation instead"
_ONE_WATCHED = f"{_USE_WATCH}, filtered to a single item with the 'fieldSelector' parameter."


@dataclass(frozen=True, slots=True)
class Operation:
    path: str
    method: str  # get, post, put, patch, delete …
    # x-kubernetes-action: list, post, get, put, patch, delete, deletecollection, connect, watch …
    action: str
    operation_id: str
    description: str
    parameters: tuple[Parameter, ...] = ()
    takes: str = ""  # "apiVersion Kind" of the body
    gives: str = ""  # "apiVersion Kind" of the answer, or TEXT
    codes: tuple[int, ...] = (200,)
    consumes: tuple[str, ...] = ANY
    produces: tuple[str, ...] = FORMS
    kind: Obj = field(default_factory=dict)  # group, version, kind
    tag: str = ""


def operations(resources: Iterable[Resource], texts: Mapping[str, str]) -> Iterator[Operation]:
    """`texts`: what the published definitions say of the options of a deletion."""
    for row in resources:
        yield from _Maker(row, texts).operations()


def camel(group: str) -> str:
    """`RbacAuthorization`, from `rbac.authorization.k8s.io`."""
    words = (group or "core").removesuffix(".k8s.io").split(".")
    return "".join(word[:1].upper() + word[1:] for word in words)


def tag_of(group: str, version: str = "") -> str:
    name = camel(group)
    return f"{name[:1].lower()}{name[1:]}" + (f"_{version}" if version else "")


def with_article(kind: str) -> str:
    if kind == "Endpoints":  # the one that is a plural
        return kind
    return f"an {kind}" if kind[:1] in "AEIOU" else f"a {kind}"


class _Maker:
    """The operations of one resource."""

    def __init__(self, row: Resource, texts: Mapping[str, str]) -> None:
        self._row, self._texts = row, texts
        self._is_custom = row.custom is not None
        inner = "/namespaces/{namespace}" if row.namespaced else ""
        self._many = f"{row.path}{inner}/{row.plural}"
        self._watched = f"{row.path}/watch{inner}/{row.plural}"
        self._one = f"{self._many}/{{name}}"
        self._scoped = (in_path("namespace"),) if row.namespaced else ()
        self._named = ("Namespaced" if row.namespaced else "") + row.kind
        self._own = f"{row.api_version} {row.kind}"
        self._kind = {"group": row.group, "version": row.version, "kind": row.kind}
        self._group = camel(row.group) + row.version.capitalize()
        self._tag = tag_of(row.group, row.version)
        self._forms = (_JSON, _YAML) if self._is_custom else FORMS
        self._bodies = self._forms if self._is_custom else ANY
        self._read = in_query("resourceVersion") if self._is_custom else ()

    def operations(self) -> Iterator[Operation]:
        verbs = self._row.verbs
        yield from self._collection()
        yield from self._whole(self._one, verbs, self._named, self._own, "the", self._kind)
        if "delete" in verbs:
            yield self._delete()
        for sub in self._row.subresources:
            yield from self._subresource(sub)
        if "watch" in verbs and not self._is_custom:
            yield from self._watches()

    def _made(self, operation: Operation, kind: Obj | None = None) -> Operation:
        """With what all of the resource have: place, tag, and media types if they are not said."""
        kind = self._kind if kind is None else kind
        scoped = self._scoped if "{namespace}" in operation.path else ()
        name = in_path("name", f"name of the {kind['kind']}")
        named = (name,) if "{name}" in operation.path else ()
        pretty = () if operation.action == "connect" else in_query("pretty")
        return replace(
            operation,
            parameters=(*scoped, *named, *operation.parameters, *pretty),
            consumes=self._bodies if operation.consumes == ANY else operation.consumes,
            produces=self._forms if operation.produces == FORMS else operation.produces,
            kind=kind,
            tag=self._tag,
        )

    def _collection(self) -> Iterator[Operation]:
        row, group, many, own = self._row, self._group, self._many, self._own
        if "list" in row.verbs:
            told = "list or watch" if "watch" in row.verbs and not self._is_custom else "list"
            told = f"{told} objects of kind {row.kind}"
            places = [(many, f"list{group}{self._named}")]
            if row.namespaced:
                everywhere = f"list{group}{row.kind}ForAllNamespaces"
                places.append((f"{row.path}/{row.plural}", everywhere))
            produces = self._forms if self._is_custom else (*FORMS, *_STREAMS)
            listed, gives = in_query(*LISTED), f"{row.api_version} {row.list_kind}"
            for path, id_ in places:
                yield self._made(
                    Operation(
                        path, "get", "list", id_, told, listed, gives=gives, produces=produces
                    )
                )
        if "create" in row.verbs:
            id_, told = f"create{group}{self._named}", f"create {with_article(row.kind)}"
            written = self._options(WRITTEN)
            yield self._made(
                Operation(many, "post", "post", id_, told, written, own, own, (200, 201, 202))
            )
        if "deletecollection" in row.verbs:
            id_, told = f"delete{group}Collection{self._named}", f"delete collection of {row.kind}"
            query = in_query(*LISTED) if self._is_custom else self._options((*SELECTED, *DELETED))
            takes = "" if self._is_custom else _OPTIONS
            yield self._made(
                Operation(many, "delete", "deletecollection", id_, told, query, takes, STATUS)
            )

    def _delete(self) -> Operation:
        row = self._row
        given = row.plural in _GIVES_DELETED or row.group in _GIVES_DELETED_GROUPS
        gives = self._own if given and not self._is_custom else STATUS
        id_, told = f"delete{self._group}{self._named}", f"delete {with_article(row.kind)}"
        options = self._options(DELETED)
        codes = (200, 202)
        return self._made(
            Operation(self._one, "delete", "delete", id_, told, options, _OPTIONS, gives, codes)
        )

    def _options(self, names: Iterable[str]) -> tuple[Parameter, ...]:
        return in_query(*names, texts=self._texts)

    def _kind_of(self, sub: Subresource) -> Obj:
        if not sub.kind:
            return self._kind
        version = sub.version or self._row.version
        return {"group": sub.group, "version": version, "kind": sub.kind}

    def _subresource(self, sub: Subresource) -> Iterator[Operation]:
        path, named = f"{self._one}/{sub.name}", self._named + sub.name.capitalize()
        kind = self._kind_of(sub)
        told = self._kind if self._is_custom else kind  # of a custom kind's Scale, too
        if sub.kind.endswith("Options"):
            yield from self._connect(path, sub, named, kind)
            return
        group = f"{kind['group']}/" if kind["group"] else ""
        whole = TEXT if sub.name == "log" else f"{group}{kind['version']} {kind['kind']}"
        yield from self._whole(path, sub.verbs, named, whole, f"{sub.name} of the", told)
        if "create" in sub.verbs:
            about = f"create {sub.name} of {with_article(self._row.kind)}"
            id_, written = f"create{self._group}{named}", self._options(WRITTEN)
            codes = (200, 201, 202)
            yield self._made(
                Operation(path, "post", "post", id_, about, written, whole, whole, codes), kind
            )

    def _connect(self, path: str, sub: Subresource, named: str, kind: Obj) -> Iterator[Operation]:
        methods = {
            "create": "post", "get": "get", "update": "put", "patch": "patch", "delete": "delete"
        }  # fmt: skip
        asked = [methods[verb] for verb in sub.verbs]
        query = in_query(*CONNECTED.get(sub.kind, ()))
        places = [(path, "", query)]
        if sub.name == "proxy":
            asked += ["head", "options"]
            places.append((f"{path}/{{path}}", "WithPath", (in_path("path"), *query)))
        for where, suffix, parameters in places:
            for method in asked:
                id_ = f"connect{self._group}{method.capitalize()}{named}{suffix}"
                told = f"connect {method.upper()} requests to {sub.name} of {self._row.kind}"
                yield self._made(
                    Operation(
                        where, method, "connect", id_, told, parameters, gives=TEXT, produces=ANY
                    ),
                    kind,
                )

    def _whole(
        self, path: str, verbs: tuple[str, ...], named: str, whole: str, of: str, kind: Obj
    ) -> Iterator[Operation]:
        """Reading and changing one object."""
        about = f"{of} specified {self._row.kind}"
        if "get" in verbs:
            is_log = whole == TEXT
            id_, query = f"read{self._group}{named}", in_query(*LOGGED) if is_log else self._read
            produces = ("text/plain", *FORMS) if is_log else self._forms
            yield self._made(
                Operation(
                    path, "get", "get", id_, f"read {about}", query, gives=whole, produces=produces
                ),
                kind,
            )
        if "update" in verbs:
            id_, written = f"replace{self._group}{named}", self._options(WRITTEN)
            yield self._made(
                Operation(
                    path, "put", "put", id_, f"replace {about}", written, whole, whole, (200, 201)
                ),
                kind,
            )
        if "patch" in verbs:
            id_, written = f"patch{self._group}{named}", self._options((*WRITTEN, "force"))
            strategic = () if self._is_custom else (_STRATEGIC,)
            types = (_JSON_PATCH, _MERGE, *strategic, _APPLY)
            codes = (200,) if self._is_custom else (200, 201)
            told = f"partially update {about}"
            yield self._made(
                Operation(
                    path, "patch", "patch", id_, told, written, _PATCH, whole, codes, consumes=types
                ),
                kind,
            )

    def _watches(self) -> Iterator[Operation]:
        """The old paths of watches, which are still answered."""
        row, start, listed = self._row, f"watch{self._group}", in_query(*LISTED)
        many = f"watch individual changes to a list of {row.kind}. {_USE_WATCH}."
        one = f"watch changes to an object of kind {row.kind}. {_ONE_WATCHED}"
        places = [
            (self._watched, "watchlist", f"{start}{self._named}List", many),
            (f"{self._watched}/{{name}}", "watch", f"{start}{self._named}", one),
        ]
        if row.namespaced:
            id_ = f"{start}{row.kind}ListForAllNamespaces"
            places.append((f"{row.path}/watch/{row.plural}", "watchlist", id_, many))
        for path, action, id_, told in places:
            yield self._made(
                Operation(
                    path,
                    "get",
                    action,
                    id_,
                    told,
                    listed,
                    gives=_WATCH,
                    produces=(*FORMS, *_STREAMS),
                )
            )
