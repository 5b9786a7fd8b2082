"""The cluster's names: what Kubernetes' DNS specification (1.1.0) says of Services and pods.

Job: Services and EndpointSlices → records, kept up slice by slice; a question → its answer. Pure.
Invariant: a name that has a record of any type, or names below it, is never NXDOMAIN.
Invariant: what a Service or a slice put is gone with it; no other's records change.
Invariant: one of them has a bounded number of records, and an answer as many as a message holds.
Owner: ClusterDns.
"""

import ipaddress
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from sampan.api.objects import Obj, name_of, namespace_of
from sampan.api.rules.endpoint_slices import ready_endpoints
from sampan.core.patterns import lazy_pattern
from sampan.network.dns.wire import (
    AAAA,
    ANY,
    CNAME,
    IN,
    NOERROR,
    NS,
    NXDOMAIN,
    PTR,
    SOA,
    SRV,
    TXT,
    A,
    Answer,
    Record,
)

TTL_SECONDS = 5  # as CoreDNS by default: answers are here, and always fresh
VERSION = "1.1.0"
# Of one Service's ports, one slice's addresses, and the records of its ports: more than any that
# upstream's controllers make, and than a message of 64 KiB has room for.
MOST_PORTS, MOST_ADDRESSES, MOST_SERVICE_RECORDS = 1000, 1000, 4000
MOST_ANSWERS = 4000
_POD = lazy_pattern(r"^[0-9a-f][0-9a-f-]*$")
_SOA_NUMBERS = (7200, 1800, 86400, TTL_SECONDS)


class ClusterZone:
    def __init__(self, domain: str, server_addresses: Sequence[str]) -> None:
        self.domain = domain.lower().rstrip(".")
        self._serial = 1
        self._records: dict[str, dict[Record, int]] = {}  # by name; how many put each
        self._below: dict[str, int] = {}  # how many records each ancestor has below it
        self._of_owner: dict[str, list[Record]] = {}
        self._slices: dict[str, set[str]] = {}  # of each Service: those that put something
        fixed = [
            Record(f"dns-version.{self.domain}", TXT, TTL_SECONDS, VERSION),
            Record(self.domain, NS, TTL_SECONDS, f"ns.dns.{self.domain}"),
            *(
                Record(f"ns.dns.{self.domain}", _type(address), TTL_SECONDS, address)
                for address in server_addresses
            ),
        ]
        self._put("", fixed)
        # There even where no Service is.
        for name in (f"svc.{self.domain}", f"pod.{self.domain}"):
            self._below[name] = 1

    def put(self, key: str, service: Obj | None, slices: Sequence[Obj]) -> bool:
        """A Service with all its slices. True where anything changed."""
        records = records_of_service(service, self.domain) if service is not None else []
        changed = self._put(key, records)
        named = {_slice_name(piece) or str(number): piece for number, piece in enumerate(slices)}
        for name in self._slices.get(key, set()) - named.keys():
            changed |= self.put_slice(key, None, name, None)
        for name, piece in named.items():
            changed |= self.put_slice(key, service, name, piece)
        return changed

    def put_slice(self, key: str, service: Obj | None, name: str, piece: Obj | None) -> bool:
        """One slice of a Service; None: not any more. True where anything changed."""
        there = service is not None and piece is not None
        records = records_of_slice(service, piece, self.domain) if service and piece else []
        of_service = self._slices.setdefault(key, set())
        if there and records:
            of_service.add(name)
        else:
            of_service.discard(name)
        if not of_service:
            del self._slices[key]
        return self._put(f"{key} {name}", records)

    def is_mine(self, name: str) -> bool:
        return name == self.domain or name.endswith("." + self.domain)

    def pointer(self, name: str) -> Answer | None:
        """For a reverse name: None where the address is not of the cluster."""
        found = self._records.get(name)
        return Answer(answers=tuple(islice(found, MOST_ANSWERS))) if found else None

    def answer(self, name: str, kind: int, cls: int = IN) -> Answer:
        """A name of the zone. An ExternalName's answer is its CNAME alone: the rest is asked for
        elsewhere."""
        found: Collection[Record] = self._records.get(name) or self._pod(name)
        if cls not in (IN, ANY) or (not found and name == self.domain and kind != SOA):
            found = ()
        if name == self.domain and kind == SOA:
            return Answer(answers=(self._soa(),))
        wanted = (each for each in found if kind in (each.type, ANY) or each.type == CNAME)
        matching = list(islice(wanted, MOST_ANSWERS))
        if matching:
            return Answer(answers=tuple(matching), additional=self._additional(matching))
        rcode = NOERROR if found or name in self._below else NXDOMAIN
        return Answer(rcode, authority=(self._soa(),))

    def _put(self, key: str, records: list[Record]) -> bool:
        before = self._of_owner.get(key, [])
        if before == records:
            return False
        kept = set(before).intersection(records)
        for record in before:
            if record not in kept:
                self._remove(record)
        for record in records:
            if record not in kept:
                self._add(record)
        if records:
            self._of_owner[key] = records
        else:
            self._of_owner.pop(key, None)
        self._serial += 1
        return True

    def _add(self, record: Record) -> None:
        of_name = self._records.setdefault(record.name, {})
        of_name[record] = of_name.get(record, 0) + 1
        self._count(record.name, 1)

    def _remove(self, record: Record) -> None:
        of_name = self._records[record.name]
        of_name[record] -= 1
        if not of_name[record]:
            del of_name[record]
        if not of_name:
            del self._records[record.name]
        self._count(record.name, -1)

    def _count(self, name: str, by: int) -> None:
        while name:
            name = name.partition(".")[2]
            count = self._below.get(name, 0) + by
            if count:
                self._below[name] = count
            else:
                self._below.pop(name, None)

    def _soa(self) -> Record:
        names = (f"ns.dns.{self.domain}", f"hostmaster.{self.domain}")
        return Record(self.domain, SOA, TTL_SECONDS, (*names, self._serial, *_SOA_NUMBERS))

    def _additional(self, answers: Iterable[Record]) -> tuple[Record, ...]:
        """Where a SRV record leads to."""
        found: dict[Record, None] = {}
        for record in answers:
            if record.type == SRV and isinstance(record.data, tuple):
                target = str(record.data[3])
                for each in self._records.get(target, ()):
                    if each.type in (A, AAAA):
                        found[each] = None
        return tuple(found)

    def _pod(self, name: str) -> list[Record]:
        """`10-244-0-7.default.pod.cluster.local`: as CoreDNS' `pods insecure`, the address that the
        name says, whether or not there is such a pod."""
        suffix = f".pod.{self.domain}"
        labels = name.removesuffix(suffix).split(".") if name.endswith(suffix) else []
        if len(labels) != 2 or not _POD.match(labels[0]):
            return []
        for text in (labels[0].replace("-", "."), labels[0].replace("-", ":")):
            try:
                address = str(ipaddress.ip_address(text))
            except ValueError:
                continue
            return [Record(name, _type(address), TTL_SECONDS, address)]
        return []


def records_of_service(service: Obj, domain: str) -> list[Record]:
    """Without those of its endpoints."""
    spec = service.get("spec") or {}
    name = _service_name(service, domain)
    if spec.get("type") == "ExternalName":
        target = (spec.get("externalName") or "").rstrip(".").lower()
        return [Record(name, CNAME, TTL_SECONDS, target)] if target else []
    return [] if is_headless(service) else _with_cluster_ips(name, spec)


def records_of_slice(service: Obj, piece: Obj, domain: str) -> list[Record]:
    """Only a headless Service's endpoints have names."""
    return _headless(_service_name(service, domain), piece) if is_headless(service) else []


def is_headless(service: Obj) -> bool:
    spec = service.get("spec") or {}
    return spec.get("type") != "ExternalName" and spec.get("clusterIP") == "None"


def _service_name(service: Obj, domain: str) -> str:
    return f"{name_of(service)}.{namespace_of(service)}.svc.{domain}".lower()


def _slice_name(piece: Obj) -> str:
    return str((piece.get("metadata") or {}).get("name") or "")


def _with_cluster_ips(name: str, spec: Obj) -> list[Record]:
    addresses = spec.get("clusterIPs") or [item for item in [spec.get("clusterIP")] if item]
    records = [Record(name, _type(each), TTL_SECONDS, each) for each in addresses]
    if not addresses:
        return []
    for port in (spec.get("ports") or ())[:MOST_PORTS]:
        if port.get("name"):
            owner = _port_name(port, name)
            records.append(Record(owner, SRV, TTL_SECONDS, (0, 100, int(port["port"]), name)))
    records += [Record(reverse_name(each), PTR, TTL_SECONDS, name) for each in addresses]
    return records


def _headless(name: str, piece: Obj) -> list[Record]:
    """Each endpoint under the Service's name and under its own."""
    records: dict[Record, None] = {}
    ports = [port for port in piece.get("ports") or () if port.get("name") and port.get("port")]
    named = [(_port_name(port, name), int(port["port"])) for port in ports[:MOST_PORTS]]
    room = MOST_SERVICE_RECORDS
    for hostname, address in islice(_addresses(piece), MOST_ADDRESSES):
        own = f"{hostname}.{name}".lower()
        records[Record(name, _type(address), TTL_SECONDS, address)] = None
        records[Record(own, _type(address), TTL_SECONDS, address)] = None
        records[Record(reverse_name(address), PTR, TTL_SECONDS, own)] = None
        for owner, number in named[:room]:
            records[Record(owner, SRV, TTL_SECONDS, (0, 100, number, own))] = None
        room = max(room - len(named), 0)
    return list(records)


def _addresses(piece: Obj) -> Iterator[tuple[str, str]]:
    """Each under the name that it has of its own."""
    for entry in ready_endpoints(piece):
        for address in entry.get("addresses") or ():
            yield entry.get("hostname") or re.sub(r"[.:]+", "-", address), address


def _port_name(port: Obj, name: str) -> str:
    return f"_{port['name']}._{port.get('protocol') or 'TCP'}.{name}".lower()


def reverse_name(address: str) -> str:
    return ipaddress.ip_address(address).reverse_pointer


def _type(address: str) -> int:
    return AAAA if ":" in address else A
