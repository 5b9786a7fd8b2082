"""Pods of one template: what was worked out for some of them holds for the others.

Job: a spec that has come before, as it was read, with its defaults and with what of it is whose;
    and whether such a spec, as admission leaves it, was found good.
Invariant: what is remembered is what the long way finds: it hangs on the text alone, and a spec
    with anything wrong, unknown or worth a warning is not remembered.
Invariant: what is remembered is bounded in bytes (storage.sharing).
Owner: Parts; one for each server.
"""

from typing import NamedTuple

import orjson

from sampan.api.apply.field_sets import FieldSet
from sampan.api.calls import Call
from sampan.api.defaults import apply_defaults
from sampan.api.errors import BadRequest
from sampan.api.objects import Obj
from sampan.api.resources import PODS, Resource
from sampan.api.schema.published import Schema
from sampan.apiserver.storage.sharing import Remembered
from sampan.apiserver.write.ownership import Ownership


class ReadSpec(NamedTuple):
    text: bytes  # with its defaults
    fields: FieldSet  # all of it, as its maker owns it


class AlikePods:
    def __init__(self, schema: Schema, ownership: Ownership) -> None:
        self._schema, self._ownership = schema, ownership
        self._read = Remembered()  # by the text that was sent
        self._good = Remembered()  # its QoS class, by the text that decides whether it is good

    def read(self, call: Call) -> ReadSpec | None:
        """The spec that a create sends; None where it is new, or no pod's."""
        if call.resource is not PODS or call.subresource or call.options.patch_type == "apply":
            return None
        text = _text_of(call.body.get("spec") if isinstance(call.body, dict) else None)
        if text is None:
            return None
        found: ReadSpec | None = self._read.get(text)
        if found is None and self._read.comes_again(text):
            found = self._first(call.body["spec"])
            if found is not None:
                self._read.keep(text, found)
        return found

    def _first(self, spec: Obj) -> ReadSpec | None:
        try:
            checked = self._schema.check(PODS.api_version, PODS.kind, {"spec": spec})
        except BadRequest:
            return None
        if checked.unknown:
            return None  # each caller is told of it as it wants
        pod = {**checked.obj, "apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": {}}
        apply_defaults(PODS, pod)
        fields = self._ownership.fields_of_new(PODS, pod).get("f:spec")
        return None if not fields else ReadSpec(orjson.dumps(pod["spec"]), fields)

    def judged_by(self, resource: Resource, pod: Obj) -> bytes | None:
        """All that decides whether the pod is good, and of which QoS class, besides what every
        kind's metadata has to be; None where more does, or it is no pod."""
        spec = pod.get("spec")
        if resource is not PODS or type(spec) is not dict or "schedulingGates" in spec:
            return None
        return _text_of([spec, pod["metadata"].get("annotations")])

    def qos_class(self, text: bytes | None) -> str:
        """Of a pod that is known to be good; else empty."""
        return (self._good.get(text) if text is not None else None) or ""

    def note_good(self, text: bytes | None, qos_class: str) -> None:
        if text is not None:
            self._good.keep(text, qos_class)


def _text_of(value: object) -> bytes | None:
    if not value:
        return None
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError):
        return None  # numbers and texts that only some writers can print
