"""DELETE: delete and deletecollection.

Job: preconditions, admission, and what the deletion plan says: remove, mark, or nothing.
"""

from functools import partial

from sampan.api.calls import Answer, Call, Item, ListAnswer
from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj
from sampan.apiserver.admission.chain import DELETE, attributes_of
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry import deletion
from sampan.apiserver.registry.generic import Stale, Terms, answer_of
from sampan.apiserver.registry.list_options import check_list_options
from sampan.apiserver.registry.reads import list_of, shown_list
from sampan.apiserver.registry.strategy import Removed
from sampan.apiserver.write.object_rules import deleted_status, in_version_of
from sampan.apiserver.write.races import ATTEMPTS, lost_race
from sampan.apiserver.write.request_scope import LARGE_BYTES, RequestScope
from sampan.core.fast_dataclass import replace
from sampan.core.holding import Hold, Outcome, run_to_end
from sampan.core.tasks import all_of, give_way

PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background"
    " to remove them or set propagationPolicy=Orphan to suppress this warning"
)
AT_ONCE = 32  # deletions of one deletecollection under way: the loop runs them in one go


async def delete(scope: RequestScope, user: User, call: Call) -> Answer:
    try:
        answer = await _delete(scope, user, call)
    except ApiError as error:
        error.warnings = [*error.warnings, *_warnings(call)]
        raise
    answer.warnings = [*answer.warnings, *_warnings(call)]
    return answer


def _warnings(call: Call) -> list[str]:
    """Also of a deletion that fails."""
    stay = call.resource.group_resource == "jobs.batch" and not call.options.propagation
    return [PODS_STAY] if stay else []


async def _delete(scope: RequestScope, user: User, call: Call) -> Answer:
    resource = call.resource
    strategy = scope.strategies.of(resource)
    terms = Terms(strategy.ttl_seconds, call.options.dry_run)
    marked: Item | None = None  # as we wrote it: others may take it away from then on
    for _ in range(ATTEMPTS):
        try:
            item = await scope.registry.current(resource, call.namespace, call.name)
        except NotFound:
            if marked is None:
                raise
            return answer_of(resource, marked)
        if item.size > LARGE_BYTES:
            await give_way()  # of large ones that are deleted together, each has its turn
        deletion.check_preconditions(resource, item.obj, call.options)
        await scope.conversions.prepare(resource, (item,))
        attributes = attributes_of(user, DELETE, call, None, in_version_of(resource, item))
        await scope.admission.mutate(attributes)
        await scope.admission.validate(attributes)
        call.marks.at("admission")
        try:
            match deletion.plan(strategy, item.obj, call.options, scope.clock.now()):
                case deletion.Remove(last):
                    steps = _Removal(scope, call, item, terms)
                    try:
                        await run_to_end(steps.perform(last))
                    finally:
                        item, marked = steps.item, steps.marked or marked
                    if not strategy.returns_deleted:
                        return Answer(deleted_status(resource, item.obj))
                case deletion.Mark(obj):
                    item = await scope.registry.replace(resource, item, obj, terms)
                case deletion.Pending():
                    pass
        except Stale:
            call.marks.at("lost race")
            continue
        call.marks.at("store commit")
        await scope.conversions.prepare(resource, (item,))
        return answer_of(resource, item)
    raise lost_race(call)


class _Removal:
    """The last write of an object and its removal: begun, both are done, or an object would stay
    that is marked as gone and that nobody removes."""

    def __init__(self, scope: RequestScope, call: Call, item: Item, terms: Terms) -> None:
        self._scope, self._call, self._terms = scope, call, terms
        self.item = item
        self.marked: Item | None = None

    async def perform(self, last: Obj | None) -> None:
        """Raises Stale."""
        if last is not None:
            registry, resource = self._scope.registry, self._call.resource
            self.item = await registry.replace(resource, self.item, last, self._terms)
            self.marked = self.item
        await remove(self._scope, self._call, self.item)


async def delete_collection(scope: RequestScope, user: User, call: Call) -> ListAnswer:
    try:
        found = await _delete_collection(scope, user, call)
    except ApiError as error:
        error.warnings = [*error.warnings, *_warnings(call)]
        raise
    found.warnings = [*found.warnings, *_warnings(call)]
    return found


async def _delete_collection(scope: RequestScope, user: User, call: Call) -> ListAnswer:
    """As upstream, which reads them page by page: at a revision that is named it is a list of
    exactly that one."""
    check_list_options(call.options, watch=False)
    listed = call
    if call.options.resource_version not in ("", "0") and not call.options.resource_version_match:
        listed = replace(call, options=replace(call.options, resource_version_match="Exact"))
    selection = scope.strategies.selection(call)
    found = await list_of(scope.registry, listed, selection)
    await scope.conversions.prepare(call.resource, found.items)
    found = shown_list(found, selection)
    for start in range(0, len(found.items), AT_ONCE):
        await all_of(
            _delete_item(scope, user, call, item) for item in found.items[start : start + AT_ONCE]
        )
    return found


async def _delete_item(scope: RequestScope, user: User, call: Call, item: Item) -> None:
    namespace, _, name = item.key.rpartition("/")
    try:
        await delete(
            scope, user, Call("delete", call.resource, namespace, name, options=call.options)
        )
    except NotFound:
        return  # somebody else was faster


async def remove(scope: RequestScope, call: Call, item: Item) -> None:
    """Raises Stale."""
    removed = scope.strategies.of(call.resource).removed
    async with Hold() as hold:
        if removed is not None and not call.options.dry_run:
            hold.add(partial(_give_back, removed, item.obj))
        terms = Terms(dry_run=call.options.dry_run, hold=hold)
        await scope.registry.remove(call.resource, item, terms)


async def _give_back(removed: Removed, obj: Obj, outcome: Outcome) -> None:
    if outcome is Outcome.COMMITTED:
        await removed(obj)
