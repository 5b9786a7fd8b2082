"""Which backend a request goes to: hosts, paths, default backends.

Job: the Ingresses of this controller → a table; a host and a path → a backend. Pure.
Invariant: of a request's hosts the exact one comes before the wildcard, that before rules for all
    hosts; of paths Exact comes first, then the longest. (types.go of networking/v1)
Invariant: where two Ingresses want the same, the older has it.
Invariant: what a lookup costs grows with the longest path of a rule, not with that of the request.
"""

from collections.abc import Iterable, Iterator
from dataclasses import field
from urllib.parse import unquote

from sampan.api.objects import Obj, key_of, namespace_of
from sampan.core.fast_dataclass import dataclass

EVERY_HOST = ""


@dataclass(frozen=True, slots=True)
class Backend:
    namespace: str
    service: str  # empty where it is no Service
    port: str | int  # the Service's, by name or by number
    resource: str = ""  # what it is instead: Kind/name


@dataclass(slots=True)
class _Paths:
    """The rules of one host."""

    exact: dict[str, Backend] = field(default_factory=dict)
    # By the path without its last slash, with the path: of two such the longer one is meant.
    prefixes: dict[str, tuple[str, Backend]] = field(default_factory=dict)
    longest: int = 0
    default: Backend | None = None  # of the oldest Ingress that names the host and has one

    def add(self, path_type: str, path: str, backend: Backend) -> None:
        if path_type == "Exact":
            self.exact.setdefault(path, backend)
            return
        key = path.removesuffix("/")
        known = self.prefixes.get(key)
        if known is None or len(known[0]) < len(path):
            self.prefixes[key] = path, backend
            self.longest = max(self.longest, len(key))

    def match(self, path: str) -> Backend | None:
        found = self.exact.get(path)
        if found is not None:
            return found
        for prefix in prefixes_of(path.removesuffix("/"), self.longest):
            known = self.prefixes.get(prefix)
            if known is not None:
                return known[1]
        return None


@dataclass(slots=True)
class RoutingTable:
    _hosts: dict[str, _Paths] = field(default_factory=dict)
    _default: Backend | None = None
    _secrets: dict[str, str] = field(default_factory=dict)  # keys, by host

    def match(self, host: str, path: str) -> Backend | None:
        """`host` from `host_of`, `path` from `plain_path`."""
        found = [paths for name in _names(host) if (paths := self._hosts.get(name)) is not None]
        for paths in found:
            backend = paths.match(path)
            if backend is not None:
                return backend
        defaults = (paths.default for paths in found if paths.default is not None)
        return next(defaults, self._default)

    def secret_for(self, server_name: str) -> str | None:
        """The key of the Secret whose certificate a client is shown that asks for this name."""
        names = _names(server_name)
        return next((self._secrets[name] for name in names if name in self._secrets), None)

    def secret_keys(self) -> frozenset[str]:
        return frozenset(self._secrets.values())

    def add(self, ingress: Obj) -> None:
        """Older ones first."""
        spec = ingress.get("spec") or {}
        default = backend_of(ingress, spec.get("defaultBackend"))
        self._default = self._default or default
        for rule in spec.get("rules") or ():
            paths = self._hosts.setdefault((rule.get("host") or EVERY_HOST).lower(), _Paths())
            paths.default = paths.default or default
            for entry in (rule.get("http") or {}).get("paths") or ():
                backend = backend_of(ingress, entry.get("backend"))
                if backend is not None:
                    path = unquote(entry.get("path") or "/")
                    paths.add(entry.get("pathType") or "", path, backend)
        for host, secret in tls_hosts(ingress):
            self._secrets.setdefault(host, secret)


def routing_table(ingresses: Iterable[Obj]) -> RoutingTable:
    table = RoutingTable()
    for ingress in sorted(ingresses, key=_age):
        table.add(ingress)
    return table


def backend_of(ingress: Obj, entry: Obj | None) -> Backend | None:
    if not entry:
        return None
    resource, service = entry.get("resource"), entry.get("service") or {}
    if resource:
        what = f"{resource.get('kind')}/{resource.get('name')}"
        return Backend(namespace_of(ingress), "", 0, what)
    port = service.get("port") or {}
    number: str | int = port.get("name") or port.get("number") or 0
    return Backend(namespace_of(ingress), service.get("name") or "", number)


def backends_of(ingress: Obj) -> Iterator[Backend]:
    """All that its rules lead to, each once."""
    spec = ingress.get("spec") or {}
    entries = [spec.get("defaultBackend")]
    for rule in spec.get("rules") or ():
        entries += [path.get("backend") for path in (rule.get("http") or {}).get("paths") or ()]
    found = (backend_of(ingress, entry) for entry in entries)
    yield from dict.fromkeys(backend for backend in found if backend is not None)


def tls_hosts(ingress: Obj) -> Iterator[tuple[str, str]]:
    """Host and key of the Secret; an entry without hosts is for those of the rules."""
    spec = ingress.get("spec") or {}
    ruled = [rule.get("host") or EVERY_HOST for rule in spec.get("rules") or ()] or [EVERY_HOST]
    for entry in spec.get("tls") or ():
        if entry.get("secretName"):
            key = f"{namespace_of(ingress)}/{entry['secretName']}"
            for host in entry.get("hosts") or ruled:
                yield host.lower(), key


def host_of(header: str) -> str:
    """Of a Host header: without port and last dot, in lower case."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].removesuffix(".").lower()


def plain_path(path: str) -> str | None:
    """As rules are compared with it: decoded, without dot segments. None where it leads out of the
    root, or is no path."""
    if not path.startswith("/") or not path.isascii():
        return None
    decoded = unquote(path) if "%" in path else path
    if "/." not in decoded:
        return decoded
    kept: list[str] = []
    segments = decoded[1:].split("/")
    for segment in segments:
        if segment == "..":
            if not kept:
                return None
            kept.pop()
        elif segment != ".":
            kept.append(segment)
    if kept and segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def prefixes_of(path: str, longest: int) -> Iterator[str]:
    """Whole elements of it, the longest first, that are no longer than a rule."""
    end = len(path)
    if end > longest:
        # One that ends at `longest` ends before a slash.
        end = path.rfind("/", 0, longest + 1)
    while end >= 0:
        yield path[:end]
        end = path.rfind("/", 0, end)


def _names(host: str) -> tuple[str, ...]:
    """Under which a host is found: a wildcard stands for one label."""
    label, dot, rest = host.partition(".")
    if not label or not dot:
        return (host, EVERY_HOST) if host else (EVERY_HOST,)
    return host, f"*.{rest}", EVERY_HOST


def _age(ingress: Obj) -> tuple[str, str]:
    return ingress["metadata"].get("creationTimestamp") or "", key_of(ingress)
