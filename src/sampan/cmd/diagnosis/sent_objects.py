"""A diagnosis of objects that somebody sends: the page has read them as its user. Pure.

Job: `{pod, events, node}` → `{findings}`, as `sampan why -o json` has them. A node of null is gone;
    one that is not sent may not be seen, and is not judged.
Invariant: what is no pod is refused; whatever is in it, nothing is read and nothing kept.
"""

from typing import Any, TypeGuard

from sampan.api.errors import BadRequest
from sampan.api.objects import Obj
from sampan.cmd.diagnosis.finding_lines import finding_objects
from sampan.cmd.diagnosis.pod_diagnosis import diagnosis

MOST_EVENTS = 500
UNSEEN: Obj = {"metadata": {}}
REFUSED = "write {pod: a Pod, events: those about it, the oldest first, node: its Node}"


def findings_in(asked: Obj) -> Obj:
    """Raises BadRequest."""
    pod, events, node = asked.get("pod"), asked.get("events") or [], asked.get("node", UNSEEN)
    if not _is_object(pod) or not isinstance(events, list) or not all(map(_is_object, events)):
        raise BadRequest(REFUSED)
    try:
        found = diagnosis(pod, events[-MOST_EVENTS:], node if _is_object(node) else None)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadRequest(f"{REFUSED}: this is none of that form") from error
    return {"findings": finding_objects(found)}


def _is_object(value: Any) -> TypeGuard[Obj]:
    return isinstance(value, dict) and isinstance(value.get("metadata"), dict)
