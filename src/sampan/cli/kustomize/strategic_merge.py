"""A strategic merge patch over an object of any kind.

Job: by the schema where the kind is known; else maps are merged and lists are replaced.
"""

from typing import Any

from sampan.api.objects import Obj
from sampan.api.patch.merge_patch import merged_value
from sampan.api.resources import by_kind
from sampan.cli.kustomize.resource import Gvk
from sampan.cli.objects.overrides import overridden_data


def merged(obj: Obj, change: Obj, gvk: Gvk) -> Obj:
    """Raises CliError."""
    body = {key: value for key, value in change.items() if key not in ("apiVersion", "kind")}
    version = f"{gvk.group}/{gvk.version}" if gvk.group else gvk.version
    if by_kind(version, gvk.kind) is not None:
        found: Any = overridden_data(obj, body, "strategic")
    else:
        found = merged_value(obj, body)
    return {**found, **{key: change[key] for key in ("apiVersion", "kind") if key in change}}
