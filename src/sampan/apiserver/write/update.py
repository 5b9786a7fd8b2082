"""Update: PUT and PATCH of an object or its status, and every other change of an object.

Job: read, change, admit, validate, compare-and-swap; again when somebody else was faster.
Invariant: a write that names a resourceVersion is stored over that version or not at all.
"""

from collections.abc import Callable
from functools import partial

from sampan.api import convert
from sampan.api.calls import Answer, Call
from sampan.api.errors import Conflict, Failure, FieldError, conflict, invalid, invalid_value
from sampan.api.objects import Obj, uid_of
from sampan.api.resources import Resource
from sampan.api.validation import validate_status_update, validate_update
from sampan.api.warnings import warnings_of
from sampan.apiserver.admission.chain import NO_ADMISSION, UPDATE, attributes_of
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry.generic import Stale, Terms, answer_of
from sampan.apiserver.registry.metadata import bump_generation, prepare_updated
from sampan.apiserver.write.changes import Change, change_of
from sampan.apiserver.write.delete import remove
from sampan.apiserver.write.object_rules import (
    WarningsCarried,
    as_stored,
    in_version_of,
    keep_all_but_status,
    keep_custom_but_status,
    keep_status,
    refuse,
)
from sampan.apiserver.write.ownership import settle
from sampan.apiserver.write.races import ATTEMPTS, lost_race
from sampan.apiserver.write.request_scope import RequestScope, weight_of, weight_with
from sampan.core.digits import all_digits
from sampan.core.fast_dataclass import dataclass


def _keep(_new: Obj, _old: Obj) -> None:
    """The change is the server's own: nothing to prepare."""


def _accept(_resource: Resource, _new: Obj, _old: Obj, _warnings: list[str]) -> list[FieldError]:
    """The change is the server's own: nothing to validate."""
    return []


_APART = ("apiextensions.k8s.io", "apiregistration.k8s.io")  # servers of their own upstream
_OLD_KEYS = {
    "endpoints": "services/endpoints", "ingresses": "ingress", "nodes": "minions",
    "replicationcontrollers": "controllers", "services": "services/specs",
}  # fmt: skip
Prepare = Callable[[Obj, Obj], None]  # (new, old)
Validate = Callable[[Resource, Obj, Obj, list[str]], list[FieldError]]  # and warnings


@dataclass(frozen=True, slots=True)
class Modification:
    """What a write does to an object that is there."""

    change: Change
    prepare: Prepare = _keep
    validate: Validate = _accept
    is_admitted: bool = False  # admission has had its say, of what was sent


async def update(scope: RequestScope, user: User, call: Call) -> Answer:
    """PUT and PATCH, of an object or of its status."""
    strategy = scope.strategies.of(call.resource)
    status = call.subresource == "status"

    def prepare(new: Obj, old: Obj) -> None:
        if status and call.resource.custom is not None:
            keep_custom_but_status(call.resource, new, old)
            return
        if status:
            keep_all_but_status(call.resource, new, old)
            strategy.prepare_status(new, old)
            return
        if call.resource.subresource("status") is not None:
            keep_status(new, old)
        strategy.prepare_update(new, old)

    validate = validate_status_update if status else validate_update
    return await modify_by_body(scope, user, call, prepare, validate)


async def modify_by_body(
    scope: RequestScope, user: User, call: Call, prepare: Prepare, validate: Validate
) -> Answer:
    """PUT and PATCH, by what the call sends."""
    warnings: list[str] = []
    with WarningsCarried(warnings):
        change = await scope.beside(
            weight_of(call), partial(change_of, scope, user, call, warnings)
        )
        answer = await modify(scope, user, call, Modification(change, prepare, validate))
    answer.warnings = [*dict.fromkeys(warnings), *answer.warnings]
    return answer


async def modify(scope: RequestScope, user: User, call: Call, what: Modification) -> Answer:
    """Read, change, check, compare-and-swap; again when somebody else was faster."""
    resource, dry_run = call.resource, call.options.dry_run
    strategy = scope.strategies.of(resource)
    admission = NO_ADMISSION if what.is_admitted else scope.admission
    is_custom = resource.custom is not None  # has other forms
    for _ in range(ATTEMPTS):
        item = await scope.registry.current(resource, call.namespace, call.name)
        if is_custom:
            await scope.conversions.prepare(resource, (item,))
        old = in_version_of(resource, item)
        size = max(weight_of(call), item.size)
        step = partial(scope.beside, size, partial(_change, scope, user, call, what, old))
        new = await (scope.conversions.with_forms(step) if is_custom else step())
        call.marks.at("change")
        attributes = attributes_of(user, UPDATE, call, new, old)
        await admission.mutate(attributes)
        call.marks.at("mutating admission")
        size = max(size, weight_with(call, new))
        warnings = await scope.beside(size, partial(_check, scope, call, what, new, old))
        warnings += () if call.subresource else strategy.warn(new, old)
        call.marks.at("validation")
        try:
            async with attributes.hold as hold:
                if strategy.allocate is not None:
                    await strategy.allocate(new, old, dry_run, hold)
                await admission.validate(attributes)
                call.marks.at("validating admission")
                stored = as_stored(resource, new)
                if is_custom:
                    stored = await scope.conversions.stored(resource, stored)
                if strategy.vanishes(stored):
                    await remove(scope, call, item)
                    return Answer(new, warnings=[*warnings, *attributes.warnings])
                terms = Terms(strategy.ttl_seconds, dry_run, hold)
                item = await scope.registry.replace(resource, item, stored, terms)
        except Stale:
            call.marks.at("lost race")
            continue
        call.marks.at("store commit")
        if is_custom:
            await scope.conversions.prepare(resource, (item,))
        answer = answer_of(resource, item)
        answer.warnings = [*warnings, *attributes.warnings]
        return answer
    raise lost_race(call)


def precondition_error(call: Call, what: str, wanted: str, found: str) -> Conflict:
    """As upstream's store says it, with its own key."""
    resource = call.resource
    place = f"{call.namespace}/{call.name}" if call.namespace else call.name
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{_upstream_key(resource)}/{place}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: "
        f"{wanted}, {what} in object meta: {found}"
    )
    return conflict(resource.plural, resource.group, call.name, why)


def _upstream_key(resource: Resource) -> str:
    """Below which upstream keeps a kind."""
    if resource.custom is not None or resource.group in _APART:
        return f"{resource.group}/{resource.plural}"
    return _OLD_KEYS.get(resource.plural, resource.plural)


def _change(scope: RequestScope, user: User, call: Call, what: Modification, old: Obj) -> Obj:
    new = what.change(old)
    _check_based_on(scope, call, new, old)
    scope.ownership.updated(user, call, new, old, scope.clock.now())
    return new


def _check(scope: RequestScope, call: Call, what: Modification, new: Obj, old: Obj) -> list[str]:
    """The warnings; raises Invalid."""
    resource = call.resource
    prepare_updated(new, old)
    checked, before = convert.as_rules_read(resource, new), convert.as_rules_read(resource, old)
    strategy = scope.strategies.of(resource)
    if strategy.drop_gated is not None and not _keeps_gated(call):
        strategy.drop_gated(checked, before)
    what.prepare(checked, before)
    if not call.subresource and strategy.has_generation:
        own_status = resource.custom is not None and resource.subresource("status") is None
        bump_generation(checked, before, own_status, strategy.generation_metadata)
    settle(checked, before)
    warnings: list[str] = []
    refuse(resource, new, what.validate(resource, checked, before, warnings), warnings)
    convert.write_back(resource, new, checked)
    return warnings + ([] if call.subresource else warnings_of(resource, new, old))


def _keeps_gated(call: Call) -> bool:
    """What a node says of itself is kept whatever is on: upstream drops it of the whole only."""
    return call.subresource == "status" and call.resource.group_resource == "nodes"


def _check_based_on(scope: RequestScope, call: Call, new: Obj, old: Obj) -> None:
    """The caller's resourceVersion and uid, where it gave them, must be the object's."""
    resource, meta = call.resource, new["metadata"]
    given = str(meta.get("resourceVersion") or "")
    if given in ("", "0"):
        if not scope.strategies.of(resource).unconditional_update:
            why = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(resource.plural, resource.group, call.name, [why])
    elif given != old["metadata"]["resourceVersion"]:
        if not all_digits(given):
            raise Failure(f'strconv.ParseUint: parsing "{given}": invalid syntax')
        raise lost_race(call)
    # A patch has no preconditions, as upstream: there another uid is a change like any other.
    if call.verb != "patch" and meta.get("uid") and meta["uid"] != old["metadata"]["uid"]:
        raise precondition_error(call, "UID", meta["uid"], uid_of(old))
