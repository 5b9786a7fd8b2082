"""Claims of cluster IPs (IPAddress objects) and node ports, in the store.

Job: take and give back. An address is taken by creating its IPAddress object, a node port by its
    bit in one record, as upstream; the store lets only one win.
Invariant: an address or port is given back only by whom it belongs to.
Owner: the Allocator.
"""

import base64
import random
from collections.abc import Callable, Collection, Iterable

import orjson

from sampan.api.errors import AlreadyExists, ApiError, InternalError, NotFound
from sampan.api.objects import Obj, name_of, namespace_of
from sampan.api.resources import Resource, by_plural
from sampan.api.rules.service_families import family_of
from sampan.apiserver.registry.generic import PLAIN, Registry, Stale, Terms, api_error_of
from sampan.apiserver.registry.metadata import new_uid, prepare_created
from sampan.core.clock import Clock
from sampan.core.holding import Hold
from sampan.core.log import get_logger
from sampan.store.contract import KeyExists, RevisionMismatch, StoreError

PORTS_KEY = "/registry/ranges/servicenodeports"
MANAGED_BY = "ipaddress.kubernetes.io/managed-by"
IP_FAMILY = "ipaddress.kubernetes.io/ip-family"
MANAGER = "ipallocator.k8s.io"
ATTEMPTS = 100  # each one lost is somebody else's success

Change = Callable[[int], int]  # the taken ports' bits, as they are → as they shall be

log = get_logger(__name__)


def _resource(plural: str) -> Resource:
    found = by_plural("networking.k8s.io", "v1", plural)
    assert found is not None, plural
    return found


IP_ADDRESSES, SERVICE_CIDRS = _resource("ipaddresses"), _resource("servicecidrs")


class Claims:
    def __init__(self, registry: Registry, ports: range, clock: Clock, rng: random.Random) -> None:
        self._registry, self._ports, self._clock, self._rng = registry, ports, clock, rng

    async def claim_address(self, service: Obj, address: str, claim: Hold) -> bool:
        """False where somebody has it."""
        obj = ip_address(service, address)
        prepare_created(obj, new_uid(self._rng), self._clock.now(), False)
        try:
            await self._registry.insert(IP_ADDRESSES, obj, Terms(hold=claim))
        except AlreadyExists:
            return False
        return True

    async def release_addresses(self, service: Obj, addresses: Iterable[str]) -> None:
        for address in addresses:
            try:
                await self._release_address(service, address)
            except ApiError as error:
                log.warning(
                    "could not release the service's cluster IP", address=address, error=error
                )

    async def _release_address(self, service: Obj, address: str) -> None:
        for _ in range(ATTEMPTS):
            try:
                item = await self._registry.current(IP_ADDRESSES, "", address)
                if parent_of(item.obj) == (namespace_of(service), name_of(service)):
                    await self._registry.remove(IP_ADDRESSES, item, PLAIN)
            except NotFound:
                return
            except Stale:
                continue
            return

    async def claim_ports(self, ports: Collection[int], claim: Hold) -> set[int]:
        """Take all of them, or none; those that somebody has."""
        taken: set[int] = set()

        def change(bits: int) -> int:
            nonlocal taken
            taken = {port for port in ports if bits >> (port - self._ports.start) & 1}
            return bits if taken else bits | self.bits_of(ports)

        await self.change_ports(change, Terms(hold=claim))
        return taken

    async def release_ports(self, ports: Collection[int]) -> None:
        if not ports:
            return
        try:
            await self.change_ports(lambda bits: bits & ~self.bits_of(ports))
        except ApiError as error:
            log.warning("could not release node ports", ports=sorted(ports), error=error)

    async def change_ports(self, change: Change, terms: Terms = PLAIN) -> None:
        """Compare and swap; again when another server was faster."""
        store = self._registry.store
        try:
            for _ in range(ATTEMPTS):
                entry = await store.get(PORTS_KEY)
                before = 0 if entry is None else self._read(entry.value)
                after = change(before)
                if after == before and entry is not None:
                    return
                try:
                    value = self._record(after)
                    if entry is None:
                        write = store.create(PORTS_KEY, value)
                    else:
                        write = store.update(PORTS_KEY, value, entry.revision)
                    revision = await terms.written(write)
                except (KeyExists, RevisionMismatch):
                    continue
                await self._registry.cache.reached(revision)
                return
        except StoreError as error:
            raise api_error_of(error) from error
        raise InternalError("Internal error occurred: the node ports' record is never still")

    def bits_of(self, ports: Iterable[int]) -> int:
        bits = 0
        for port in ports:
            if port in self._ports:
                bits |= 1 << (port - self._ports.start)
        return bits

    def ports_of(self, bits: int) -> set[int]:
        ports = set()
        bits &= (1 << len(self._ports)) - 1
        while bits:
            lowest = bits & -bits
            ports.add(self._ports.start + lowest.bit_length() - 1)
            bits ^= lowest
        return ports

    @property
    def _range(self) -> str:
        return f"{self._ports.start}-{self._ports.stop - 1}"

    def _read(self, value: bytes) -> int:
        """As upstream's bitmap; the record of another range says nothing about this one. Nor does
        one that cannot be read: the repair writes it anew, by the Services that there are."""
        try:
            record = orjson.loads(value)
            if type(record) is not dict or record.get("range") != self._range:
                return 0
            return int.from_bytes(base64.b64decode(str(record.get("data") or "")))
        except ValueError as error:
            log.error("record of node ports cannot be read", key=PORTS_KEY, error=error)
            return 0

    def _record(self, bits: int) -> bytes:
        data = base64.b64encode(bits.to_bytes((bits.bit_length() + 7) // 8))
        return orjson.dumps({
            "apiVersion": "v1", "kind": "RangeAllocation",
            "metadata": {"name": "servicenodeports", "creationTimestamp": None},
            "range": self._range, "data": data.decode(),
        })  # fmt: skip


def ip_address(service: Obj, address: str) -> Obj:
    parent = {
        "group": "", "resource": "services",
        "namespace": namespace_of(service), "name": name_of(service),
    }  # fmt: skip
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {
            "name": address,
            "labels": {IP_FAMILY: family_of(address), MANAGED_BY: MANAGER},
        },
        "spec": {"parentRef": parent},
    }


def parent_of(address: Obj) -> tuple[str, str]:
    parent = (address.get("spec") or {}).get("parentRef") or {}
    return str(parent.get("namespace", "")), str(parent.get("name", ""))
