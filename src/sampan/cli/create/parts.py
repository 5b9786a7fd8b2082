"""What several generators share: names of containers, checks, metadata.

Job: small pure pieces of generated objects.
"""

import re

from sampan.api.objects import Obj
from sampan.cli.errors import UsageError
from sampan.cli.flags import Values
from sampan.core.patterns import lazy_pattern

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?"
_REFERENCE = lazy_pattern(
    rf"(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[\w][\w.-]{0,127})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.A,
)


def image_is_valid(image: str) -> bool:
    """As the distribution project's grammar has it."""
    return _REFERENCE.fullmatch(image) is not None


def single_name(values: Values) -> str:
    arguments = values.arguments
    if values.dash >= 0:
        arguments = arguments[: values.dash]
    if len(arguments) != 1:
        raise UsageError(f"exactly one NAME is required, got {len(arguments)}")
    return arguments[0]


def metadata(name: str, labels: dict[str, str] | None = None) -> Obj:
    return {"name": name, **({"labels": labels} if labels else {})}


def container_name(image: str) -> str:
    """From the image's last component, without tag and digest."""
    name = image.rpartition("/")[2]
    return name.partition("@")[0].partition(":")[0]
