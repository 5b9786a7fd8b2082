"""One object of a command: where it is, and what is known of it.

Job: a manifest or a name to an Info; lists page by page; failures in kubectl's words.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.objects import documents
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.manifests import Manifest
from sampan.cli.session import Session
from sampan.client.blocking import NoAnswer
from sampan.core.fast_dataclass import dataclass

PAGE = 500
_META_TYPES: dict[str, tuple[type, str]] = {
    **dict.fromkeys(
        ("name", "namespace", "generateName", "uid", "resourceVersion"), (str, "string")
    ),
    **dict.fromkeys(("labels", "annotations"), (dict, "map[string]string")),
    "finalizers": (list, "[]string"),
    "ownerReferences": (list, "[]v1.OwnerReference"),
    "generation": (int, "int64"),
    "deletionGracePeriodSeconds": (int, "int64"),
}


@dataclass(frozen=True, slots=True)
class Info:
    """One object: where it is, and what is known of it."""

    resource: ApiResource
    namespace: str
    name: str
    obj: Obj
    source: str = ""

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace, self.name)

    @property
    def where(self) -> str:
        """As messages about a request say which object it was about."""
        one = self.resource
        version = f"{one.group}/{one.version}"
        return (
            f'Resource: "{version}, Resource={one.plural}", GroupVersionKind: "{version}, '
            f'Kind={one.kind}"\nName: "{self.name}", Namespace: "{self.namespace}"'
        )

    @property
    def label(self) -> str:
        """`deployment.apps/web`."""
        return f"{self.resource.qualified_singular}/{self.name}"


@dataclass(frozen=True, slots=True)
class Form:
    """In which form objects are asked for: as they are, or as tables."""

    accept: str = "application/json"
    query: Mapping[str, str] = MappingProxyType({})


Found = Info | Exception
Validate = Callable[[Session, Manifest], None]


def info_of(resource: ApiResource, obj: Obj, namespace: str, source: str = "") -> Info:
    meta = obj.get("metadata") or {}
    where = meta.get("namespace") or namespace if resource.namespaced else ""
    return Info(resource, where, str(meta.get("name") or ""), obj, source)


def named(doing: str, source: str, error: Exception) -> Exception:
    """The failure with what was done and the file it was done for; what the server said of it
    stays."""
    if not source:
        return error
    if isinstance(error, ApiError):
        error.message = f'error when {doing} "{source}": {error.message}'
        return error
    return CliError(f'error when {doing} "{source}": {error}')


def get_object(
    session: Session,
    resource: ApiResource,
    namespace: str,
    name: str,
    *,
    subresource: str = "",
    source: str = "",
    form: "Form | None" = None,
) -> Info:
    """As the server has it. Raises ApiError, CliError."""
    if not name:
        raise CliError("resource name may not be empty")
    where = namespace if resource.namespaced else ""
    form = form or Form()
    try:
        path = resource.path(where, name, subresource)
        obj = session.api.json("GET", path, dict(form.query), accept=form.accept)
    except ApiError as error:
        raise blamed(session, error, where) from error
    info = info_of(resource, obj, where, source)
    return info if obj.get("kind") != "Table" else Info(resource, where, name, obj, source)


def blamed(session: Session, error: ApiError, namespace: str) -> ApiError:
    """Of an object that is not there: is its namespace?"""
    if error.code != 404 or namespace in ("", "default"):
        return error
    try:
        session.api.json("GET", f"/api/v1/namespaces/{namespace}")
    except ApiError as other:
        return other if other.code == 404 else error
    return error


def list_answers(
    session: Session,
    resource: ApiResource,
    namespace: str,
    query: dict[str, str],
    form: Form | None = None,
) -> Iterator[Obj]:
    """Page by page, lists or tables; a `limit` of 0 asks for all at once."""
    where, form = namespace if resource.namespaced else "", form or Form()
    query = {"limit": str(PAGE), **query, **form.query}
    if query["limit"] == "0":
        del query["limit"]
    while True:
        try:
            answer = session.api.json("GET", resource.path(where), query, accept=form.accept)
        except ApiError as error:
            raise list_failure(error, resource, query) from error
        yield answer
        token = (answer.get("metadata") or {}).get("continue")
        if not token:
            return
        query = {**query, "continue": token}


def list_pages(
    session: Session, resource: ApiResource, namespace: str, query: dict[str, str]
) -> Iterator[list[Obj]]:
    for answer in list_answers(session, resource, namespace, query):
        yield items_of(resource, answer)


def items_of(resource: ApiResource, answer: Obj) -> list[Obj]:
    """Each says what it is, as those of lists need not."""
    items = answer.get("items") or []
    kind = str(answer.get("kind") or "").removesuffix("List") or resource.kind
    for item in items:
        item.setdefault("apiVersion", answer.get("apiVersion") or resource.api_version)
        item.setdefault("kind", kind)
    return list(items)


def list_failure(error: ApiError, resource: ApiResource, query: dict[str, str]) -> ApiError:
    """kubectl says what it looked for when the server calls it bad, or does not know it."""
    if error.reason not in ("BadRequest", "NotFound"):
        return error
    what = f'"{resource.group}/{resource.version}, Resource={resource.plural}"'
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    if labels or fields:
        error.message = (
            f'Unable to find {what} that match label selector "{labels}", field selector '
            f'"{fields}": {error.message}'
        )
    else:
        error.message = f"Unable to list {what}: {error.message}"
    return error


def map_object(
    session: Session,
    manifest: Manifest,
    *,
    local: bool = False,
    typed: bool = False,
    default_namespace: str = "",
    enforced: bool = False,
) -> list[Found]:
    """The object of a manifest, or those of a list, with the namespace that they will be in.
    `typed`: only what kubectl has a Go type for."""
    _check_decodes(manifest, typed)
    found: list[Found] = []
    for obj in items_of_list(manifest.obj):
        item = Manifest(obj, manifest.source)
        try:
            if obj is not manifest.obj:
                _check_decodes(item, typed)
            if local:
                found.append(_placed(item, _local_resource(obj), "", False))
                continue
            found.append(_placed(item, _resource(session, item), default_namespace, enforced))
        except CliError as error:
            found.append(error)
    return found


def items_of_list(obj: Any) -> list[Any]:
    """Of lists in lists, too; anything else is its only item."""
    if not isinstance(obj, dict) or not isinstance(obj.get("items"), list):
        return [obj]
    if not str(obj.get("kind") or "").endswith("List"):
        return [obj]
    return [inner for item in obj["items"] for inner in items_of_list(item)]


def _check_decodes(manifest: Manifest, typed: bool) -> None:
    from sampan.api.decode_scalars import json_word

    obj, source = manifest.obj, manifest.source
    if obj is not None and not isinstance(obj, dict):
        raise CliError(
            f'unable to decode "{source}": json: cannot unmarshal {json_word(obj)} into Go value '
            "of type unstructured.detector"
        )
    if not obj or not obj.get("kind"):
        raise CliError(
            f"unable to decode \"{source}\": Object 'Kind' is missing in '{json_text(obj)}'"
        )
    if typed:
        from sampan.cli.objects.typed import is_registered, unregistered

        version, kind = documents.kind_of(obj)
        if kind != "List" and not is_registered(version, kind):
            raise CliError(f'unable to decode "{source}": {unregistered(version, kind)}')
    why = _metadata_problem(obj.get("metadata"))
    if why:
        raise CliError(f'unable to decode "{source}": json: cannot unmarshal {why}')


def _metadata_problem(meta: Any) -> str:
    from sampan.api.decode_scalars import json_word

    if meta is None:
        return ""
    if not isinstance(meta, dict):
        where = "metadataOnlyObject.metadata of type v1.ObjectMeta"
        return f"{json_word(meta)} into Go struct field {where}"
    for name, value in meta.items():
        wanted, said = _META_TYPES.get(name, (object, ""))
        where = f"Go struct field ObjectMeta.metadata.{name} of type"
        if value is not None and not isinstance(value, wanted):
            return f"{json_word(value)} into {where} {said}"
        if wanted is dict and isinstance(value, dict):
            for item in value.values():
                if item is not None and not isinstance(item, str):
                    return f"{json_word(item)} into {where} string"
    return ""


def _local_resource(obj: Obj) -> ApiResource:
    version, kind = documents.kind_of(obj)
    group, _, number = version.rpartition("/")
    return ApiResource(group, number, kind, kind.lower() + "s", kind.lower(), True)


def _resource(session: Session, manifest: Manifest) -> ApiResource:
    version, kind = documents.kind_of(manifest.obj)
    try:
        resource = session.discovery.of_kind(version, kind)
    except NoAnswer as error:
        session.unreachable(error, 1)
        why = error.text_for("GET", "/api?timeout=32s")
        raise CliError(f'unable to recognize "{manifest.source}": {why}') from error
    if resource is not None:
        return resource
    meta = manifest.obj.get("metadata") or {}
    name, namespace = meta.get("name") or "", meta.get("namespace") or ""
    raise CliError(
        f'resource mapping not found for name: "{name}" namespace: "{namespace}" from '
        f'"{manifest.source}": no matches for kind "{kind}" in version "{version}"\n'
        "ensure CRDs are installed first"
    )


def _placed(manifest: Manifest, resource: ApiResource, default: str, enforced: bool) -> Info:
    obj, meta = manifest.obj, manifest.obj.get("metadata") or {}
    name, namespace = str(meta.get("name") or ""), str(meta.get("namespace") or "")
    if not resource.namespaced:
        if "namespace" in meta:
            rest = {key: value for key, value in meta.items() if key != "namespace"}
            obj = {**obj, "metadata": rest}
        return Info(resource, "", name, obj, manifest.source)
    if enforced and namespace and namespace != default:
        raise CliError(
            f'the namespace from the provided object "{namespace}" does not match the '
            f"namespace \"{default}\". You must pass '--namespace={namespace}' to "
            "perform this operation."
        )
    if not namespace and default:
        namespace = default
        obj = {**obj, "metadata": {**meta, "namespace": namespace}}
    return Info(resource, namespace, name, obj, manifest.source)


def json_text(obj: Any) -> str:
    from sampan.cli.printers.json_text import compact

    return compact(obj, ordered=False)
