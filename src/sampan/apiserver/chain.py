"""The whole way of a call, on one screen.

    request info ▸ authn ▸ (audit ▸ flow) ▸ authz
    ▸ decode ▸ default ▸ mutate ▸ validate ▸ admit ▸ store

Job: take one call of one user through the steps; each step lives in a module of its own.
Invariant: over HTTPS and in this process a call takes the same steps; there is no other way in.
Invariant: a write is refused whole or stored whole; nothing is stored before every step agreed.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace

from sampan.api.calls import Answer, Call, Item, ListAnswer
from sampan.api.defaults import apply_defaults
from sampan.api.errors import (
    AlreadyExists,
    BadRequest,
    FieldError,
    MethodNotAllowed,
    NotFound,
    conflict,
    invalid,
    invalid_value,
)
from sampan.api.objects import Obj, name_of, namespace_of, uid_of
from sampan.api.resources import NAMESPACES, SERVICES, Resource
from sampan.api.schema.published import Schema
from sampan.api.validation import validate_create, validate_status_update, validate_update
from sampan.apiserver.admission.chain import (
    CONNECT,
    CREATE,
    DELETE,
    UPDATE,
    Admission,
    attributes_of,
)
from sampan.apiserver.admission.chain import Attributes as Admitted
from sampan.apiserver.audit.audit_log import is_noting, note
from sampan.apiserver.authn.chain import Authentication
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes, Authorization
from sampan.apiserver.registry import deletion, names, namespaces
from sampan.apiserver.registry.generic import Registry, Stale, answer_of
from sampan.apiserver.registry.metadata import (
    bump_generation,
    new_uid,
    prepare_created,
    prepare_updated,
)
from sampan.apiserver.registry.reads import list_of, wait_for
from sampan.apiserver.registry.selection import name_selected, selection_of
from sampan.apiserver.registry.services import Allocator
from sampan.apiserver.registry.strategies import Strategies
from sampan.apiserver.settings import ApiServerSettings
from sampan.apiserver.watch.watch_stream import WatchStream, open_watch
from sampan.apiserver.write.decoding import decoded
from sampan.apiserver.write.object_rules import (
    as_stored,
    check_names,
    check_namespace,
    deleted_status,
    keep_all_but_status,
    keep_status,
    refuse,
    shown,
)
from sampan.apiserver.write.ownership import Ownership, check_options, settle
from sampan.apiserver.write.patching import patched
from sampan.core.clock import Clock
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import all_of

# How often a write that lost a race is tried again, where the caller set no condition. Each loss is
# somebody else's success, so the bound is there for bugs only.
ATTEMPTS = 100
AT_ONCE = 256  # deletions of one deletecollection under way
# Answered by the node, through the HTTP edge.
CONNECTED = frozenset({"attach", "exec", "log", "portforward", "proxy"})
# What may be read and written of an object besides its main part, each by its own rule.
STATUS_LIKE = frozenset({"approval", "status"})
MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)

Change = Callable[[Obj], Obj]  # the object as it is → as it shall be; a new one
Prepare = Callable[[Obj, Obj], None]
Validate = Callable[[Resource, Obj, Obj], list[FieldError]]
Handler = Callable[["Chain", User, Call], Awaitable[Answer | ListAnswer]]
Warnings = list[str]


@dataclass(frozen=True, slots=True)
class Parts:
    """What the steps are made of; put together by the server."""

    registry: Registry
    schema: Schema
    strategies: Strategies
    authentication: Authentication
    authorization: Authorization
    admission: Admission
    allocator: Allocator
    settings: ApiServerSettings
    clock: Clock
    rng: random.Random


class Chain:
    def __init__(self, parts: Parts, handlers: dict[tuple[str, str, str], Handler]) -> None:
        self.parts = parts
        self._handlers = handlers  # (group resource, subresource, verb) → what is not generic
        self.ownership = Ownership(parts.schema)

    async def perform(self, user: User, call: Call) -> Answer | ListAnswer:
        await self.authorize(user, call)
        handler = self._handlers.get((call.resource.group_resource, call.subresource, call.verb))
        if handler is not None:
            return await handler(self, user, call)
        match call.verb:
            case "get" if call.subresource not in CONNECTED:
                return await self.get(call)
            case "list":
                return await self.list(call)
            case "create" if not call.subresource:
                return await self.create(user, call)
            case "patch" if call.options.patch_type == "apply" and not call.subresource:
                return await self.apply(user, call)
            case "update" | "patch" if not call.subresource or call.subresource in STATUS_LIKE:
                return await self.update(user, call)
            case "delete" if not call.subresource:
                return await self.delete(user, call)
            case "deletecollection":
                return await self.delete_collection(user, call)
        raise MethodNotAllowed("the server does not allow this method on the requested resource")

    async def watch(self, user: User, call: Call) -> WatchStream:
        await self.authorize(user, call)
        parts = self.parts
        strategy = parts.strategies.of(call.resource)
        selection = selection_of(call.resource, strategy, call.name, call.options)
        return await open_watch(parts.registry, call, selection, parts.settings, parts.rng)

    async def authorize(self, user: User, call: Call) -> None:
        """Raises Forbidden."""
        resource, may = call.resource, self.parts.authorization
        kind = (
            user.name, user.groups, call.verb, resource.group, resource.plural, call.subresource,
            call.namespace,
        )  # fmt: skip
        reason = may.known.get(kind)
        if reason is None:
            fields = call.options.field_selector
            asked = Attributes(
                user, call.verb, resource.group, resource.plural, call.subresource,
                call.namespace, call.name or (name_selected(fields) if fields else ""), "", fields,
            )  # fmt: skip
            note("authorization.k8s.io/decision", "forbid")
            reason = await may.require(asked)
            await may.remember(kind, asked, reason)
        if is_noting():
            note("authorization.k8s.io/decision", "allow")
            note("authorization.k8s.io/reason", reason)

    async def get(self, call: Call) -> Answer:
        await wait_for(self.parts.registry, call.options.resource_version)
        item = self.parts.registry.cached(call.resource, call.namespace, call.name)
        return answer_of(call.resource, item)

    async def list(self, call: Call) -> ListAnswer:
        strategy = self.parts.strategies.of(call.resource)
        selection = selection_of(call.resource, strategy, call.name, call.options)
        return await list_of(self.parts.registry, call, selection)

    async def admit_connection(self, user: User, call: Call, options: Obj) -> Obj:
        """What is asked of a pod, node or service, as admission leaves it. Raises ApiError."""
        attributes = attributes_of(user, CONNECT, call, options, None)
        await self.parts.admission.mutate(attributes)
        async with self._admitted(attributes):
            return options

    async def create(self, user: User, call: Call) -> Answer:
        parts, resource = self.parts, call.resource
        warnings: list[str] = []
        strategy = parts.strategies.of(resource)
        if parts.registry.store.shared:
            # What admission looks up may have been written through another server just now.
            await parts.registry.cache.fresh()
        obj = decoded(parts.schema, call, warnings)
        self._name_new(call, obj)
        apply_defaults(resource, obj)
        self.ownership.created(user, call, obj, parts.clock.now())
        attributes = attributes_of(user, CREATE, call, obj, None)
        await parts.admission.mutate(attributes)
        prepare_created(obj, new_uid(parts.rng), parts.clock.now(), strategy.has_generation)
        if not strategy.keeps_status_on_create and resource.subresource("status") is not None:
            obj.pop("status", None)
            apply_defaults(resource, obj)
        strategy.prepare_create(obj)
        refuse(resource, obj, validate_create(resource, obj))
        async with self._allocated(call, obj, None), self._admitted(attributes):
            item = await self._insert(call, obj)
        if resource is NAMESPACES and not call.options.dry_run:
            await self._furnish(name_of(item.obj))
        answer = answer_of(resource, item, 201)
        answer.warnings = [*warnings, *attributes.warnings]
        return answer

    async def update(self, user: User, call: Call) -> Answer:
        """PUT and PATCH, of an object or of its status."""
        warnings: list[str] = []
        if call.verb == "update":
            given = decoded(self.parts.schema, call, warnings)
            check_names(call, given)

            apply_defaults(call.resource, given)

            def change(old: Obj) -> Obj:
                return {**given, "metadata": dict(given["metadata"])}
        else:
            check_options(call)

            def change(old: Obj) -> Obj:
                new = self._patched(user, call, old, warnings)
                check_names(call, new)
                apply_defaults(call.resource, new)
                return new

        strategy = self.parts.strategies.of(call.resource)
        status = call.subresource in STATUS_LIKE

        def prepare(new: Obj, old: Obj) -> None:
            if status:
                keep_all_but_status(new, old)
                strategy.prepare_status(new, old)
                return
            if call.resource.subresource("status") is not None:
                keep_status(new, old)
            strategy.prepare_update(new, old)

        validate = validate_status_update if status else validate_update
        answer = await self.modify(user, call, change, prepare, validate)
        answer.warnings = [*dict.fromkeys(warnings), *answer.warnings]
        return answer

    def _patched(self, user: User, call: Call, old: Obj, warnings: Warnings) -> Obj:
        if call.options.patch_type == "apply":
            return self.ownership.applied(user, call, old, warnings, self.parts.clock.now())
        return patched(self.parts.schema, call, old, warnings)

    async def apply(self, user: User, call: Call) -> Answer:
        """Over what is there, or from nothing."""
        check_options(call)
        for _ in range(ATTEMPTS):
            try:
                return await self.update(user, call)
            except NotFound:
                warnings: list[str] = []
                new = self.ownership.applied(user, call, {}, warnings, self.parts.clock.now())
                check_names(call, new)
            try:
                create = replace(call, verb="create", name="", body=new, problems=())
                await self.authorize(user, create)
                answer = await self.create(user, create)
            except AlreadyExists:
                continue
            answer.warnings = [*warnings, *answer.warnings]
            return answer
        raise conflict(call.resource.plural, call.resource.group, call.name, MODIFIED)

    async def modify(
        self, user: User, call: Call, change: Change, prepare: Prepare, validate: Validate
    ) -> Answer:
        """Read, change, check, compare-and-swap; again when somebody else was faster."""
        parts, resource, dry_run = self.parts, call.resource, call.options.dry_run
        strategy = parts.strategies.of(resource)
        for _ in range(ATTEMPTS):
            item = await parts.registry.current(resource, call.namespace, call.name)
            old = shown(resource, item)
            new = change(old)
            self._check_based_on(call, new, old)
            self.ownership.updated(user, call, new, old, parts.clock.now())
            attributes = attributes_of(user, UPDATE, call, new, old)
            await parts.admission.mutate(attributes)
            prepare_updated(new, old)
            prepare(new, old)
            if strategy.has_generation and not call.subresource:
                bump_generation(new, old)
            settle(new, old)
            refuse(resource, new, validate(resource, new, old))
            try:
                async with self._allocated(call, new, old), self._admitted(attributes):
                    stored = as_stored(resource, new)
                    if strategy.vanishes(stored):
                        await self._remove(call, item)
                        return Answer(new, warnings=attributes.warnings)
                    item = await parts.registry.replace(resource, item, stored, strategy, dry_run)
            except Stale:
                continue
            answer = answer_of(resource, item)
            answer.warnings = attributes.warnings
            return answer
        raise conflict(resource.plural, resource.group, call.name, MODIFIED)

    async def delete(self, user: User, call: Call) -> Answer:
        parts, resource, dry_run = self.parts, call.resource, call.options.dry_run
        strategy = parts.strategies.of(resource)
        for _ in range(ATTEMPTS):
            item = await parts.registry.current(resource, call.namespace, call.name)
            deletion.check_preconditions(resource, item.obj, call.options)
            attributes = attributes_of(user, DELETE, call, None, shown(resource, item))
            await parts.admission.mutate(attributes)
            await parts.admission.validate(attributes)
            try:
                match self._deletion_plan(call, item):
                    case deletion.Remove():
                        await self._remove(call, item)
                        if not strategy.returns_deleted:
                            return Answer(deleted_status(resource, item.obj))
                    case deletion.Mark(obj):
                        item = await parts.registry.replace(resource, item, obj, strategy, dry_run)
                    case deletion.Pending():
                        pass
            except Stale:
                continue
            return answer_of(resource, item)
        raise conflict(resource.plural, resource.group, call.name, MODIFIED)

    async def delete_collection(self, user: User, call: Call) -> ListAnswer:
        found = await self.list(call)
        for start in range(0, len(found.items), AT_ONCE):
            await all_of(
                self._delete_one(user, call, item) for item in found.items[start : start + AT_ONCE]
            )
        return found

    async def _delete_one(self, user: User, call: Call, item: Item) -> None:
        namespace, _, name = item.key.rpartition("/")
        one = Call("delete", call.resource, namespace, name, options=call.options)
        try:
            await self.delete(user, one)
        except NotFound:
            return  # somebody else was faster

    async def _remove(self, call: Call, item: Item) -> None:
        """Raises Stale."""
        dry_run = call.options.dry_run
        await self.parts.registry.remove(call.resource, item, dry_run)
        if call.resource is SERVICES and not dry_run:
            await self.parts.allocator.removed(item.obj)

    def _deletion_plan(self, call: Call, item: Item) -> deletion.Plan:
        now = self.parts.clock.now()
        if call.resource is NAMESPACES:
            marked = namespaces.terminating(item.obj, now)
            if marked is not None:
                return deletion.Mark(marked)
            return deletion.Remove() if namespaces.vanishes(item.obj) else deletion.Pending()
        return deletion.plan(self.parts.strategies.of(call.resource), item.obj, call.options, now)

    async def _insert(self, call: Call, obj: Obj) -> Item:
        """With a generated name that turns out to be taken, another one is tried."""
        parts, resource = self.parts, call.resource
        strategy = parts.strategies.of(resource)
        meta = obj["metadata"]
        for attempt in range(names.ATTEMPTS):
            try:
                stored = as_stored(resource, obj)
                return await parts.registry.insert(resource, stored, strategy, call.options.dry_run)
            except AlreadyExists:
                given = not meta.get("generateName") or call.body.get("metadata", {}).get("name")
                if given or attempt == names.ATTEMPTS - 1:
                    raise
            meta["name"] = names.generated(meta["generateName"], parts.rng)
            strategy.prepare_create(obj)
        raise AssertionError("unreachable")

    def _name_new(self, call: Call, obj: Obj) -> None:
        meta = obj.setdefault("metadata", {})
        if meta.get("resourceVersion"):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        check_namespace(call, meta)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = names.generated(meta["generateName"], self.parts.rng)

    def _check_based_on(self, call: Call, new: Obj, old: Obj) -> None:
        """The caller's resourceVersion and uid, where it gave them, must be the object's."""
        resource, meta = call.resource, new["metadata"]
        given = str(meta.get("resourceVersion") or "")
        if given in ("", "0"):
            if not self.parts.strategies.of(resource).unconditional_update:
                why = invalid_value(
                    "metadata.resourceVersion", 0, "must be specified for an update"
                )
                raise invalid(resource.kind, resource.group, call.name, [why])
        elif given != old["metadata"]["resourceVersion"]:
            raise conflict(resource.plural, resource.group, call.name, MODIFIED)
        if meta.get("uid") and meta["uid"] != uid_of(old):
            why_not = (
                f"Precondition failed: UID in precondition: {meta['uid']}, "
                f"UID in object meta: {uid_of(old)}"
            )
            raise conflict(resource.plural, resource.group, call.name, why_not)

    @asynccontextmanager
    async def _admitted(self, attributes: Admitted) -> AsyncIterator[None]:
        """Validated; what plugins took for the write (quota) is let go when it is over."""
        stored = False
        try:
            await self.parts.admission.validate(attributes)
            yield
            stored = True
        finally:
            if attributes.audit and is_noting():
                self.parts.admission.note(attributes)
            if attributes.releases:
                await self.parts.admission.settle(attributes, stored)

    def _allocated(
        self, call: Call, obj: Obj, old: Obj | None
    ) -> AbstractAsyncContextManager[None]:
        """A service's addresses and ports; they are its own when the block ends."""
        if call.resource is not SERVICES:
            return nullcontext()
        return self.parts.allocator.allocated(obj, old, dry_run=call.options.dry_run)

    async def _furnish(self, namespace: str) -> None:
        """What every namespace has; the caller's create returns when it is there."""
        bundle = self.parts.settings.ca_bundle_pem
        await all_of(
            self.ensure(resource, obj) for resource, obj in namespaces.contents(namespace, bundle)
        )

    async def ensure(self, resource: Resource, obj: Obj) -> None:
        """Create what the server itself needs, if it is not there."""
        parts = self.parts
        strategy = parts.strategies.of(resource)
        apply_defaults(resource, obj)
        prepare_created(obj, new_uid(parts.rng), parts.clock.now(), strategy.has_generation)
        strategy.prepare_create(obj)
        try:
            await parts.registry.insert(resource, obj, strategy, dry_run=False)
        except AlreadyExists:
            return

    async def overwrite(self, resource: Resource, obj: Obj) -> None:
        """Bring what the server itself owns up to date; whoever was faster has done it."""
        parts = self.parts
        item = await parts.registry.current(resource, namespace_of(obj), name_of(obj))
        try:
            await parts.registry.replace(
                resource, item, obj, parts.strategies.of(resource), dry_run=False
            )
        except Stale:
            return
