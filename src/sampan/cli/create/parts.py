"""What several generators share: names of containers, checks, metadata.

Job: small pure pieces of generated objects.
"""

from sampan.api.objects import Obj
from sampan.cli.errors import UsageError
from sampan.cli.flags import Values


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
