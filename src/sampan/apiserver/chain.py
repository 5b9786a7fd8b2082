"""The whole way of a call, on one screen.

    request info ▸ authn ▸ (audit ▸ flow) ▸ authz
    ▸ decode ▸ default ▸ mutate ▸ validate ▸ admit ▸ store

Job: authorize one call of one user and send it to its verb: write/ has one file for each verb that
    writes, registry/ reads, subresources/ has what is not generic.
Invariant: over HTTPS and in this process a call takes the same steps; there is no other way in.
Invariant: a write is refused whole or stored whole; nothing is stored before every step agreed.
"""

from sampan.api.calls import Answer, Call, ListAnswer
from sampan.api.errors import MethodNotAllowed
from sampan.api.objects import Obj
from sampan.apiserver.admission.chain import CONNECT, attributes_of
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.calls import authorize
from sampan.apiserver.registry.generic import answer_of
from sampan.apiserver.registry.reads import list_of, wait_for
from sampan.apiserver.registry.watches import open_watch
from sampan.apiserver.watch.watch_stream import WatchStream
from sampan.apiserver.write.apply import apply
from sampan.apiserver.write.create import create
from sampan.apiserver.write.delete import delete, delete_collection
from sampan.apiserver.write.parts import Handler, Parts
from sampan.apiserver.write.update import update

# Answered by the node, through the HTTP edge.
CONNECTED = frozenset({"attach", "exec", "log", "portforward", "proxy"})


class Chain:
    def __init__(self, parts: Parts, handlers: dict[tuple[str, str, str], Handler]) -> None:
        self.parts = parts
        self._handlers = handlers  # (group resource, subresource, verb) → what is not generic

    async def perform(self, user: User, call: Call) -> Answer | ListAnswer:
        await authorize(self.parts.authorization, user, call)
        return await self.perform_authorized(user, call)

    async def perform_authorized(self, user: User, call: Call) -> Answer | ListAnswer:
        """For the HTTP edge, which asks before it reads the body."""
        parts = self.parts
        handler = self._handlers.get((call.resource.group_resource, call.subresource, call.verb))
        if handler is not None:
            return await handler(parts, user, call)
        match call.verb:
            case "get" if call.subresource not in CONNECTED:
                await wait_for(parts.registry, call.options.resource_version)
                item = parts.registry.cached(call.resource, call.namespace, call.name)
                return answer_of(call.resource, item)
            case "list":
                return await list_of(parts.registry, call, parts.strategies.selection(call))
            case "create" if not call.subresource:
                return await create(parts, user, call)
            case "patch" if call.options.patch_type == "apply" and not call.subresource:
                return await apply(parts, user, call)
            case "update" | "patch" if call.subresource in ("", "status"):
                return await update(parts, user, call)
            case "delete" if not call.subresource:
                return await delete(parts, user, call)
            case "deletecollection":
                return await delete_collection(parts, user, call)
        raise MethodNotAllowed("the server does not allow this method on the requested resource")

    async def watch(self, user: User, call: Call) -> WatchStream:
        parts = self.parts
        await authorize(parts.authorization, user, call)
        selection = parts.strategies.selection(call)
        return await open_watch(parts.registry, call, selection, parts.settings, parts.rng)

    async def connect(self, user: User, call: Call, options: Obj) -> Obj:
        """What is asked of a pod, node or service, as admission leaves it. Raises ApiError."""
        attributes = attributes_of(user, CONNECT, call, options, None)
        await self.parts.admission.mutate(attributes)
        async with attributes.hold:
            await self.parts.admission.validate(attributes)
            return options
