"""What a variable's `valueFrom` refers to, in words and as a value.

Job: `set env --list`, with and without --resolve.
"""

import base64
import math
from typing import Any

from sampan.api import quantity
from sampan.api.objects import Obj
from sampan.api.rules.names import qualified_name
from sampan.cli.errors import CliError
from sampan.cli.session import Session

_IN_MILLI = ("limits.cpu", "requests.cpu")
_WHOLE = ("memory", "ephemeral-storage")


def reference_text(source: Obj) -> str:
    for field, kind in (("configMapKeyRef", "configmap"), ("secretKeyRef", "secret")):
        if source.get(field):
            reference = source[field]
            return f"{kind} {reference.get('name', '')}, key {reference.get('key', '')}"
    if source.get("fieldRef"):
        return f"field path {source['fieldRef'].get('fieldPath', '')}"
    if source.get("resourceFieldRef"):
        reference = source["resourceFieldRef"]
        container = f"{reference['containerName']}/" if reference.get("containerName") else ""
        return f"resource field {container}{reference.get('resource', '')}"
    return "invalid valueFrom"


def reference_value(
    session: Session, known: dict[str, Obj], source: Obj, obj: Obj, container: Obj
) -> str:
    """Raises ApiError or CliError where there is none. `known` holds what was asked for before."""
    if source.get("secretKeyRef"):
        data = _data(session, known, "secrets", source["secretKeyRef"], "secret")
        return base64.b64decode(data).decode(errors="replace")
    if source.get("configMapKeyRef"):
        return _data(session, known, "configmaps", source["configMapKeyRef"], "config map")
    if source.get("fieldRef"):
        return _field(obj.get("metadata") or {}, source["fieldRef"].get("fieldPath", ""))
    if source.get("resourceFieldRef"):
        return _quantity(source["resourceFieldRef"], container)
    raise CliError("invalid valueFrom")


def _data(session: Session, known: dict[str, Obj], plural: str, reference: Obj, what: str) -> str:
    path = f"/api/v1/namespaces/{session.namespace}/{plural}/{reference['name']}"
    if path not in known:
        known[path] = session.api.json("GET", path)
    data = known[path].get("data") or {}
    if reference["key"] not in data:
        raise CliError(f"key {reference['key']} not found in {what} {reference['name']}")
    return str(data[reference["key"]])


def _field(meta: Obj, path: str) -> str:
    if path.endswith("']") and "['" in path and not path.startswith("['"):
        return _subscripted(meta, path)
    if path in ("metadata.labels", "metadata.annotations"):
        found = meta.get(path.removeprefix("metadata.")) or {}
        return "\n".join(f"{key}={_quoted(found[key])}" for key in sorted(found))
    if path in ("metadata.name", "metadata.namespace", "metadata.uid"):
        return str(meta.get(path.removeprefix("metadata.")) or "")
    raise CliError(f"unsupported fieldPath: {path}")


def _subscripted(meta: Obj, path: str) -> str:
    where, key = path.removesuffix("']").split("['", 1)
    if where not in ("metadata.labels", "metadata.annotations"):
        raise CliError(f'fieldPath "{path}" does not support subscript')
    problems = qualified_name(key.lower() if where.endswith("annotations") else key)
    if problems:
        raise CliError(f"invalid key subscript in {path}: {';'.join(problems)}")
    return str((meta.get(where.removeprefix("metadata.")) or {}).get(key, ""))


def _quoted(text: Any) -> str:
    from sampan.api.go_quoting import quoted

    return quoted(str(text))


def _quantity(reference: Obj, container: Obj) -> str:
    name = str(reference.get("resource") or "")
    which, _, resource = name.partition(".")
    is_known = resource in ("cpu", *_WHOLE) or resource.startswith("hugepages-")
    if which not in ("limits", "requests") or not is_known:
        raise CliError(f"Unsupported container resource : {name}")
    amount = ((container.get("resources") or {}).get(which) or {}).get(resource, "0")
    divisor = quantity.value_of(reference.get("divisor") or "0")
    if not divisor.nanos:
        divisor = quantity.value_of("1")
    if name in _IN_MILLI:
        return str(math.ceil(quantity.value_of(amount).milli() / divisor.milli()))
    return str(math.ceil(quantity.value_of(amount).value() / divisor.value()))
