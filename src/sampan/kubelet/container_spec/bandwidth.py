"""Bandwidth limits of a pod, as its annotations ask for them.

Job: the rates, and what is wrong with them, for an event; the pod's network does the rest. Pure.
"""

from collections.abc import Mapping

from sampan.api.objects import Obj, annotations_of
from sampan.api.quantity import QuantityError, value_of
from sampan.api.rules.pods import is_host_network
from sampan.kubelet.contracts.runtime import RuntimeFailure

INGRESS, EGRESS = "kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth"
# As upstream: a kilobit and a petabit per second.
_LEAST, _MOST = value_of("1k"), value_of("1P")


def is_limited(annotations: Mapping[str, str]) -> bool:
    return INGRESS in annotations or EGRESS in annotations


def rate_of(annotations: Mapping[str, str], name: str) -> int:
    """Bits per second; 0: no limit. Raises RuntimeFailure."""
    if name not in annotations:
        return 0
    if fault := _fault(annotations[name]):
        raise RuntimeFailure(f"failed to get bandwidth info from annotations: {fault}")
    return value_of(annotations[name]).value()


def warning_of(pod: Obj, *, shaped: bool) -> tuple[str, str] | None:
    """Reason and message of the event; None: nothing to warn of. `shaped`: there is a plugin."""
    notes = annotations_of(pod)
    if not is_limited(notes):
        return None
    if is_host_network(pod):
        why = "Bandwidth shaping is not currently supported on the host network"
        return "HostNetworkNotSupported", why
    for name in (INGRESS, EGRESS):
        if name in notes and (fault := _fault(notes[name])):
            return "InvalidBandwidth", f"{name}: {fault}"
    if not shaped:
        return "UndefinedShaper", "the CNI plugin bandwidth is missing: the pod is not limited"
    return None


def _fault(text: str) -> str:
    try:
        rate = value_of(text)
    except QuantityError as error:
        return str(error)
    if rate < _LEAST:
        return "resource is unreasonably small (< 1kbit)"
    return "resource is unreasonably large (> 1Pbit)" if rate > _MOST else ""
