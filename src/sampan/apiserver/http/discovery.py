"""Discovery: which groups, versions and resources this server has, in the forms clients ask for.

Job: from the table of resources to the bytes of /api, /apis and what is below them. Pure.
Invariant: every form is derived from the aggregated one, so that they cannot disagree.
A changed list of resources (a CustomResourceDefinition came or went) means a new Discovery.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence

from sampan.api.custom.custom_version import custom_of
from sampan.api.objects import Obj
from sampan.api.protobuf.discovery_forms import discovery_bytes
from sampan.api.resources import Resource, Subresource
from sampan.api.versions import version_rank
from sampan.apiserver.http.negotiate import PROTOBUF, STATUS, Form, encoded, form_of
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.accept import parse_accept
from sampan.core.http.written_forms import JSON, YAML

_AGGREGATED = "APIGroupDiscoveryList"
_DISCOVERY_GROUP = "apidiscovery.k8s.io"
_DISCOVERY_VERSIONS = ("v2",)
# As upstream hashes them: by the version that was stored when hashes began.
_HASHED_AS = {("apiextensions.k8s.io", "customresourcedefinitions"): "v1beta1"}
_FIRST_GROUP, _FIRST_PRIORITY = "apiregistration.k8s.io", 20001  # it has no APIService itself

GroupVersion = tuple[str, str]
# What each serves, as entries of an APIGroupDiscovery; None: it cannot be asked.
Elsewhere = Mapping[GroupVersion, Sequence[Obj] | None]
Priorities = Mapping[GroupVersion, tuple[int, int]]  # of the group, of the version in it


@dataclass(frozen=True, slots=True)
class Document:
    """A body that is the same for everybody, with what HTTP needs to cache it."""

    body: bytes
    etag: str  # with its quotes; empty where it is not to be kept
    content_type: str = "application/json"


class Discovery:
    """The documents of one list of resources; each is made when it is first asked for."""

    def __init__(
        self,
        resources: Iterable[Resource],
        *,
        server_address: str = "",
        elsewhere: "Elsewhere | None" = None,
        priorities: "Priorities | None" = None,
    ) -> None:
        """`elsewhere`: versions of other servers, which come before our own. Without `priorities`
        groups stand as they come."""
        rows = list(resources)
        self._rows = {(row.group, row.version, row.plural): row for row in rows}
        self._groups = _groups(rows, elsewhere or {}, priorities or {})
        self._server_address = server_address
        self._made: dict[tuple[str, str, str], Document | None] = {}

    def document(self, path: str, accept: str = "") -> Document | None:
        """The answer to a GET of a discovery path; None where there is no such group or version.
        Raises NotAcceptable."""
        path = path.rstrip("/")
        media, version = wanted_form(accept)
        version = version if path in ("/api", "/apis") else ""
        data = None
        if not version:
            data = self._legacy(path)
            if data is None:
                return None
            media = form_of(accept, STATUS).media
        key = (path, version, media)
        if key not in self._made:
            self._made[key] = _document(data or self._aggregate(path, version), version, media)
        return self._made[key]

    def _aggregate(self, path: str, version: str) -> Obj:
        core = path == "/api"
        return {
            "kind": _AGGREGATED,
            "apiVersion": f"{_DISCOVERY_GROUP}/{version}",
            "metadata": {},
            "items": [group for group in self._groups if _is_core(group) is core],
        }

    def _legacy(self, path: str) -> Obj | None:
        parts = path.strip("/").split("/")
        match parts:
            case ["api"]:
                return self._core_versions()
            case ["apis"]:
                groups = [_group_entry(item) for item in self._groups if not _is_core(item)]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["api", version]:
                return self._resource_list("", version)
            case ["apis", name] if name:
                group = self._group(name)
                head = {"kind": "APIGroup", "apiVersion": "v1"}
                return None if group is None else head | _group_entry(group)
            case ["apis", name, version] if name:
                return self._resource_list(name, version)
        return None

    def _is_custom(self, group: str, version: str) -> bool:
        rows = self._rows.values()
        return any((row.group, row.version) == (group, version) and row.custom for row in rows)

    def _core_versions(self) -> Obj:
        core = self._group("")
        versions = [version["version"] for version in core["versions"]] if core else []
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": self._server_address}
        return {
            "kind": "APIVersions",
            "versions": versions,
            "serverAddressByClientCIDRs": [address],
        }

    def _group(self, name: str) -> Obj | None:
        return next(
            (group for group in self._groups if group["metadata"].get("name", "") == name), None
        )

    def _resource_list(self, name: str, version: str) -> Obj | None:
        group = self._group(name)
        found = (
            next((item for item in group["versions"] if item["version"] == version), None)
            if group
            else None
        )
        if found is None:
            return None
        rows: list[Obj] = []
        for resource in found.get("resources", ()):
            row = self._rows.get((name, version, resource["resource"]))
            stored = {} if row is None else _storage_version(row)
            rows.append(_legacy_resource(resource, name, version) | stored)
            rows += (
                _legacy_subresource(resource, sub, name, version)
                for sub in resource.get("subresources", ())
            )
        head = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if name else {})
        return head | {
            "groupVersion": f"{name}/{version}" if name else version,
            "resources": sorted(rows, key=lambda row: str(row["name"]).partition("/")[0])
            if self._is_custom(name, version)
            else sorted(rows, key=lambda row: str(row["name"])),
        }


def wanted_form(accept: str) -> tuple[str, str]:
    """(media type, version of the aggregated form or nothing for the legacy one): what is wanted
    most of what is offered, but JSON for who takes that as well as protobuf. Empty where nothing
    is."""
    if not accept:
        return JSON, ""
    in_protobuf: tuple[str, str] | None = None
    for clause in parse_accept(accept):
        given = clause.parameters
        shape = (given.get("g", ""), given.get("as", ""))
        is_legacy = shape == ("", "") and "v" not in given
        version = given.get("v", "")
        if not is_legacy and (
            shape != (_DISCOVERY_GROUP, _AGGREGATED) or version not in _DISCOVERY_VERSIONS
        ):
            continue
        for media in (JSON, YAML, PROTOBUF):
            if not clause.matches("application", media.removeprefix("application/")):
                continue
            if media == PROTOBUF:
                in_protobuf = in_protobuf or (media, version)
            elif is_legacy or media == JSON:
                return media, version
    return in_protobuf or ("", "")


def _document(data: Obj, version: str, media: str) -> Document:
    body = discovery_bytes(data) if media == PROTOBUF else encoded(data, Form(media))
    if not version:
        return Document(body, "", media)
    etag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    return Document(body, etag, f"{media};g={_DISCOVERY_GROUP};v={version};as={_AGGREGATED}")


def _is_core(group: Obj) -> bool:
    return not group["metadata"].get("name")


def _groups(resources: list[Resource], elsewhere: Elsewhere, priorities: Priorities) -> list[Obj]:
    """The most important group first, and in each its most important version."""
    rows: dict[GroupVersion, list[Resource]] = {}
    for row in resources:
        rows.setdefault((row.group, row.version), []).append(row)
    by_group: dict[str, dict[str, Obj]] = {}
    for (group, version), found in rows.items():
        by_group.setdefault(group, {})[version] = _version(version, found)
    for (group, version), served in elsewhere.items():
        by_group.setdefault(group, {})[version] = _foreign_version(version, served)
    groups = [_group(name, versions, priorities) for name, versions in by_group.items()]
    if not priorities:
        return groups
    importance = {_FIRST_GROUP: _FIRST_PRIORITY}
    for (group, _), (priority, _) in priorities.items():
        importance[group] = max(importance.get(group, 0), priority)

    def rank(group: Obj) -> tuple[int, str]:
        name = str(group["metadata"].get("name", ""))
        return -importance.get(name, 0), name

    return sorted(groups, key=rank)


def _group(name: str, versions: dict[str, Obj], priorities: Priorities) -> Obj:
    metadata: Obj = {"name": name} if name else {}

    def rank(version: str) -> tuple[int, object]:
        return priorities.get((name, version), (0, 0))[1], version_rank(version)

    ordered = sorted(versions, key=rank, reverse=True)
    return {"metadata": metadata, "versions": [versions[version] for version in ordered]}


def _version(version: str, rows: list[Resource]) -> Obj:
    return {
        "version": version,
        "resources": [_resource(row) for row in sorted(rows, key=lambda row: row.plural)],
        "freshness": "Current",
    }


def _foreign_version(version: str, served: Sequence[Obj] | None) -> Obj:
    if served is None:
        return {"version": version, "freshness": "Stale"}
    return {"version": version, "resources": list(served), "freshness": "Current"}


def _resource(row: Resource) -> Obj:
    out: Obj = {
        "resource": row.plural,
        "responseKind": _response_kind(row, row.group, row.version, row.kind),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": list(row.verbs),
    }
    if row.short_names:
        out["shortNames"] = list(row.short_names)
    if row.categories:
        out["categories"] = list(row.categories)
    if row.subresources:
        ordered: Sequence[Subresource] = row.subresources
        if row.custom is None:
            ordered = sorted(ordered, key=lambda item: item.name)
        out["subresources"] = [_subresource(row, item) for item in ordered]
    return out


def _subresource(row: Resource, sub: Subresource) -> Obj:
    kind = _response_kind(row, row.group, row.version, row.kind)
    if sub.kind:
        kind = _response_kind(row, sub.group, sub.version or row.version, sub.kind)
    return {"subresource": sub.name, "responseKind": kind, "verbs": list(sub.verbs)}


def _response_kind(row: Resource, group: str, version: str, kind: str) -> Obj:
    """Group and version are said where they are not those of the list, and of custom kinds."""
    if row.custom is None and (group, version) == (row.group, row.version):
        group = version = ""
    return {"group": group, "version": version, "kind": kind}


def _group_entry(group: Obj) -> Obj:
    name = group["metadata"]["name"]
    versions = [
        {"groupVersion": f"{name}/{version['version']}", "version": version["version"]}
        for version in group["versions"]
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _legacy_resource(resource: Obj, group: str, version: str) -> Obj:
    out: Obj = {
        "name": resource["resource"],
        "singularName": resource["singularResource"],
        "namespaced": resource["scope"] == "Namespaced",
    }
    out |= _foreign_kind(resource["responseKind"], group, version)
    out["verbs"] = resource["verbs"]
    out |= {key: resource[key] for key in ("shortNames", "categories") if key in resource}
    return out


def _storage_version(row: Resource) -> Obj:
    """As upstream: eight bytes of a hash of the kind in the version that is stored; nothing for
    what is answered and not stored. Migrations compare it."""
    if not {"create", "get"} <= set(row.verbs):
        return {}
    group, version = (row.group, row.version) if row.stored_in == ("", "") else row.stored_in
    version = _HASHED_AS.get((group, row.plural), version)
    custom = custom_of(row)
    if custom is not None:
        version = custom.family.storage.version
    digest = hashlib.sha256(f"{group}/{version}/{row.kind}".encode()).digest()
    return {"storageVersionHash": base64.b64encode(digest[:8]).decode()}


def _legacy_subresource(resource: Obj, sub: Obj, group: str, version: str) -> Obj:
    out: Obj = {
        "name": f"{resource['resource']}/{sub['subresource']}",
        "singularName": "",
        "namespaced": resource["scope"] == "Namespaced",
    }
    return out | _foreign_kind(sub["responseKind"], group, version) | {"verbs": sub["verbs"]}


def _foreign_kind(kind: Obj, group: str, version: str) -> Obj:
    """Group and version are said only where they are not those of the list."""
    out: Obj = {}
    if (kind["group"], kind["version"]) not in ((group, version), ("", "")):
        out = {"group": kind["group"], "version": kind["version"]}
    return out | {"kind": kind["kind"]}
