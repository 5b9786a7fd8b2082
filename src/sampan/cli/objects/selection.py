"""Which objects a command is about: from arguments, selectors and files.

Job: words like `pods`, `deploy/web`, `po,svc -l a=b` and manifests become targets.
Invariant: what is wrong with the words is said before anything is asked of the server.
"""

from collections.abc import Iterator
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.objects import documents, manifests
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass

NOTHING_GIVEN = (
    "You must provide one or more resources by argument or filename.\n"
    "Example resource specifications include:\n"
    "   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n   '<resource> <name>'\n   '<resource>'"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A resource, and one name of it or all."""

    resource: ApiResource
    name: str = ""


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
    def label(self) -> str:
        """`deployment.apps/web`."""
        return f"{self.resource.qualified_singular}/{self.name}"


Found = Info | Exception


def targets(session: Session, words: list[str]) -> list[Target]:
    """`TYPE[,TYPE] [NAME …]` or `TYPE/NAME …`."""
    if any("/" in word for word in words):
        return _targets_with_slash(session, words)
    kinds, names = words[0].split(","), words[1:]
    resources = [resource for kind in kinds for resource in _resources(session, kind)]
    if not names:
        return [Target(resource) for resource in resources]
    return [Target(resource, name) for resource in resources for name in names]


def _targets_with_slash(session: Session, words: list[str]) -> list[Target]:
    found = []
    for word in words:
        parts = word.split("/")
        if len(parts) > 2:
            raise CliError("arguments in resource/name form may not have more than one slash")
        if len(parts) < 2:
            raise CliError(
                "there is no need to specify a resource type as a separate argument when passing "
                "arguments in resource/name form (e.g. 'kubectl get resource/<resource_name>' "
                "instead of 'kubectl get resource resource/<resource_name>'"
            )
        kind, name = parts
        if not kind or not name or "," in kind:
            raise CliError("arguments in resource/name form must have a single resource and name")
        found.append((kind, name))
    return [Target(session.discovery.find(kind), name) for kind, name in found]


def _resources(session: Session, word: str) -> list[ApiResource]:
    try:
        return [session.discovery.find(word)]
    except CliError:
        members = session.discovery.of_category(word.lower())
        if not members:
            raise
        return members


def check_selectors(values: Values, chosen: list[Target]) -> None:
    is_selecting = bool(query_of(values))
    named = any(target.name for target in chosen)
    if named and is_selecting:
        raise CliError("name cannot be provided when a selector is specified")
    if named and "all" in values and values["all"]:
        raise CliError("name cannot be provided when --all is specified") from None


def namespace_of(session: Session, values: Values) -> str:
    """Empty: all of them."""
    return "" if values["all-namespaces"] else session.namespace


def query_of(values: Values) -> dict[str, str]:
    query = {}
    flag = values.flags.get("selector")
    if flag is not None and flag.short == "l" and values["selector"]:
        query["labelSelector"] = values.text("selector")
    if values.get("field-selector"):
        query["fieldSelector"] = values.text("field-selector")
    return query


def list_objects(
    session: Session, resource: ApiResource, namespace: str, query: dict[str, str]
) -> list[Obj]:
    """All objects, page by page."""
    items: list[Obj] = []
    query = {**query, "limit": "500"}
    while True:
        try:
            answer = session.api.json("GET", resource.path(namespace), query)
        except ApiError as error:
            raise list_failure(error, resource, query) from error
        for item in answer.get("items") or []:
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
            items.append(item)
        token = (answer.get("metadata") or {}).get("continue")
        if not token:
            return items
        query = {**query, "continue": token}


def list_failure(error: ApiError, resource: ApiResource, query: dict[str, str]) -> ApiError:
    """kubectl says what it looked for when the server calls a selector bad."""
    if error.reason == "BadRequest" and ("labelSelector" in query or "fieldSelector" in query):
        group, version = resource.group, resource.version
        error.message = (
            f'Unable to find "{group}/{version}, Resource={resource.plural}" that match label '
            f'selector "{query.get("labelSelector", "")}", field selector '
            f'"{query.get("fieldSelector", "")}": {error.message}'
        )
    return error


def live(
    session: Session,
    values: Values,
    words: list[str],
    *,
    all_objects: bool = False,
    nothing: str = NOTHING_GIVEN,
) -> Iterator[Found]:
    """The objects as the server has them, one by one; a failure takes the place of its object."""
    if manifests.has_files(values) if "filename" in values else False:
        yield from _of_files_live(session, values)
        return
    if not words:
        raise CliError(nothing)
    chosen = targets(session, words)
    check_selectors(values, chosen)
    query = query_of(values)
    everywhere = "all-namespaces" in values and values["all-namespaces"]
    if not any(target.name for target in chosen) and not query and not all_objects:
        raise CliError("resource(s) were provided, but no name was specified")
    for target in chosen:
        namespace = "" if everywhere else session.namespace
        yield from target_objects(session, target, namespace, query)


def target_objects(
    session: Session, target: Target, namespace: str, query: dict[str, str]
) -> Iterator[Found]:
    resource = target.resource
    try:
        if target.name:
            obj = session.api.json("GET", resource.path(namespace, target.name))
            yield info_of(resource, obj, namespace)
            return
        for obj in list_objects(session, resource, namespace, query):
            yield info_of(resource, obj, namespace)
    except ApiError as error:
        yield error


def info_of(resource: ApiResource, obj: Obj, namespace: str, source: str = "") -> Info:
    meta = obj.get("metadata") or {}
    where = meta.get("namespace") or namespace if resource.namespaced else ""
    return Info(resource, where, str(meta.get("name") or ""), obj, source)


def _of_files_live(session: Session, values: Values) -> Iterator[Found]:
    for found in from_files(session, values):
        if isinstance(found, Exception):
            yield found
            continue
        try:
            obj = session.api.json("GET", found.path)
        except ApiError as error:
            yield error
            continue
        yield Info(found.resource, found.namespace, found.name, obj, found.source)


def from_files(session: Session, values: Values, *, check: Any = None) -> Iterator[Found]:
    """The objects of the manifests, with the namespace that they will be in."""
    for manifest in manifests.read(session, values):
        try:
            if check is not None:
                check(manifest)
            yield _map(session, manifest)
        except CliError as error:
            yield error


def _map(session: Session, manifest: manifests.Manifest) -> Info:
    obj, source = manifest.obj, manifest.source
    if not isinstance(obj, dict):
        raise CliError(
            f"unable to decode \"{source}\": Object 'Kind' is missing in {json_text(obj)!r}"
        )
    version, kind = documents.kind_of(obj)
    if not kind:
        raise CliError(
            f"unable to decode \"{source}\": Object 'Kind' is missing in '{json_text(obj)}'"
        )
    resource = session.discovery.of_kind(version, kind)
    meta = obj.get("metadata") or {}
    if resource is None:
        name, namespace = meta.get("name") or "", meta.get("namespace") or ""
        raise CliError(
            f'resource mapping not found for name: "{name}" namespace: "{namespace}" from '
            f'"{source}": no matches for kind "{kind}" in version "{version}"\n'
            "ensure CRDs are installed first"
        )
    namespace = ""
    if resource.namespaced:
        namespace = meta.get("namespace") or session.namespace
        if session.namespace_is_given and namespace != session.namespace:
            raise CliError(
                f'the namespace from the provided object "{namespace}" does not match the '
                f"namespace \"{session.namespace}\". You must pass '--namespace={namespace}' to "
                "perform this operation."
            )
        obj = {**obj, "metadata": {**meta, "namespace": namespace}}
    return Info(resource, namespace, str(meta.get("name") or ""), obj, source)


def json_text(obj: Any) -> str:
    from sampan.cli.printers.json_text import compact

    return compact(obj, ordered=False)
