"""Image pull credentials: the pod's secrets first, then the node's own.

Job: image and secrets → credentials, in the order in which they are to be tried.
Invariant: nothing is read and no plugin is asked before an image is really pulled.
Owner: ImageManager.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from sampan.api.objects import Obj
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.metrics import Metrics
from sampan.kubelet.contracts.runtime import Credentials
from sampan.kubelet.images.credential_file import CredentialFile
from sampan.kubelet.images.reference import Reference
from sampan.kubelet.images.registry_credentials import credentials_for, fitting

if TYPE_CHECKING:
    from sampan.kubelet.images.credential_providers import CredentialProvider, CredentialProviders


@dataclass(frozen=True, slots=True)
class NodeCredentialSettings:
    files: tuple[str, ...] = ()  # docker configurations: the first that can be read counts
    providers: "tuple[CredentialProvider, ...]" = field(default=())


@dataclass(frozen=True, slots=True)
class Found:
    of_pod: Sequence[Credentials]
    of_node: Sequence[Credentials]  # every pod of the node may use them

    @property
    def all(self) -> list[Credentials]:
        """In the order in which they are to be tried."""
        return list(dict.fromkeys([*self.of_pod, *self.of_node]))


class ImageCredentials:
    def __init__(self, settings: NodeCredentialSettings, *, clock: Clock, metrics: Metrics) -> None:
        self._file = CredentialFile(settings.files)
        self._providers = _plugins(settings, clock, metrics)

    async def of(self, image: Reference, secrets: Sequence[Obj]) -> Found:
        own = [*self._file.entries()]
        if self._providers is not None:
            own += await self._providers.entries(image)
        return Found(credentials_for(image, secrets), fitting(image, own))


def _plugins(
    settings: NodeCredentialSettings, clock: Clock, metrics: Metrics
) -> "CredentialProviders | None":
    if not settings.providers:
        return None
    # Few nodes have any: the others start without their reader.
    from sampan.kubelet.images.credential_providers import CredentialProviders

    return CredentialProviders(settings.providers, clock=clock, metrics=metrics)
