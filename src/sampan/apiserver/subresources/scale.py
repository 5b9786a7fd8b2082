"""The scale subresource: an object's replicas as a Scale.

Job: show it, and take it by PUT, PATCH or apply.
"""

from sampan.api.apply.scale import custom_scale_of, scale_of, value_at, with_replicas
from sampan.api.calls import Answer, Call
from sampan.api.custom.custom_version import ScalePaths, custom_of
from sampan.api.errors import FieldError, invalid, invalid_value
from sampan.api.objects import Obj, copy_of, meta_of
from sampan.api.resources import Resource
from sampan.api.validation import validate_update
from sampan.apiserver.authn.user import User
from sampan.apiserver.write.decoding import decode_body
from sampan.apiserver.write.object_rules import check_names, in_version_of
from sampan.apiserver.write.ownership import check_options
from sampan.apiserver.write.patching import apply_patch
from sampan.apiserver.write.request_scope import RequestScope
from sampan.apiserver.write.update import Modification, modify


async def get_scale(scope: RequestScope, user: User, call: Call) -> Answer:
    item = await scope.registry.current(call.resource, call.namespace, call.name)
    return Answer(scale_of(item.obj))


async def set_scale(scope: RequestScope, user: User, call: Call) -> Answer:
    warnings: list[str] = []
    given = decode_body(scope.schema, call, warnings) if call.verb == "update" else None
    if given is None:
        check_options(call)
    else:
        check_names(call, given)

    def change(current: Obj) -> Obj:
        if call.options.patch_type == "apply":
            now = scope.clock.now()
            scale, owned = scope.ownership.applied_scale(user, call, current, warnings, now)
            new = _scale(call, current, scale)
            scope.ownership.own(new, owned, current)
            return new
        if given is not None:
            return _scale(call, current, given)
        return _scale(call, current, apply_patch(scope.schema, call, scale_of(current), warnings))

    def keep_generation(new: Obj, old: Obj) -> None:
        if (new.get("spec") or {}) != (old.get("spec") or {}):
            new["metadata"]["generation"] = int(meta_of(old).get("generation") or 0) + 1

    answer = await modify(scope, user, call, Modification(change, keep_generation))
    return Answer(scale_of(answer.obj), warnings=[*warnings, *answer.warnings])


async def get_custom_scale(scope: RequestScope, user: User, call: Call) -> Answer:
    item = await scope.registry.current(call.resource, call.namespace, call.name)
    await scope.conversions.prepare(call.resource, (item,))
    return Answer(custom_scale_of(in_version_of(call.resource, item), _paths(call)))


async def set_custom_scale(scope: RequestScope, user: User, call: Call) -> Answer:
    """Where a definition says that the number is; its schema has a say in it."""
    warnings: list[str] = []
    paths = _paths(call)
    given = decode_body(scope.schema, call, warnings) if call.verb == "update" else None
    if given is None:
        check_options(call)
    else:
        check_names(call, given)

    def change(current: Obj) -> Obj:
        if call.options.patch_type == "apply":
            now = scope.clock.now()
            scale, owned = scope.ownership.applied_scale(user, call, current, warnings, now)
            new = _custom_scaled(call, current, scale, paths)
            scope.ownership.own(new, owned, current)
            return new
        scale = given or apply_patch(scope.schema, call, custom_scale_of(current, paths), warnings)
        return _custom_scaled(call, current, scale, paths)

    def validate(resource: Resource, new: Obj, old: Obj, said: list[str]) -> list[FieldError]:
        errors = validate_update(resource, new, old, said)
        replicas = value_at(new, paths.spec)
        if replicas < 0:
            why = "should be a non-negative integer"
            errors.append(invalid_value("." + ".".join(paths.spec), replicas, why))
        return errors

    answer = await modify(scope, user, call, Modification(change, _bump, validate))
    scale = custom_scale_of(answer.obj, paths)
    return Answer(scale, warnings=[*warnings, *answer.warnings])


def _bump(new: Obj, old: Obj) -> None:
    if new.get("spec") != old.get("spec"):
        new["metadata"]["generation"] = int(meta_of(old).get("generation") or 0) + 1


def _paths(call: Call) -> ScalePaths:
    custom = custom_of(call.resource)
    assert custom is not None, call
    assert custom.scale is not None, call
    return custom.scale


def _custom_scaled(call: Call, current: Obj, scale: Obj, paths: ScalePaths) -> Obj:
    check_names(call, scale)
    replicas = int((scale.get("spec") or {}).get("replicas") or 0)
    new = with_replicas(current, paths.spec, replicas)
    revision = meta_of(scale).get("resourceVersion") or meta_of(current)["resourceVersion"]
    new["metadata"] = {**meta_of(current), "resourceVersion": revision}
    return new


def _scale(call: Call, current: Obj, scale: Obj) -> Obj:
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
