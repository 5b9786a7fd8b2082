"""What projected volumes show of certificates: trust bundles, and pods' own.

Job: gather it for a pod, source by source; a source that cannot be shown says why.
Invariant: pods without such sources cost nothing, and nothing is watched for them.
Owner: NodeVolumes, or SimulatedVolumes.
"""

from collections.abc import Callable

from sampan.api import features
from sampan.api.objects import Obj, uid_of
from sampan.kubelet.context import NodeContext
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.volumes.payload import CertificateSources, Credentials, Place
from sampan.kubelet.volumes.pod_certificates import (
    PodCertificates,
    RecordWarning,
    certificate_sources,
)
from sampan.kubelet.volumes.trust_bundles import TrustBundles

_OFF = "ClusterTrustBundle projection is not supported in static kubelet mode"
_NO_CERTIFICATES = "unimplemented"  # as upstream's manager that does nothing


class ProjectedCertificates:
    def __init__(
        self, context: NodeContext, changed: Callable[[str], None], tell: RecordWarning
    ) -> None:
        self._context, self._changed, self._tell = context, changed, tell
        self._bundles: TrustBundles | None = None
        self._pods: PodCertificates | None = None

    async def of(self, pod: Obj) -> CertificateSources:
        shown: dict[Place, bytes | Credentials | str] = {}
        for place, source in certificate_sources(pod, "clusterTrustBundle"):
            try:
                shown[place] = await self._trust().anchors(uid_of(pod), source)
            except VolumeFailure as fault:
                shown[place] = str(fault)
        for place, source in certificate_sources(pod, "podCertificate"):
            try:
                shown[place] = await self._own().credentials(pod, place, source)
            except VolumeFailure as fault:
                shown[place] = str(fault)
        return shown

    def _trust(self) -> TrustBundles:
        if self._bundles is None:
            if self._is_alone or not features.enabled("ClusterTrustBundleProjection"):
                raise VolumeFailure(_OFF)
            self._bundles = TrustBundles(self._context, self._changed)
        return self._bundles

    def _own(self) -> PodCertificates:
        if self._pods is None:
            if self._is_alone or not features.enabled("PodCertificateRequest"):
                raise VolumeFailure(_NO_CERTIFICATES)
            self._pods = PodCertificates(self._context, self._changed, self._tell)
        return self._pods

    @property
    def _is_alone(self) -> bool:
        """Without an API."""
        return self._context.settings.standalone

    def next_due(self, uid: str) -> float | None:
        return self._pods.next_due(uid) if self._pods is not None else None

    def forget(self, uid: str) -> None:
        if self._bundles is not None:
            self._bundles.forget(uid)
        if self._pods is not None:
            self._pods.forget(uid)
