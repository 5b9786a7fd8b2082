"""The scale subresource: an object's replicas as a Scale.

Job: show it, and take it by PUT, PATCH or apply.
"""

from sampan.api.apply.scale import scale_of
from sampan.api.calls import Answer, Call
from sampan.api.errors import invalid, invalid_value
from sampan.api.objects import Obj, copy_of, meta_of
from sampan.apiserver.authn.user import User
from sampan.apiserver.write.decoding import decoded
from sampan.apiserver.write.object_rules import check_names
from sampan.apiserver.write.ownership import check_options
from sampan.apiserver.write.parts import Parts
from sampan.apiserver.write.patching import patched
from sampan.apiserver.write.update import Modification, modify


async def get_scale(parts: Parts, user: User, call: Call) -> Answer:
    item = await parts.registry.current(call.resource, call.namespace, call.name)
    return Answer(scale_of(item.obj))


async def set_scale(parts: Parts, user: User, call: Call) -> Answer:
    warnings: list[str] = []
    given = decoded(parts.schema, call, warnings) if call.verb == "update" else None
    if given is None:
        check_options(call)

    def change(current: Obj) -> Obj:
        if call.options.patch_type == "apply":
            now = parts.clock.now()
            scale, owned = parts.ownership.applied_scale(user, call, current, warnings, now)
            new = _scaled(call, current, scale)
            parts.ownership.own(new, owned, current)
            return new
        if given is not None:
            return _scaled(call, current, given)
        return _scaled(call, current, patched(parts.schema, call, scale_of(current), warnings))

    def keep_generation(new: Obj, old: Obj) -> None:
        if (new.get("spec") or {}) != (old.get("spec") or {}):
            new["metadata"]["generation"] = int(meta_of(old).get("generation") or 0) + 1

    answer = await modify(parts, user, call, Modification(change, keep_generation))
    return Answer(scale_of(answer.obj), warnings=[*warnings, *answer.warnings])


def _scaled(call: Call, current: Obj, scale: Obj) -> Obj:
    """A new object. Raises BadRequest, Invalid."""
    check_names(call, scale)
    replicas = int((scale.get("spec") or {}).get("replicas") or 0)
    if replicas < 0:
        wrong = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("Scale", "autoscaling", call.name, [wrong])
    new: Obj = copy_of(current)
    new["spec"]["replicas"] = replicas
    new["metadata"]["resourceVersion"] = meta_of(scale).get("resourceVersion") or ""
    return new
