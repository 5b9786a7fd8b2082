"""A container's environment: values, references and `$(NAME)`, as the program will see it. Pure.

Job: env and envFrom of one container, resolved in upstream's order.
Invariant: a name stands once in the result; env beats envFrom, both beat service variables.
Invariant: the result, and the work it takes, is bounded: a pod of a kilobyte could name petabytes.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from sampan.api.objects import (
    Obj,
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
    uid_of,
)
from sampan.api.quantity import ZERO, Quantity, value_of
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern
from sampan.kubelet.container_spec.env_files import BadEnvFile, EnvFile, EnvText
from sampan.kubelet.contracts.room import Room
from sampan.kubelet.contracts.spec import find_container

Objects = Mapping[tuple[str, str], Obj | None]
NO_ENV_FILE = "couldn't parse env file"  # as upstream, which says no more
POD_LEVEL = {"cpu", "memory"}  # of what a pod itself can have a limit here
# More than Linux starts a program with (6 MiB at most, for arguments and environment together).
MOST_BYTES = 8 << 20
_ESCAPES = {
    "\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r",
    "\t": "\\t", "\v": "\\v",
}  # fmt: skip
_SUBSCRIPT = lazy_pattern(r"metadata\.(labels|annotations)\['([^']*)'\]")


class ConfigError(Exception):
    """The pod cannot be turned into a container as it is: CreateContainerConfigError."""


def program_room() -> Room:
    """For the environment and the arguments of one program."""
    why = f"environment and arguments of the container have more than {MOST_BYTES} bytes"
    return Room(MOST_BYTES, lambda: ConfigError(why))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a container may ask about the world around it."""

    node_name: str = ""
    node_ips: tuple[str, ...] = ()
    pod_ips: tuple[str, ...] = ()
    allocatable: Mapping[str, str] = field(default_factory=dict)
    service_variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[EnvFile, EnvText] = field(default_factory=dict)  # that variables come from
    pretends: bool = False  # a simulated node: no file has been written


def environment(
    pod: Obj, container: Obj, objects: Objects, around: Surroundings, room: Room
) -> dict[str, str]:
    """As upstream's kubelet: envFrom, then env (each sees what came before it), then services.
    Raises ConfigError, also where there is no room for it."""
    found: dict[str, str] = {}
    services = around.service_variables
    for source in container.get("envFrom") or ():
        for name, value in _from_source(source, objects):
            room.take(len(name) + len(value))
            found[name] = value
    for entry in container.get("env") or ():
        if entry.get("value"):
            value = expand(entry["value"], room, lambda name: found.get(name, services.get(name)))
            found[entry["name"]] = value
        elif entry.get("valueFrom"):
            given = _from_reference(pod, container, entry["valueFrom"], objects, around)
            if given is not None:
                room.take(len(given))
                found[entry["name"]] = given
        else:
            found[entry["name"]] = ""
    return found | {name: value for name, value in services.items() if name not in found}


def expand(text: str, room: Room, find: Callable[[str], str | None]) -> str:
    """`$(NAME)` → what `find` finds, `$$` → `$`; the rest as it is."""
    room.take(len(text))
    if "$" not in text:
        return text
    out: list[str] = []
    at, last = 0, text.rfind(")")  # thousands may be opened and none closed
    while (dollar := text.find("$", at)) >= 0 and dollar + 1 < len(text):
        out.append(text[at:dollar])
        follows = text[dollar + 1]
        close = text.find(")", dollar) if follows == "(" and dollar < last else -1
        if follows == "$":
            out.append("$")
            at = dollar + 2
        elif close >= 0:
            name = text[dollar + 2 : close]
            value = find(name)
            room.take(len(value or ""))
            out.append(f"$({name})" if value is None else value)
            at = close + 1
        else:
            out.append("$" + follows)
            at = dollar + 2
    return "".join(out) + text[at:]


def field_value(pod: Obj, path: str, around: Surroundings) -> str:
    """The downward API's fieldRef."""
    fields: dict[str, Callable[[], str]] = {
        "metadata.name": lambda: name_of(pod),
        "metadata.namespace": lambda: namespace_of(pod),
        "metadata.uid": lambda: uid_of(pod),
        "metadata.labels": lambda: _lines(labels_of(pod)),
        "metadata.annotations": lambda: _lines(annotations_of(pod)),
        "spec.nodeName": lambda: spec_of(pod).get("nodeName") or around.node_name,
        "spec.serviceAccountName": lambda: spec_of(pod).get("serviceAccountName") or "",
        "status.hostIP": lambda: around.node_ips[0] if around.node_ips else "",
        "status.hostIPs": lambda: ",".join(around.node_ips),
        "status.podIP": lambda: around.pod_ips[0] if around.pod_ips else "",
        "status.podIPs": lambda: ",".join(around.pod_ips),
    }
    if path in fields:
        return fields[path]()
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is None:
        raise ConfigError(f"unsupported fieldPath: {path}")
    return (labels_of if subscript[1] == "labels" else annotations_of)(pod).get(subscript[2], "")


def resource_value(pod: Obj, container: Obj, selector: Obj, around: Surroundings) -> str:
    """The downward API's resourceFieldRef: rounded up to whole divisors, as upstream."""
    name = selector.get("containerName")
    if name and name != container.get("name"):
        found = find_container(pod, name)
        if found is None:
            raise ConfigError(f"container {name} not found")
        container = found[1]
    kind, _, resource = str(selector.get("resource", "")).partition(".")
    known = resource in ("cpu", "memory", "ephemeral-storage") or resource.startswith("hugepages-")
    if kind not in ("limits", "requests") or not known:
        raise ConfigError(f"unsupported container resource : {selector.get('resource')}")
    amount = _amount(pod, container, kind, resource, around.allocatable)
    divisor = value_of(selector.get("divisor") or "1")
    if not divisor:
        divisor = value_of("1")
    if resource == "cpu":
        return str(-(-amount.milli() // max(divisor.milli(), 1)))
    return str(-(-amount.value() // max(divisor.value(), 1)))


def _amount(
    pod: Obj, container: Obj, kind: str, resource: str, allocatable: Mapping[str, str]
) -> Quantity:
    written = ((container.get("resources") or {}).get(kind) or {}).get(resource)
    amount = value_of(written) if written else ZERO
    if kind == "limits" and not amount and resource in allocatable:
        # Without a limit of its own the pod's is the limit, and without that one the node.
        whole = (spec_of(pod).get("resources") or {}).get("limits") or {}
        of_pod = value_of(whole[resource]) if resource in POD_LEVEL & whole.keys() else ZERO
        return of_pod or value_of(allocatable[resource])
    return amount


def _from_source(source: Obj, objects: Objects) -> Iterator[tuple[str, str]]:
    prefix = source.get("prefix") or ""
    for field_name, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
        reference = source.get(field_name)
        if reference is None:
            continue
        found = objects.get((kind, reference.get("name", "")))
        if found is None:
            if reference.get("optional"):
                return
            raise ConfigError(_not_found(kind, reference.get("name", "")))
        for key, value in (found.get("data") or {}).items():
            yield prefix + key, _text(kind, found, value)
        return


def _from_reference(
    pod: Obj, container: Obj, source: Obj, objects: Objects, around: Surroundings
) -> str | None:
    """None where an optional reference leads nowhere: the variable is not set then."""
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"].get("fieldPath", ""), around)
    if "resourceFieldRef" in source:
        return resource_value(pod, container, source["resourceFieldRef"], around)
    for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if key in source:
            return _value_of_key(pod, kind, source[key], objects)
    if "fileKeyRef" in source:
        return _value_in_file(source["fileKeyRef"], around)
    raise ConfigError(f"environment variables from {', '.join(source)} are not supported yet")


def _value_in_file(reference: Obj, around: Surroundings) -> str | None:
    if around.pretends:
        return None
    file = (reference.get("volumeName", ""), reference.get("path", ""))
    if file not in around.files:
        raise ConfigError(f'cannot find the volume "{file[0]}" referenced by FileKeyRef')
    key, found = reference.get("key", ""), around.files[file]
    if found.text is None:
        raise ConfigError(NO_ENV_FILE)
    try:
        value = found.value_of(key)
    except BadEnvFile as error:
        raise ConfigError(NO_ENV_FILE) from error
    if not value and not reference.get("optional"):
        raise ConfigError(f'environment variable key "{key}" not found in file "{found.path}"')
    return value or None


def _value_of_key(pod: Obj, kind: str, reference: Obj, objects: Objects) -> str | None:
    name, key = reference.get("name", ""), reference.get("key", "")
    found = objects.get((kind, name))
    if found is None:
        if reference.get("optional"):
            return None
        raise ConfigError(_not_found(kind, name))
    value = (found.get("data") or {}).get(key)
    if value is None and not reference.get("optional"):
        raise ConfigError(f"couldn't find key {key} in {kind} {namespace_of(pod)}/{name}")
    return None if value is None else _text(kind, found, value)


def _text(kind: str, found: Obj, value: str | None) -> str:
    """Of one key, since a thousand variables may want one each of the same secret."""
    if kind == "ConfigMap":
        return value or ""
    try:
        # A program's environment is bytes; what is no UTF-8 keeps its bytes this way.
        return base64.b64decode(value or "").decode(errors="surrogateescape")
    except binascii.Error as error:
        raise ConfigError(f"secret {name_of(found)} is damaged: {error}") from error


def _not_found(kind: str, name: str) -> str:
    return f'{kind.lower()} "{name}" not found'


def _lines(pairs: Mapping[str, str]) -> str:
    """As upstream's downward API: sorted, with the values quoted as Go does."""
    return "\n".join(f"{key}={_quote(pairs[key])}" for key in sorted(pairs))


def _quote(text: str) -> str:
    """As Go's strconv.Quote."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(item) or _shown(item) for item in text) + '"'


def _shown(letter: str) -> str:
    code = ord(letter)
    if letter.isprintable():
        return letter
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
