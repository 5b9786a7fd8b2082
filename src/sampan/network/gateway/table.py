"""Which rule of which HTTPRoute a request is for.

Job: attached routes → a table; a host, a path and a request → a rule. Pure.
Invariant: the listener with the narrowest hostname has a request, and nobody else; within it the
    narrowest hostname of a route comes first, then Exact paths, then patterns, then the longest
    prefix, then a method, then most headers, then most query parameters, then the older route.
Invariant: what a lookup costs grows with the rules of one path, and with patterns.
"""

from collections.abc import Iterator
from dataclasses import field

from sampan.api.objects import Obj, key_of
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Request
from sampan.network.gateway.attachment import Attached
from sampan.network.gateway.hostnames import names_of
from sampan.network.gateway.rules import EXACT, PATTERN, PREFIX, Match, Rule
from sampan.network.ingress.routing import prefixes_of


@dataclass(frozen=True, slots=True)
class Found:
    rule: Rule
    route: str  # its key
    prefix: str  # of the path, by which it was found


@dataclass(frozen=True, slots=True)
class _Entry:
    order: tuple[object, ...]
    match: Match
    found: Found


@dataclass(slots=True)
class _Paths:
    """The rules for one hostname."""

    exact: dict[str, list[_Entry]] = field(default_factory=dict)
    prefixes: dict[str, list[_Entry]] = field(default_factory=dict)
    patterns: list[_Entry] = field(default_factory=list)
    longest: int = 0

    def add(self, entry: _Entry) -> None:
        match = entry.match
        if match.path_type == EXACT:
            self.exact.setdefault(match.path, []).append(entry)
        elif match.path_type == PATTERN:
            self.patterns.append(entry)
        else:
            self.prefixes.setdefault(match.path, []).append(entry)
            self.longest = max(self.longest, len(match.path))

    def sort(self) -> None:
        for entries in (*self.exact.values(), *self.prefixes.values(), self.patterns):
            entries.sort(key=lambda entry: entry.order)

    def match(self, path: str, request: Request) -> Found | None:
        return next(
            (entry.found for entry in self._fitting(path) if entry.match.accepts(request)), None
        )

    def _fitting(self, path: str) -> Iterator[_Entry]:
        yield from self.exact.get(path, ())
        for entry in self.patterns:
            if entry.match.pattern is not None and entry.match.pattern(path):
                yield entry
        for prefix in prefixes_of(path.removesuffix("/"), self.longest):
            yield from self.prefixes.get(prefix, ())


@dataclass(slots=True)
class GatewayTable:
    # By protocol, hostname of the listener, hostname of the route.
    _listeners: dict[tuple[str, str], dict[str, _Paths]] = field(default_factory=dict)
    _secrets: dict[str, str] = field(default_factory=dict)  # keys, by hostname

    def listen(self, protocol: str, hostname: str, secrets: tuple[str, ...]) -> None:
        """Older Gateways first."""
        self._listeners.setdefault((protocol, hostname), {})
        for secret in secrets[:1]:
            self._secrets.setdefault(hostname, secret)

    def attach(self, route: Obj, rules: list[Rule], attached: Attached) -> None:
        listener, hostnames = attached
        hosts = self._listeners[listener.protocol, listener.hostname]
        age = route["metadata"].get("creationTimestamp") or ""
        for hostname in hostnames:
            paths = hosts.setdefault(hostname, _Paths())
            for number, rule in enumerate(rules):
                for place, match in enumerate(rule.matches):
                    length = -len(match.path) if match.path_type == PATTERN else 0
                    order = (length, *match.rank, age, key_of(route), number, place)
                    prefix = match.path if match.path_type == PREFIX else ""
                    paths.add(_Entry(order, match, Found(rule, key_of(route), prefix)))

    def sort(self) -> None:
        """When everything is attached."""
        for hosts in self._listeners.values():
            for paths in hosts.values():
                paths.sort()

    def find(self, protocol: str, host: str, path: str, request: Request) -> Found | None:
        names = list(names_of(host))
        hosts = next(
            (self._listeners[protocol, name] for name in names
             if (protocol, name) in self._listeners), None,
        )  # fmt: skip
        if not hosts:
            return None
        found = (hosts[name].match(path, request) for name in names if name in hosts)
        return next((each for each in found if each is not None), None)

    def secret_for(self, server_name: str) -> str | None:
        return next(
            (self._secrets[name] for name in names_of(server_name) if name in self._secrets), None
        )

    def secret_keys(self) -> frozenset[str]:
        return frozenset(self._secrets.values())
