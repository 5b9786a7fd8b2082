"""The handler chain: the whole way of a call, on one screen.

    request info ▸ authn ▸ (audit ▸ flow) ▸ authz
    ▸ decode ▸ default ▸ mutate ▸ validate ▸ admit ▸ store

Job: authorize one call of one user and send it to its verb: write/ has one file for each verb that
    writes, registry/ reads, subresources/ has what is not generic.
Invariant: over HTTPS and in this process a call takes the same steps; whoever is not this server
    itself has no other way in.
Invariant: a write is refused whole or stored whole; nothing is stored before every step agreed.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

from sampan.api.calls import Answer, Call, ListAnswer
from sampan.api.custom.custom_version import custom_of
from sampan.api.errors import UNKNOWN_PATH, ApiError, MethodNotAllowed, UnknownPath
from sampan.api.objects import Obj
from sampan.api.resources import MEASURED, Resource
from sampan.apiserver.admission.chain import CONNECT, attributes_of
from sampan.apiserver.aggregation.aggregation import Aggregation
from sampan.apiserver.authn.chain import ALWAYS_ALLOWED_PATHS
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.calls import authorize
from sampan.apiserver.authz.chain import Attributes
from sampan.apiserver.http.metrics import deprecation_of
from sampan.apiserver.registry.generic import Stale, answer_of
from sampan.apiserver.registry.reads import list_of, shown_list, wait_for
from sampan.apiserver.registry.selection import Selection
from sampan.apiserver.registry.traced_objects import READS, TracedObjects
from sampan.apiserver.registry.watches import open_watch
from sampan.apiserver.watch.watch_stream import Showing, WatchStream
from sampan.apiserver.write.apply import apply
from sampan.apiserver.write.create import create
from sampan.apiserver.write.delete import delete, delete_collection
from sampan.apiserver.write.node_batch import NodeBatch, store
from sampan.apiserver.write.put import put
from sampan.apiserver.write.request_scope import CUSTOM, Handler, RequestScope
from sampan.apiserver.write.update import update
from sampan.core.fast_dataclass import replace
from sampan.core.tasks import all_of
from sampan.core.telemetry.spans import NO_MARKS

# Answered by the node, through the HTTP edge.
CONNECTED = frozenset({"attach", "exec", "log", "portforward", "proxy"})
_SESSIONS = frozenset({"attach", "exec", "portforward"})
ReadBody = Callable[[Call], Awaitable[Call]]


class Chain:
    def __init__(
        self,
        scope: RequestScope,
        handler_of: Callable[[str, str, str], Handler | None],
        aggregation: Aggregation,
    ) -> None:
        self.scope, self.aggregation = scope, aggregation
        self._audited = scope.settings.audit_policy is not None
        self.traced = TracedObjects(scope.registry, scope.traces)
        self._handler_of = handler_of  # group resource, subresource, verb: of what is not generic

    def served(self, call: Call) -> Call:
        """With the server's own row for a custom kind, of which a caller in this process knows but
        the names. Raises NotFound."""
        resource = call.resource
        found = self.scope.registry.kinds.served(resource)
        if found is resource or self.aggregation.server_of(resource) is not None:
            return call
        if found is None:
            raise UnknownPath(UNKNOWN_PATH)
        return replace(call, resource=found)

    def resources(self, group: str, version: str) -> Sequence[Resource]:
        """What is served of a group version, here or elsewhere. Raises ApiError."""
        elsewhere = self.aggregation.resources(group, version)
        if elsewhere is not None:
            return elsewhere
        rows = (*self.scope.registry.kinds.all(), *MEASURED)
        found = [row for row in rows if (row.group, row.version) == (group, version)]
        if not found:
            raise UnknownPath(UNKNOWN_PATH)
        return found

    async def authorize(self, user: User, call: Call) -> None:
        """The one place that asks the authorizers about a call. Raises Forbidden."""
        await authorize(self.scope.authorization, user, call)

    async def authorize_path(self, user: User, verb: str, path: str) -> None:
        """The same for a non-resource path. Raises Forbidden."""
        if path not in ALWAYS_ALLOWED_PATHS:
            await self.scope.authorization.require(Attributes(user, verb, path=path))

    async def authorize_impersonation(self, asked: Attributes) -> None:
        """And for each part of what impersonating a user takes. Raises Forbidden."""
        await self.scope.authorization.require(asked)

    async def perform(
        self, user: User, call: Call, read: ReadBody | None = None
    ) -> Answer | ListAnswer:
        """`read` brings the body of an authorized call. Raises ApiError."""
        if call.marks is NO_MARKS and call.verb not in READS:
            marks = self.scope.traces.marks()  # of a part of this process
            call = call if marks is NO_MARKS else replace(call, marks=marks)
        await self.authorize(user, call)
        call.marks.at("authorization")
        old = deprecation(call.resource)
        try:
            call = call if read is None else await read(call)
            answer = await self._perform(user, call)
        except ApiError as error:
            error.warnings = [*error.warnings, old] if old else error.warnings
            raise
        if old:
            answer.warnings = [*answer.warnings, old]
        self.traced.answered(user, call, answer, call.marks)
        return answer

    async def _perform(self, user: User, call: Call) -> Answer | ListAnswer:
        scope = self.scope
        resource = call.resource
        server = self.aggregation.server_of(resource)
        if server is not None:
            return await self.aggregation.perform(server, user, call)
        named = CUSTOM if resource.custom is not None else resource.group_resource
        handler = self._handler_of(named, call.subresource, call.verb)
        if handler is not None:
            return await handler(scope, user, call)
        match call.verb:
            case "get" if call.subresource not in CONNECTED:
                await wait_for(scope.registry, call.options.resource_version)
                item = scope.registry.cached(call.resource, call.namespace, call.name)
                await scope.conversions.prepare(call.resource, (item,))
                return answer_of(call.resource, item)
            case "list":
                selection = await self._selection(call)
                found = await list_of(scope.registry, call, selection)
                await scope.conversions.prepare(call.resource, found.items)
                return shown_list(found, selection)
            case "create" if not call.subresource:
                return await create(scope, user, call)
            case "patch" if call.options.patch_type == "apply" and not call.subresource:
                return await apply(scope, user, call)
            case "update" if call.subresource in ("", "status"):
                return await put(scope, user, call)
            case "patch" if call.subresource in ("", "status"):
                return await update(scope, user, call)
            case "delete" if not call.subresource:
                return await delete(scope, user, call)
            case "deletecollection":
                return await delete_collection(scope, user, call)
        raise MethodNotAllowed("the server does not allow this method on the requested resource")

    async def _selection(self, call: Call) -> Selection:
        """A selector takes ten times as long to read as a body of its length."""
        weight = 10 * len(call.options.label_selector + call.options.field_selector)
        return await self.scope.beside(weight, partial(self.scope.strategies.selection, call))

    async def watch(self, user: User, call: Call) -> WatchStream:
        """Of what is stored here: another server's kinds are watched over HTTPS."""
        scope = self.scope
        if self.aggregation.server_of(call.resource) is not None:
            raise MethodNotAllowed("a kind of another server is not watched from inside")
        await self.authorize(user, call)
        old = deprecation(call.resource)
        try:
            selection = await self._selection(call)
            showing = self._showing(call.resource, selection)
            stream = await open_watch(
                scope.registry, call, selection, scope.settings, scope.rng, showing
            )
        except ApiError as error:
            error.warnings = [*error.warnings, old] if old else error.warnings
            raise
        stream.warnings = (old,) if old else ()
        return stream

    def _showing(self, resource: Resource, selection: Selection) -> Showing:
        scope = self.scope
        shown = None if resource.custom is None else scope.conversions.events(resource, selection)
        if scope.schema.name_of(resource.api_version, resource.kind) is None:
            return Showing(shown)
        return Showing(shown, partial(scope.schema.zero, resource.api_version, resource.kind))

    async def connect(self, user: User, call: Call, read: Callable[[], Obj]) -> Obj:
        """What is asked of a pod, node or service, as admission leaves it; `read` brings the
        options of an authorized call. Raises ApiError."""
        await self.authorize(user, call)
        if call.subresource in _SESSIONS and call.verb != "create":
            # A WebSocket begins with a GET, and is no reading all the same (as v1.35).
            await self.authorize(user, replace(call, verb="create"))
        if call.subresource == "log":
            return {}  # a get: nothing is connected to
        options = read()
        attributes = attributes_of(user, CONNECT, call, options, None)
        await self.scope.admission.mutate(attributes)
        async with attributes.hold:
            await self.scope.admission.validate(attributes)
            return options

    async def node_batch(self, batch: NodeBatch) -> Collection[str]:
        """Writes of nodes of this process, each as its node's own request; the nodes that have to
        make that request."""
        if self._audited or not batch.is_open(self.scope):
            return batch.names
        left: list[str] = []
        await all_of(self._node_writes(batch, name, left) for name in batch.names)
        return left

    async def _node_writes(self, batch: NodeBatch, name: str, left: list[str]) -> None:
        try:
            writes = batch.writes(self.scope, name)
            for write in writes:
                await authorize(self.scope.authorization, write.user, write.call)
                await store(self.scope, write)
        except (ApiError, Stale):
            writes = ()
        if not writes:
            left.append(name)


def deprecation(resource: Resource) -> str:
    """What everybody who uses the kind in this version is warned with."""
    custom = custom_of(resource)
    if custom is not None:
        return custom.warning
    return deprecation_of(resource)
