"""The images of a simulated node: every reference can be pulled, unless its tag says otherwise.

Job: keep, find, pull and remove images that are nothing but a name.
    A tag `missing` is not in its registry, one `broken` cannot be unpacked; one `root` runs as
    root, and all others as what charts say that theirs do: somebody else.
Owner: SimulatedRuntime.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from sampan.kubelet.contracts.runtime import Image, ImageNotFound, RuntimeFailure
from sampan.kubelet.simulated.parts import digits_of

SIZE_BYTES = 1_000_000
USER = 65532  # as images without a distribution have it


class SimulatedImages:
    def __init__(self, references: Iterable[str]) -> None:
        self._images: dict[str, Image] = {}
        for reference in references:
            self.keep(reference)

    def find(self, reference: str) -> Image | None:
        """By name or by id."""
        return self._images.get(reference) or next(
            (image for image in self._images.values() if image.id == reference), None
        )

    def all(self) -> Sequence[Image]:
        return list(self._images.values())

    def pull(self, reference: str) -> Image:
        tag = reference.rpartition(":")[2]
        if tag == "missing":
            raise ImageNotFound(f'failed to resolve reference "{reference}": not found')
        if tag == "broken":
            raise RuntimeFailure(f'failed to pull and unpack image "{reference}"')
        return self.keep(reference)

    def remove(self, reference: str) -> None:
        for name in [name for name, image in self._images.items() if reference in (name, image.id)]:
            del self._images[name]

    def keep(self, reference: str) -> Image:
        image = self._images[reference] = _image(reference)
        return image


@lru_cache(maxsize=1024)
def _image(reference: str) -> Image:
    """Once for all nodes that pull it."""
    digest = digits_of(reference)
    name = reference.rpartition("@")[0] or reference
    repository = name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else name
    return Image(
        id=f"sha256:{digest}",
        tags=(reference,),
        digests=(f"{repository}@sha256:{digest}",),
        size_bytes=SIZE_BYTES,
        uid=None if name.endswith(":root") else USER,
    )
