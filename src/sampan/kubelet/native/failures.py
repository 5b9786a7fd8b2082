"""What goes wrong below the Runtime contract, in the contract's own words."""

import contextlib
from collections.abc import Iterator

from sampan.kubelet.contracts.runtime import RuntimeFailure
from sampan.runtime.images.content import ImageError
from sampan.runtime.images.registry_client import ImageMissing
from sampan.runtime.monitor import ContainerFailure


@contextlib.contextmanager
def translated_failures(what: str) -> Iterator[None]:
    try:
        yield
    except ImageMissing:
        raise
    except (OSError, ImageError, ContainerFailure, ValueError) as error:
        raise RuntimeFailure(f"{what}: {error}") from error
