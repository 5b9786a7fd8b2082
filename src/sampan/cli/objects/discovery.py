"""What the server serves: kinds, their names, scope and verbs (C3).

Job: find a resource by any name that people use for it.
Invariant: what is kept on disk is at most KEPT_SECONDS old, and is asked for again when a name is
    not in it.
"""

import os
import re
from collections.abc import Callable
from typing import Any

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.client import json_bytes
from sampan.client.blocking import BlockingClient
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass

KEPT_SECONDS = 6 * 3600.0  # as kubectl
AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


class NoMatch(CliError):
    """A type that the server does not have."""


@dataclass(frozen=True, slots=True)
class ApiResource:
    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_singular(self) -> str:
        """`pod`, `deployment.apps`: how results name an object's kind."""
        singular = self.kind.lower()
        return f"{singular}.{self.group}" if self.group else singular

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        parts = [f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"]
        if namespace and self.namespaced:
            parts += ["namespaces", _quoted(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_quoted(name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


def _quoted(name: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_.~-]*", name):
        return name
    from urllib.parse import quote

    return quote(name, safe="")


class Discovery:
    def __init__(
        self,
        api: BlockingClient,
        cache_dir: str,
        clock: Clock,
        on_warning: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._on_warning = on_warning
        self._warned: set[str] = set()
        self._api, self._clock = api, clock
        host = re.sub(r"[^A-Za-z0-9.]", "_", api.server.split("://", 1)[-1])
        self._file = os.path.join(cache_dir, "discovery", f"sampan_{host}.json")
        self._resources: list[ApiResource] | None = None
        self._is_fresh = False

    @property
    def resources(self) -> list[ApiResource]:
        """All, in the server's order: preferred groups and versions first."""
        if self._resources is None:
            self._resources = self._kept() or self.refresh()
        return self._resources

    def refresh(self) -> list[ApiResource]:
        groups = _groups(self._api)
        self._resources = [
            resource for group in groups for version in group[1] for resource in version
        ]
        self._is_fresh = True
        self._keep(self._resources)
        return self._resources

    def find(self, word: str) -> ApiResource:
        """By plural, singular, short name or kind, with `.group` or `.version.group` after it."""
        found = self._lookup(word)
        if found is None and not self._is_fresh:
            self.refresh()
            found = self._lookup(word)
        if found is None:
            name = word.split(".", 1)[0]
            raise NoMatch(f'the server doesn\'t have a resource type "{name}"')
        return found

    def of_kind(self, api_version: str, kind: str) -> ApiResource | None:
        """The resource whose objects say this about themselves."""
        for _ in range(2):
            for resource in self.resources:
                if resource.kind == kind and resource.api_version == api_version:
                    return resource
            if self._is_fresh:
                return None
            self.refresh()
        return None

    def of_category(self, word: str) -> list[ApiResource]:
        seen: dict[tuple[str, str], ApiResource] = {}
        for resource in self.resources:
            if word in resource.categories and "list" in resource.verbs:
                seen.setdefault((resource.group, resource.plural), resource)
        return list(seen.values())

    def preferred(self) -> list[ApiResource]:
        """Each group's resources in the version that the server puts first."""
        seen: dict[tuple[str, str], ApiResource] = {}
        for resource in self.resources:
            seen.setdefault((resource.group, resource.plural), resource)
        return list(seen.values())

    def _lookup(self, word: str) -> ApiResource | None:
        """`RESOURCE`, `RESOURCE.GROUP` or `RESOURCE.VERSION.GROUP`, as kubectl takes it apart: what
        could be both is tried as the longer one first, then as a kind."""
        parts = word.split(".", 2)
        if len(parts) == 3:
            found = self._match(parts[0], parts[2], parts[1])
            if found is not None:
                return found
        name, _, group = word.partition(".")
        return self._match(name, group, "") or self._of_kind_word(name, group)

    def _match(self, name: str, group: str, version: str) -> ApiResource | None:
        """Empty: any. A group may be given by its beginning."""
        long_name, group = self._long_form(name.lower(), group)
        if long_name != name.lower():
            version = ""  # as kubectl: a short name stands for the preferred one
        name = long_name
        named = [
            resource
            for resource in self.resources
            if name in (resource.plural, resource.singular)
            and (not version or resource.version == version)
        ]
        if not group:
            return named[0] if named else None
        exact = [resource for resource in named if resource.group == group]
        if version:
            return exact[0] if exact else None
        begun = [resource for resource in named if resource.group.startswith(group)]
        return next(iter(exact or begun), None)

    def _long_form(self, name: str, group: str) -> tuple[str, str]:
        """What a short name stands for; names that are no short ones stay."""
        near = [one for one in self.resources if not group or one.group == group]
        if any(name in (one.plural, one.singular) for one in near):
            return name, group
        begun = [one for one in self.resources if group and one.group.startswith(group)]
        found = [one for one in (*near, *begun) if name in one.short_names]
        if not found:
            return name, group
        first = found[0]
        for other in dict.fromkeys(
            one.qualified for one in found if one.qualified != first.qualified
        ):
            self._warn(f'short name "{name}" could also match lower priority resource {other}')
        return first.plural, first.group

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._on_warning(text)

    def _of_kind_word(self, name: str, group: str) -> ApiResource | None:
        for resource in self.resources:
            if resource.kind == name and (not group or resource.group == group):
                return resource
        return None

    def _kept(self) -> list[ApiResource] | None:
        try:
            age = self._clock.now() - os.stat(self._file).st_mtime
            if not 0 <= age < KEPT_SECONDS:
                return None
            with open(self._file, "rb") as file:
                rows = json_bytes.loads(file.read())
            return [_from_row(row) for row in rows]
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _keep(self, resources: list[ApiResource]) -> None:
        rows = [[getattr(resource, name) for name in _ROW] for resource in resources]
        try:
            os.makedirs(os.path.dirname(self._file), exist_ok=True)
            beside = f"{self._file}.{os.getpid()}"
            with open(beside, "wb") as file:
                file.write(json_bytes.dumps(rows))
            os.replace(beside, self._file)
        except OSError:
            return  # a read-only home costs a request each time, nothing else


_ROW = (
    "group", "version", "kind", "plural", "singular", "namespaced", "short_names", "categories",
    "verbs", "subresources",
)  # fmt: skip


def _from_row(row: list[Any]) -> ApiResource:
    values = dict(zip(_ROW, row, strict=True))
    for name in ("short_names", "categories", "verbs", "subresources"):
        values[name] = tuple(values[name])
    return ApiResource(**values)


Group = tuple[str, list[list[ApiResource]]]


def _groups(api: BlockingClient) -> list[Group]:
    groups: list[Group] = []
    for path in ("/api", "/apis"):
        answer = api.json("GET", path, accept=AGGREGATED)
        if answer.get("kind") == "APIGroupDiscoveryList":
            groups += [_aggregate(group) for group in answer.get("items") or []]
        elif path == "/api":
            groups.append(("", [_legacy(api, "", v, f"/api/{v}") for v in answer["versions"]]))
        else:
            groups += [_legacy_group(api, group) for group in answer.get("groups") or []]
    return groups


def _aggregate(group: Obj) -> Group:
    name = (group.get("metadata") or {}).get("name") or ""
    versions = []
    for version in group.get("versions") or []:
        versions.append(
            [
                ApiResource(
                    name,
                    version["version"],
                    (entry.get("responseKind") or {}).get("kind") or "",
                    entry["resource"],
                    entry.get("singularResource") or "",
                    entry.get("scope") == "Namespaced",
                    tuple(entry.get("shortNames") or ()),
                    tuple(entry.get("categories") or ()),
                    tuple(entry.get("verbs") or ()),
                    tuple(sub["subresource"] for sub in entry.get("subresources") or ()),
                )
                for entry in version.get("resources") or []
            ]
        )
    return name, versions


def _legacy_group(api: BlockingClient, group: Obj) -> Group:
    name = group["name"]
    preferred = (group.get("preferredVersion") or {}).get("version")
    versions = sorted(
        (entry["version"] for entry in group["versions"]), key=lambda item: item != preferred
    )
    return name, [_legacy(api, name, v, f"/apis/{name}/{v}") for v in versions]


def _legacy(api: BlockingClient, group: str, version: str, path: str) -> list[ApiResource]:
    try:
        entries = list(api.json("GET", path).get("resources") or [])
    except ApiError:
        return []  # an aggregated API that is down hides nothing else
    subresources: dict[str, list[str]] = {}
    for entry in entries:
        parent, slash, name = entry["name"].partition("/")
        if slash:
            subresources.setdefault(parent, []).append(name)
    return [
        ApiResource(
            group,
            version,
            entry["kind"],
            entry["name"],
            entry.get("singularName") or "",
            bool(entry.get("namespaced")),
            tuple(entry.get("shortNames") or ()),
            tuple(entry.get("categories") or ()),
            tuple(entry.get("verbs") or ()),
            tuple(subresources.get(entry["name"], ())),
        )
        for entry in entries
        if "/" not in entry["name"]
    ]
