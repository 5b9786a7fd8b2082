"""POST: create.

Job: name, default, admit, validate and insert a new object; and what has to come with it.
Invariant: nothing is stored before every step agreed.
"""

from functools import partial

from sampan.api import convert
from sampan.api.calls import Answer, Call, Item
from sampan.api.custom.custom_version import custom_of
from sampan.api.defaults import apply_defaults
from sampan.api.errors import AlreadyExists, Failure, forbidden
from sampan.api.objects import Obj, name_of
from sampan.api.validation import validate_create, validate_identity
from sampan.api.warnings import warnings_of
from sampan.apiserver.admission.chain import CREATE, attributes_of
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry import names
from sampan.apiserver.registry.generic import Terms, answer_of
from sampan.apiserver.registry.metadata import new_uid, prepare_created
from sampan.apiserver.registry.strategy import Contents, Strategy
from sampan.apiserver.write.decoding import decode_body, decode_with_spec
from sampan.apiserver.write.ensure import ensure
from sampan.apiserver.write.object_rules import (
    WarningsCarried,
    as_stored,
    check_namespace,
    clear_status,
    refuse,
)
from sampan.apiserver.write.request_scope import RequestScope, weight_of, weight_with
from sampan.core.digits import is_digits
from sampan.core.holding import Outcome
from sampan.core.tasks import all_of


async def create(scope: RequestScope, user: User, call: Call) -> Answer:
    warnings: list[str] = []
    with WarningsCarried(warnings):
        return await _create(scope, user, call, warnings)


async def _create(scope: RequestScope, user: User, call: Call, warnings: list[str]) -> Answer:
    resource, strategy = call.resource, scope.strategies.of(call.resource)
    if scope.registry.store.shared:
        # What admission looks up may have been written through another server just now.
        await scope.registry.cache.fresh()
    now = scope.clock.now()

    def read() -> Obj:
        known = None if strategy.templates is None else strategy.templates.decoded(call)
        if known is None:
            obj = decode_body(scope.schema, call, warnings)
        else:
            obj = decode_with_spec(scope.schema, call, known.text, warnings)
        _check_definition(call, obj)
        check_namespace(call, obj.setdefault("metadata", {}))
        if known is None:
            apply_defaults(resource, obj)
        scope.ownership.created(user, call, obj, now, None if known is None else known.fields)
        return obj

    obj = await scope.beside(weight_of(call), read)
    call.marks.at("defaulting")
    revision = obj["metadata"].get("resourceVersion") or "0"
    attributes = attributes_of(user, CREATE, call, obj, None)
    await scope.admission.mutate(attributes)
    call.marks.at("mutating admission")
    check_namespace(call, obj["metadata"])  # a policy or webhook moves nothing elsewhere
    _name(scope, strategy, obj["metadata"])
    prepare_created(obj, new_uid(scope.rng), scope.clock.now(), strategy.has_generation)
    await scope.beside(weight_with(call, obj), partial(_check, scope, call, obj, warnings))
    warnings += strategy.warn(obj, None)
    call.marks.at("validation")
    dry_run = call.options.dry_run
    async with attributes.hold as hold:
        if strategy.contents is not None and not dry_run:
            hold.add(partial(_furnish, scope, strategy.contents, obj))
        if strategy.allocate is not None:
            await strategy.allocate(obj, None, dry_run, hold)
        await scope.admission.validate(attributes)
        call.marks.at("validating admission")
        if is_digits(revision) and int(revision):
            raise Failure("resourceVersion should not be set on objects to be created")
        item = await _insert(scope, call, obj, Terms(strategy.ttl_seconds, dry_run, hold))
    call.marks.at("store commit")
    if resource.custom is not None:
        await scope.conversions.prepare(resource, (item,))
    answer = answer_of(resource, item, 201)
    answer.warnings = [*warnings, *attributes.warnings]
    return answer


def _check(scope: RequestScope, call: Call, obj: Obj, warnings: list[str]) -> None:
    resource, strategy = call.resource, scope.strategies.of(call.resource)
    if not strategy.keeps_status_on_create and resource.subresource("status") is not None:
        clear_status(scope.schema, resource, obj)
        apply_defaults(resource, obj)
    checked = convert.as_rules_read(resource, obj)
    if strategy.drop_gated is not None:
        strategy.drop_gated(checked, None)
    templates = strategy.templates
    key = None if templates is None else templates.validation_key(obj)
    known = None if templates is None else templates.prepare_valid(key, obj)
    if known is not None:
        refuse(resource, obj, validate_identity(resource, obj), warnings)
        warnings += known
        return
    strategy.prepare_create(checked)
    refuse(resource, obj, validate_create(resource, checked, warnings), warnings)
    convert.write_back(resource, obj, checked)
    found = warnings_of(resource, obj, None)
    if templates is not None and key is not None and not found:
        templates.remember_valid(key, obj)
    warnings += found


def _check_definition(call: Call, obj: Obj) -> None:
    """A custom kind that is on its way out takes no new objects. Raises Forbidden."""
    custom = custom_of(call.resource)
    if custom is not None and custom.family.is_terminating:
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(call.resource.plural, call.resource.group, name_of(obj), why)


def _name(scope: RequestScope, strategy: Strategy, meta: Obj) -> None:
    """As upstream: whoever mutates an object sees no generated name, and may give it one."""
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = names.generate_name(meta["generateName"], scope.rng)
    if not meta.get("name") and strategy.names_the_nameless:
        meta["name"] = new_uid(scope.rng)


async def _furnish(scope: RequestScope, contents: Contents, obj: Obj, outcome: Outcome) -> None:
    """What the object has from its first moment; its creator hears of it when that is there."""
    if outcome is Outcome.COMMITTED:
        await all_of(ensure(scope, *each) for each in contents(obj))


async def _insert(scope: RequestScope, call: Call, obj: Obj, terms: Terms) -> Item:
    """With a generated name that turns out to be taken, another one is tried."""
    resource, meta = call.resource, obj["metadata"]
    for attempt in range(names.ATTEMPTS):
        try:
            stored = await scope.conversions.stored(resource, as_stored(resource, obj))
            return await scope.registry.insert(resource, stored, terms)
        except AlreadyExists:
            given = not meta.get("generateName") or call.body.get("metadata", {}).get("name")
            if given or attempt == names.ATTEMPTS - 1:
                raise
        meta["name"] = names.generate_name(meta["generateName"], scope.rng)
        scope.strategies.of(resource).prepare_create(obj)
    raise AssertionError("unreachable")
