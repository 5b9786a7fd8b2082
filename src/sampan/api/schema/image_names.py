"""Names of images: what is one, by the distribution project's grammar.

Job: a text → whether it names an image. Pure.
"""

import re
from functools import lru_cache

from sampan.core.patterns import lazy_pattern

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?"
_REFERENCE = lazy_pattern(
    rf"(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[\w][\w.-]{0,127})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_DIGEST = lazy_pattern(r"[a-f0-9]{64}")  # which names what an image is, and no image
_LONGEST = 255  # of a name without its registry, and of what is worth remembering


def image_is_valid(image: str) -> bool:
    return _is_valid(image) if len(image) <= _LONGEST else _REFERENCE.fullmatch(image) is not None


@lru_cache(maxsize=1024)
def _is_valid(image: str) -> bool:
    return _REFERENCE.fullmatch(image) is not None


def untagged_image_is_valid(image: str) -> bool:
    """Of a name with neither tag nor digest; one that is too long is none."""
    path = image if "/" in image else f"library/{image}"  # as the name is completed
    return len(path) <= _LONGEST and _is_valid(image) and not _DIGEST.fullmatch(image)
