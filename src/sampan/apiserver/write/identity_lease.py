"""APIServerIdentity: a Lease in kube-system for each API server of several on one store.

Job: renew this server's lease every ten seconds, and remove those that nobody renews any more.
Invariant: a lease that a server of this name left behind is gone before this one's is written, and
    this one's is gone after an orderly stop.
Owner: of the lease with this machine's name in its hash; servers of one machine share it, as
    upstream's do.
"""

import base64
import hashlib

from sampan.api import features
from sampan.api.calls import Call
from sampan.api.errors import AlreadyExists, ApiError, NotFound
from sampan.api.objects import (
    Obj,
    copy_of,
    labels_of,
    meta_of,
    micro_time_text,
    name_of,
    seconds_of,
)
from sampan.api.resources import LEASES
from sampan.apiserver.authn.user import MASTERS, User, with_authenticated_group
from sampan.apiserver.registry.metadata import new_uid
from sampan.apiserver.write.create import create
from sampan.apiserver.write.delete import delete
from sampan.apiserver.write.request_scope import RequestScope
from sampan.apiserver.write.update import Modification, modify
from sampan.core.log import get_logger
from sampan.core.tasks import all_of

NAMESPACE = "kube-system"
COMPONENT_LABEL, COMPONENT = "apiserver.kubernetes.io/identity", "kube-apiserver"
LEASE_SECONDS = 3600
RENEW_SECONDS = 10.0
COLLECT_SECONDS = 3600.0
_JITTER = 0.04
_AGENT = "kube-apiserver"
_SERVER = with_authenticated_group(User("system:apiserver", (MASTERS,)))

log = get_logger(__name__)


def identity(hostname: str) -> str:
    """The server's name, as upstream hashes it: the machine's name and the component's, each behind
    its length."""
    parts = (hostname.encode(), COMPONENT.encode())
    hashed = hashlib.sha256(b"".join(len(one).to_bytes(2, "big") + one for one in parts))
    return "apiserver-" + base64.b32encode(hashed.digest()[:16]).decode().rstrip("=").lower()


def identity_lease(scope: RequestScope) -> "IdentityLease | None":
    """None: there is no other server on the store, or nobody asked for it."""
    hostname = scope.settings.hostname
    if not (scope.registry.store.shared and hostname and features.enabled("APIServerIdentity")):
        return None
    return IdentityLease(scope, hostname)


def has_expired(lease: Obj, now: float) -> bool:
    """One without times is none of a server's."""
    spec = lease.get("spec") or {}
    renewed, seconds = spec.get("renewTime"), spec.get("leaseDurationSeconds")
    return not renewed or seconds is None or seconds_of(renewed) + seconds < now


class IdentityLease:
    def __init__(self, scope: RequestScope, hostname: str) -> None:
        self._scope, self._hostname = scope, hostname
        self.name = identity(hostname)
        self._holder = f"{self.name}_{new_uid(scope.rng)}"

    async def begin(self) -> None:
        """Others must not find who is no more. Raises ApiError."""
        await self._delete(self.name)
        await self.renew()

    async def keep_going(self) -> None:
        """Until cancelled."""
        await all_of([self._keep_renewed(), self._keep_collected()])

    async def _keep_renewed(self) -> None:
        while True:
            await self._scope.clock.sleep(RENEW_SECONDS * (1 + _JITTER * self._scope.rng.random()))
            try:
                await self.renew()
            except ApiError as error:
                log.warning("could not renew this server's identity lease", error=error)

    async def _keep_collected(self) -> None:
        while True:
            await self._scope.clock.sleep(COLLECT_SECONDS)
            try:
                await self.collect()
            except ApiError as error:
                log.warning("could not remove expired identity leases", error=error)

    async def leave(self) -> None:
        try:
            await self._delete(self.name)
        except ApiError as error:
            log.info("could not remove this server's identity lease", error=error)

    async def renew(self) -> None:
        """Raises ApiError."""
        call = Call("update", LEASES, NAMESPACE, self.name, agent=_AGENT)
        try:
            await modify(self._scope, _SERVER, call, Modification(self._renewed))
        except NotFound:
            new: Obj = {
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": self.name, "namespace": NAMESPACE},
                "spec": {"holderIdentity": self._holder},
            }  # fmt: skip
            call = Call("create", LEASES, NAMESPACE, body=self._renewed(new), agent=_AGENT)
            try:
                await create(self._scope, _SERVER, call)
            except AlreadyExists:
                return  # of another server of this machine, a moment ago

    async def collect(self) -> None:
        """Leases of servers that have ended are removed. Raises ApiError."""
        for lease in self._scope.registry.find_all(LEASES):
            if not self._is_expired(lease):
                continue
            latest = await self._scope.registry.current(LEASES, NAMESPACE, name_of(lease))
            if self._is_expired(latest.obj):
                await self._delete(name_of(lease))

    def _is_expired(self, lease: Obj) -> bool:
        is_server = labels_of(lease).get(COMPONENT_LABEL) == COMPONENT
        is_here = meta_of(lease).get("namespace") == NAMESPACE
        return is_server and is_here and has_expired(lease, self._scope.clock.now())

    def _renewed(self, old: Obj) -> Obj:
        new: Obj = copy_of(old)
        hostname = {"kubernetes.io/hostname": self._hostname}
        meta_of(new)["labels"] = {**labels_of(old), COMPONENT_LABEL: COMPONENT, **hostname}
        new["spec"] = {
            **(old.get("spec") or {}),
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": micro_time_text(self._scope.clock.now()),
        }
        return new

    async def _delete(self, name: str) -> None:
        try:
            await delete(self._scope, _SERVER, Call("delete", LEASES, NAMESPACE, name))
        except NotFound:
            return
