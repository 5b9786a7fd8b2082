"""The whole way of a call, on one screen.

    request info ▸ authn ▸ (audit ▸ flow) ▸ authz
    ▸ decode ▸ default ▸ mutate ▸ validate ▸ admit ▸ store

Job: authorize one call of one user and send it to its verb: write/ has one file for each verb that
    writes, registry/ reads, subresources/ has what is not generic.
Invariant: over HTTPS and in this process a call takes the same steps; there is no other way in.
Invariant: a write is refused whole or stored whole; nothing is stored before every step agreed.
"""

from collections.abc import Sequence
from functools import partial

from sampan.api.calls import Answer, Call, ListAnswer
from sampan.api.errors import MethodNotAllowed, UnknownPath
from sampan.api.objects import Obj
from sampan.api.resources import MEASURED, Resource
from sampan.apiserver.admission.chain import CONNECT, attributes_of
from sampan.apiserver.aggregation.aggregation import Aggregation
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.calls import authorize
from sampan.apiserver.registry.generic import answer_of
from sampan.apiserver.registry.reads import list_of, shown_list, wait_for
from sampan.apiserver.registry.selection import Selection
from sampan.apiserver.registry.traced_objects import READS, TracedObjects
from sampan.apiserver.registry.watches import open_watch
from sampan.apiserver.watch.watch_stream import WatchStream
from sampan.apiserver.write.apply import apply
from sampan.apiserver.write.create import create
from sampan.apiserver.write.delete import delete, delete_collection
from sampan.apiserver.write.parts import CUSTOM, Handler, Parts
from sampan.apiserver.write.put import put
from sampan.apiserver.write.update import update
from sampan.core.fast_dataclass import replace
from sampan.core.telemetry.spans import NO_MARKS

# Answered by the node, through the HTTP edge.
CONNECTED = frozenset({"attach", "exec", "log", "portforward", "proxy"})


class Chain:
    def __init__(
        self,
        parts: Parts,
        handlers: dict[tuple[str, str, str], Handler],
        aggregation: Aggregation,
    ) -> None:
        self.parts, self.aggregation = parts, aggregation
        self.traced = TracedObjects(parts.registry, parts.traces)
        self._handlers = handlers  # (group resource, subresource, verb) → what is not generic

    def served(self, call: Call) -> Call:
        """With the server's own row for a custom kind, of which a caller in this process knows but
        the names. Raises NotFound."""
        resource = call.resource
        found = self.parts.registry.kinds.served(resource)
        if found is resource or self.aggregation.server_of(resource) is not None:
            return call
        if found is None:
            raise UnknownPath("the server could not find the requested resource")
        return replace(call, resource=found)

    def resources(self, group: str, version: str) -> Sequence[Resource]:
        """What is served of a group version, here or elsewhere. Raises ApiError."""
        elsewhere = self.aggregation.resources(group, version)
        if elsewhere is not None:
            return elsewhere
        rows = (*self.parts.registry.kinds.all(), *MEASURED)
        found = [row for row in rows if (row.group, row.version) == (group, version)]
        if not found:
            raise UnknownPath("the server could not find the requested resource")
        return found

    async def perform(self, user: User, call: Call) -> Answer | ListAnswer:
        """For parts of this process, whose requests are traced as those of others."""
        marks = self.parts.traces.marks() if call.verb not in READS else NO_MARKS
        if marks is not NO_MARKS:
            call = replace(call, marks=marks)
        await authorize(self.parts.authorization, user, call)
        marks.at("authorization")
        answer = await self.perform_authorized(user, call)
        self.traced.answered(user, call, answer, marks)
        return answer

    async def perform_authorized(self, user: User, call: Call) -> Answer | ListAnswer:
        """For the HTTP edge, which asks before it reads the body."""
        parts = self.parts
        resource = call.resource
        server = self.aggregation.server_of(resource)
        if server is not None:
            return await self.aggregation.perform(server, user, call)
        named = CUSTOM if resource.custom is not None else resource.group_resource
        handler = self._handlers.get((named, call.subresource, call.verb))
        if handler is not None:
            return await handler(parts, user, call)
        match call.verb:
            case "get" if call.subresource not in CONNECTED:
                await wait_for(parts.registry, call.options.resource_version)
                item = parts.registry.cached(call.resource, call.namespace, call.name)
                await parts.conversions.prepare(call.resource, (item,))
                return answer_of(call.resource, item)
            case "list":
                found = await list_of(parts.registry, call, await self._selection(call))
                await parts.conversions.prepare(call.resource, found.items)
                return shown_list(found)
            case "create" if not call.subresource:
                return await create(parts, user, call)
            case "patch" if call.options.patch_type == "apply" and not call.subresource:
                return await apply(parts, user, call)
            case "update" if call.subresource in ("", "status"):
                return await put(parts, user, call)
            case "patch" if call.subresource in ("", "status"):
                return await update(parts, user, call)
            case "delete" if not call.subresource:
                return await delete(parts, user, call)
            case "deletecollection":
                return await delete_collection(parts, user, call)
        raise MethodNotAllowed("the server does not allow this method on the requested resource")

    async def _selection(self, call: Call) -> Selection:
        """A selector takes ten times as long to read as a body of its length."""
        weight = 10 * len(call.options.label_selector + call.options.field_selector)
        return await self.parts.beside(weight, partial(self.parts.strategies.selection, call))

    async def watch(self, user: User, call: Call) -> WatchStream:
        """Of what is stored here: another server's kinds are watched over HTTPS."""
        parts = self.parts
        if self.aggregation.server_of(call.resource) is not None:
            raise MethodNotAllowed("a kind of another server is not watched from inside")
        await authorize(parts.authorization, user, call)
        selection = await self._selection(call)
        shown = None if call.resource.custom is None else parts.conversions.events(call.resource)
        return await open_watch(parts.registry, call, selection, parts.settings, parts.rng, shown)

    async def connect(self, user: User, call: Call, options: Obj) -> Obj:
        """What is asked of a pod, node or service, as admission leaves it. Raises ApiError."""
        attributes = attributes_of(user, CONNECT, call, options, None)
        await self.parts.admission.mutate(attributes)
        async with attributes.hold:
            await self.parts.admission.validate(attributes)
            return options
