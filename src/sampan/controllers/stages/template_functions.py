"""Functions that templates of Stages have beside Go's own: KWOK's, and some of sprig's.

Job: names and what they do, at a moment and for an object. Pure.
Invariant: a function that is not among them is refused when the template is read.
"""

from collections.abc import Callable, Mapping, Sequence
from json import dumps
from typing import Any

import yaml

from sampan.api.go_quoting import quoted
from sampan.api.go_template.functions import ANY, STRING, VALUE, CallError, Function
from sampan.api.go_template.values import NOTHING, is_true, text_of, unboxed
from sampan.api.objects import Obj
from sampan.core.fast_dataclass import dataclass

VERSION = "sampan"
NODE_CONDITIONS: Sequence[Obj] = tuple(
    {"type": type_, "status": status, "reason": reason, "message": message}
    for type_, status, reason, message in (
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        (
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("NetworkUnavailable", "False", "RouteCreated", "RouteController created a route"),
    )
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a template may ask about, beside its object."""

    now: str
    started: str
    node_name: str  # of the object, where it is a Node
    node_ips: Callable[[str], Sequence[str]]  # of a node, by name
    pod_ips: Callable[[str, str], Sequence[str]]  # node and uid → its own


def functions(around: Surroundings) -> Mapping[str, Function]:
    def pod_ips(node: str, host_network: Any, uid: str, _name: str, _namespace: str) -> list[str]:
        if is_true(host_network):
            return list(around.node_ips(node))
        return list(around.pod_ips(node, uid))

    def first_pod_ip(*arguments: Any) -> str:
        return next(iter(pod_ips(*arguments)), "")

    of_pod = (STRING, ANY, STRING, STRING, STRING)
    return {
        **_LASTING,
        "Now": Function((), "", lambda: around.now),
        "StartTime": Function((), "", lambda: around.started),
        "NodeName": Function((), "", lambda: around.node_name),
        "NodeIP": Function((), "", lambda: _first(around.node_ips(around.node_name))),
        "NodeIPWith": Function((STRING,), "", lambda node: _first(around.node_ips(node))),
        "NodeIPsWith": Function((STRING,), "", lambda node: list(around.node_ips(node))),
        "PodIPWith": Function(of_pod, "", first_pod_ip),
        "PodIPsWith": Function(of_pod, "", pod_ips),
    }


def _first(items: Sequence[str]) -> str:
    return items[0] if items else ""


def _json(value: Any) -> str:
    plain = unboxed(value)
    return dumps(None if plain is NOTHING else plain, ensure_ascii=False, separators=(",", ":"))


def _quote(value: Any) -> str:
    """A text as JSON has it; anything else as the text of its JSON."""
    said = _json(value)
    return said if said.startswith('"') else quoted(said)


def _yaml(value: Any, *indent: Any) -> str:
    plain = unboxed(value)
    text = yaml.safe_dump(
        None if plain is NOTHING else plain, default_flow_style=False, allow_unicode=True
    )
    deep = unboxed(indent[0]) if indent else 0
    if isinstance(deep, bool) or not isinstance(deep, int) or not 0 <= deep <= _DEEPEST:
        raise CallError(f"indentation {text_of(deep)} is none of 0 to {_DEEPEST}")
    if not deep:
        return text
    return f"\n{text}".replace("\n", "\n" + " " * (2 * deep))


def _dict(*pairs: Any) -> dict[str, Any]:
    keys = [text_of(key) for key in pairs[::2]]
    values = [unboxed(value) for value in pairs[1::2]]
    values += [""] * (len(keys) - len(values))
    return dict(zip(keys, values, strict=True))


def _default(otherwise: Any, *given: Any) -> Any:
    return given[0] if given and is_true(given[0]) else otherwise


_DEEPEST = 50
_LASTING: Mapping[str, Function] = {
    "NodeConditions": Function((), "", lambda: [dict(each) for each in NODE_CONDITIONS]),
    "NodePort": Function((), "", lambda: 0),
    "Quote": Function((ANY,), "", _quote),
    "Version": Function((), "", lambda: VERSION),
    "YAML": Function((ANY,), ANY, _yaml),
    "default": Function((ANY,), ANY, _default),
    "dict": Function((), ANY, _dict),
    "empty": Function((ANY,), "", lambda value: not is_true(value)),
    "list": Function((), ANY, lambda *items: [unboxed(item) for item in items]),
    "lower": Function((STRING,), "", str.lower),
    "quote": Function((), ANY, lambda *items: " ".join(quoted(text_of(each)) for each in items)),
    "ternary": Function((ANY, ANY, VALUE), "", lambda yes, no, so: yes if is_true(so) else no),
    "toString": Function((ANY,), "", text_of),
    "trim": Function((STRING,), "", str.strip),
    "upper": Function((STRING,), "", str.upper),
}
NAMES = frozenset(functions(Surroundings("", "", "", lambda _: (), lambda _n, _u: ())))
