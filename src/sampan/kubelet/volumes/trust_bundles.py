"""Trust anchors for projected volumes: ClusterTrustBundles, followed while pods show them.

Job: one text of each set of bundles, by name or by signer and labels; tell pods when bundles
    change.
Invariant: bundles are watched from the first pod on that shows one; where the kind is not served,
    pods are told so each time they ask.
Invariant: a text has each certificate once, in an order that is the same while the agent lives and
    another one afterwards: nobody shall rely on it.
Owner: ProjectedCertificates.
"""

import asyncio
import hashlib
from collections.abc import Callable

from sampan.api.errors import NotFound
from sampan.api.objects import Obj, labels_of, spec_of
from sampan.api.resources import CLUSTER_TRUST_BUNDLES
from sampan.api.rules import selectors
from sampan.api.served import spoken
from sampan.client.informer import Informer
from sampan.client.reflector import Selection
from sampan.core.certificates.pem_blocks import pem_blocks, pem_text
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.volumes_hook import VolumeFailure

SYNC_SECONDS = 10.0  # as upstream's lazy informer


class TrustBundles:
    def __init__(self, context: NodeContext, changed: Callable[[str], None]) -> None:
        self._changed, self._users = changed, set[str]()
        self._salt = context.rng.randbytes(8)
        selection = Selection(spoken(CLUSTER_TRUST_BUNDLES))
        self._informer = Informer(
            context.client, selection, clock=context.clock, rng=context.rng
        )  # fmt: skip
        self._informer.on_change(self._heard)
        context.tasks.supervise("cluster trust bundles", self._informer.run)

    def _heard(self, old: Obj | None, new: Obj | None) -> None:
        if self._informer.is_synced():
            for uid in tuple(self._users):
                self._changed(uid)

    async def anchors(self, uid: str, source: Obj) -> bytes:
        """Raises VolumeFailure."""
        self._users.add(uid)
        await self._synced()
        chosen = self._chosen(source)
        return "".join(map(pem_text, self._in_order(chosen))).encode()

    async def _synced(self) -> None:
        if self._informer.is_synced():
            return
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                await self._informer.answered()
        except TimeoutError:
            pass
        if isinstance(self._informer.refusal, NotFound):
            raise VolumeFailure(
                "ClusterTrustBundle projection is not supported in static kubelet mode"
            )
        if not self._informer.is_synced():
            raise VolumeFailure("ClusterTrustBundle informer has not yet synced")

    def _chosen(self, source: Obj) -> list[Obj]:
        cache, optional = self._informer.cache, bool(source.get("optional"))
        if source.get("name") is not None:
            found = cache.get(source["name"])
            if found is None and not optional:
                raise VolumeFailure(
                    "while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "
                    f'"{source["name"]}" not found'
                )
            return [found] if found is not None else []
        if source.get("signerName") is None:
            raise VolumeFailure(
                "ClusterTrustBundle projection requires either name or signerName to be set"
            )
        # As upstream: no selector selects nothing, an empty one everything.
        given = source.get("labelSelector")
        matches = selectors.from_object(given).matches
        chosen = [
            bundle
            for bundle in (() if given is None else cache.all())
            if spec_of(bundle).get("signerName") == source["signerName"]
            and matches(labels_of(bundle))
        ]
        if not chosen and not optional:
            raise VolumeFailure(
                "combination of signerName and labelSelector matched zero ClusterTrustBundles"
            )
        return chosen

    def _in_order(self, bundles: list[Obj]) -> list[bytes]:
        found = {
            block.data
            for bundle in bundles
            for block in pem_blocks((spec_of(bundle).get("trustBundle") or "").encode())
        }
        return sorted(found, key=lambda data: hashlib.sha256(self._salt + data).digest())

    def forget(self, uid: str) -> None:
        self._users.discard(uid)
