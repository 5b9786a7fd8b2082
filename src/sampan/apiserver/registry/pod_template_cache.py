"""Pod template cache: what was worked out for some pods of a template holds for the others.

Job: a spec that has come before, as it was decoded, with its defaults and its fields; and whether
    such a spec, as admission leaves it, was found valid.
Invariant: what is remembered is what the long way finds: it depends on the text alone, and a spec
    with anything invalid, unknown or worth a warning is not remembered.
Invariant: what is remembered is bounded in bytes (storage.sharing).
Owner: the strategy of pods; one for each server.
"""

from collections.abc import Callable, Sequence

import orjson

from sampan.api.apply.field_sets import FieldSet
from sampan.api.calls import Call
from sampan.api.defaults import apply_defaults
from sampan.api.errors import BadRequest
from sampan.api.objects import Obj
from sampan.api.resources import PODS, Resource
from sampan.api.schema.published import Schema
from sampan.api.warnings.pods import name_warnings
from sampan.apiserver.registry.pods import first_status
from sampan.apiserver.registry.strategy import DecodedSpec
from sampan.apiserver.storage.sharing import Remembered

FieldsOfNew = Callable[[Resource, Obj], FieldSet]


class PodTemplateCache:
    def __init__(self, schema: Schema, fields_of_new: FieldsOfNew) -> None:
        """`fields_of_new`: the fields that the creator of an object owns."""
        self._schema, self._fields_of_new = schema, fields_of_new
        self._decoded = Remembered()  # by the text that was sent
        self._valid = Remembered()  # the QoS class, by the validation key

    def decoded(self, call: Call) -> DecodedSpec | None:
        """The spec that a create sends; None where it is new."""
        if call.subresource or call.options.patch_type == "apply":
            return None
        text = _text_of(call.body.get("spec") if isinstance(call.body, dict) else None)
        if text is None:
            return None
        found: DecodedSpec | None = self._decoded.get(text)
        if found is None and self._decoded.comes_again(text):
            found = self._decode(call.body["spec"])
            if found is not None:
                self._decoded.keep(text, found)
        return found

    def _decode(self, spec: Obj) -> DecodedSpec | None:
        try:
            checked = self._schema.check(PODS.api_version, PODS.kind, {"spec": spec})
        except BadRequest:
            return None
        if checked.unknown:
            return None  # each caller is told of it as it wants
        pod = {**checked.obj, "apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": {}}
        apply_defaults(PODS, pod)
        fields = self._fields_of_new(PODS, pod).get("f:spec")
        return None if not fields else DecodedSpec(orjson.dumps(pod["spec"]), fields)

    def validation_key(self, obj: Obj) -> bytes | None:
        """All that decides whether the pod is valid, and of which QoS class, besides what every
        kind's metadata has to be; None where more does."""
        spec = obj.get("spec")
        if type(spec) is not dict or "schedulingGates" in spec or spec.get("resources"):
            return None
        text = _text_of([spec, obj["metadata"].get("annotations")])
        if text is None or b'atchLabelKeys"' in text:
            return None  # labels are merged into selectors
        return text

    def prepare_valid(self, key: bytes | None, obj: Obj) -> Sequence[str] | None:
        """What prepare_create does to a pod that is known to be valid, and what its name is warned
        of; None: it is not known."""
        qos_class = self._valid.get(key) if key is not None else None
        if qos_class is None:
            return None
        obj["status"] = first_status(qos_class)
        return [*name_warnings(obj)]

    def remember_valid(self, key: bytes, obj: Obj) -> None:
        self._valid.keep(key, obj["status"]["qosClass"])


def _text_of(value: object) -> bytes | None:
    if not value:
        return None
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError):
        return None  # numbers and texts that only some writers can print
