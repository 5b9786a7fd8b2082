"""Listeners of a Gateway: which are served, and what is wrong with the others.

Job: a Gateway and what it refers to → its listeners with their conditions. Pure.
Invariant: a listener that asks for something that is not here (a port, a protocol, certificates of
    clients) is not accepted: nothing is served with less than was asked for.
"""

from collections.abc import Iterator, Sequence

from sampan.api.objects import Obj, key_of, namespace_of
from sampan.core.fast_dataclass import dataclass
from sampan.network.gateway.references import GROUP, Reference, is_permitted
from sampan.network.gateway.world import Verdict, World
from sampan.network.ingress.certificates import TLS_SECRET, context_of

HTTP, HTTPS = "HTTP", "HTTPS"
ROUTE = "HTTPRoute"


@dataclass(frozen=True, slots=True)
class Listener:
    gateway: str  # its key
    name: str
    port: int
    protocol: str
    hostname: str
    allowed: Obj  # allowedRoutes
    takes_routes: bool  # HTTPRoutes
    secrets: tuple[str, ...]  # keys of those that are good
    verdicts: tuple[Verdict, ...]

    @property
    def is_served(self) -> bool:
        return self.takes_routes and all(
            verdict.holds for verdict in self.verdicts if verdict.type == "Programmed"
        )


def listeners_of(gateway: Obj, world: World) -> list[Listener]:
    entries = (gateway.get("spec") or {}).get("listeners") or ()
    return [_listener(gateway, entry, entries, world) for entry in entries]


def _listener(gateway: Obj, entry: Obj, all_entries: Sequence[Obj], world: World) -> Listener:
    accepted = _accepted(gateway, entry, world)
    conflict = _conflict(entry, all_entries)
    secrets, certificates = _certificates(gateway, entry, world)
    kinds = (entry.get("allowedRoutes") or {}).get("kinds") or ()
    known = [each for each in kinds if _is_route(each)]
    takes = accepted.reason != "UnsupportedProtocol" and bool(known or not kinds)
    resolved = certificates or _kinds(kinds, known)
    is_fine = accepted.holds and not conflict.holds and certificates is None
    programmed = Verdict("Programmed", is_fine, "Programmed" if is_fine else "Invalid")
    return Listener(
        key_of(gateway), entry["name"], entry["port"], entry["protocol"],
        (entry.get("hostname") or "").lower(), entry.get("allowedRoutes") or {}, takes, secrets,
        (accepted, conflict, resolved, programmed),
    )  # fmt: skip


def _accepted(gateway: Obj, entry: Obj, world: World) -> Verdict:
    protocol, port = entry["protocol"], entry["port"]
    ports = world.ports.get(protocol)
    if ports is None:
        why = f"protocol {protocol} is not served: {', '.join(world.ports)} are"
        return Verdict("Accepted", False, "UnsupportedProtocol", why)
    if port not in ports:
        there = " and ".join(str(number) for number in sorted(ports))
        why = f"port {port} is not served for {protocol}: {there} are"
        return Verdict("Accepted", False, "PortUnavailable", why)
    for what in _unsupported(gateway, entry):
        return Verdict("Accepted", False, "UnsupportedValue", f"{what} is not supported")
    return Verdict("Accepted", True, "Accepted")


def _unsupported(gateway: Obj, entry: Obj) -> Iterator[str]:
    tls, whole = entry.get("tls") or {}, (gateway.get("spec") or {}).get("tls") or {}
    if entry["protocol"] == HTTPS and (tls.get("mode") or "Terminate") != "Terminate":
        yield f"tls.mode {tls['mode']}"
    for name in ("frontendValidation", "options"):
        if tls.get(name):
            yield f"tls.{name}"
    for name in ("frontend", "backend"):
        if whole.get(name):
            yield f"spec.tls.{name} of the Gateway"


def _conflict(entry: Obj, all_entries: Sequence[Obj]) -> Verdict:
    """Hostnames cannot: the definition refuses a Gateway that repeats one."""
    others = {each["protocol"] for each in all_entries if each["port"] == entry["port"]}
    if len(others) > 1:
        why = f"port {entry['port']} is for {', '.join(sorted(others))}"
        return Verdict("Conflicted", True, "ProtocolConflict", why)
    return Verdict("Conflicted", False, "NoConflicts")


def _kinds(kinds: Sequence[Obj], known: Sequence[Obj]) -> Verdict:
    if len(known) == len(kinds):
        return Verdict("ResolvedRefs", True, "ResolvedRefs")
    unknown = ", ".join(str(each.get("kind")) for each in kinds if each not in known)
    return Verdict("ResolvedRefs", False, "InvalidRouteKinds", f"not served: {unknown}")


def _is_route(entry: Obj) -> bool:
    group = entry.get("group")
    return entry.get("kind") == ROUTE and (GROUP if group is None else group) == GROUP


def _certificates(gateway: Obj, entry: Obj, world: World) -> tuple[tuple[str, ...], Verdict | None]:
    """The keys of the Secrets that are good, and what is wrong with the first that is not."""
    if entry["protocol"] != HTTPS:
        return (), None
    good, wrong = [], None
    for given in (entry.get("tls") or {}).get("certificateRefs") or ():
        found = _certificate(gateway, given, world)
        if isinstance(found, str):
            good.append(found)
        elif wrong is None:
            wrong = found
    if not good and wrong is None:
        wrong = _invalid("tls.certificateRefs names no Secret")
    return tuple(good), wrong


def _certificate(gateway: Obj, given: Obj, world: World) -> str | Verdict:
    home = namespace_of(gateway)
    kind = given.get("kind") or "Secret"
    if given.get("group") or kind != "Secret":
        what = f"{kind}.{given['group']}" if given.get("group") else kind
        return _invalid(f"{what} {given.get('name')} is no Secret")
    reference = Reference(
        "Gateway", home, "Secret", given.get("namespace") or home, given.get("name") or ""
    )
    if not is_permitted(reference, world.grants):
        why = f"no ReferenceGrant of {reference.namespace} permits Secret {reference.key}"
        return Verdict("ResolvedRefs", False, "RefNotPermitted", why)
    secret = world.secret(reference.key)
    if secret is None:
        return _invalid(f"Secret {reference.key} of type {TLS_SECRET} not found")
    made = context_of(secret)
    return _invalid(f"Secret {reference.key}: {made}") if isinstance(made, str) else reference.key


def _invalid(why: str) -> Verdict:
    return Verdict("ResolvedRefs", False, "InvalidCertificateRef", why)
