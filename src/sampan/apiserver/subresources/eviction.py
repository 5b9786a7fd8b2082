"""pods/NAME/eviction.

Job: delete a pod where its disruption budget allows it, and say on the pod why it goes.
Invariant: a budget is charged only for a pod whose preconditions hold.
"""

from dataclasses import replace

from sampan.api.calls import Answer, Call, Options
from sampan.api.errors import ApiError, BadRequest, Conflict, Failure
from sampan.api.objects import Obj, labels_of, meta_of, name_of, namespace_of
from sampan.api.resources import POD_DISRUPTION_BUDGETS, PODS
from sampan.api.rules import disruption, selectors
from sampan.api.rules.conditions import with_condition
from sampan.apiserver.admission.chain import NO_ADMISSION
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry.deletion import check_preconditions
from sampan.apiserver.write.delete import delete
from sampan.apiserver.write.posted import Posted
from sampan.apiserver.write.races import ATTEMPTS, lost_race
from sampan.apiserver.write.request_scope import RequestScope
from sampan.apiserver.write.update import Modification, modify

CONDITION: Obj = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_POD = replace(PODS, plural="Pod")  # as upstream's refusals name it


class SeveralBudgets(ApiError):
    """As upstream, it has no reason."""

    code, reason = 500, ""


async def evict(scope: RequestScope, user: User, posted: Posted) -> Answer:
    call, eviction = posted.call, posted.obj
    if name_of(eviction) != call.name:
        raise BadRequest("name in URL does not match name in Eviction object")
    options = _delete_options(eviction.get("deleteOptions") or {}, call.options)
    await posted.admit()
    # Admission has had its say: the writes from here on are the server's own.
    caller = _Caller(replace(scope, admission=NO_ADMISSION), user)
    pod = await caller.evict_unguarded(call, options)
    if pod is not None:
        await caller.evict_guarded(call, pod, options)
    return posted.succeeded()


class _Caller:
    def __init__(self, scope: RequestScope, user: User) -> None:
        self._scope, self._user = scope, user

    async def evict_unguarded(self, call: Call, options: Options) -> Obj | None:
        """None: it is done. A pod that does not run yet may do so meanwhile: it is looked at
        again then, unless the caller means this very version."""
        lost: ApiError = lost_race(call)
        for _ in range(ATTEMPTS):
            pod = (await self._scope.registry.current(PODS, call.namespace, call.name)).obj
            if disruption.is_guarded(pod):
                return pod
            meant = options
            if not options.precondition_resource_version and disruption.may_become_ready(pod):
                meant = _of_version(options, pod)
            try:
                await self._delete(call, meant)
            except Conflict as error:
                if meant is options:
                    raise
                lost = error
                continue
            return None
        raise lost

    async def evict_guarded(self, call: Call, pod: Obj, options: Options) -> None:
        budgets = _budgets_of(self._scope, pod)
        if len(budgets) > 1:
            raise SeveralBudgets(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support."
            )
        check_preconditions(_POD, pod, options)
        if not budgets:
            await self._delete(call, options)
        elif disruption.is_charged(pod, budgets[0]):
            await self._charge(budgets[0], call.name, options.dry_run)
            await self._delete(call, options)
        else:
            try:
                await self._delete(call, _of_version(options, pod))
            except Conflict as error:
                if options.precondition_resource_version:
                    raise
                # It may have become ready: let it be asked for again.
                raise disruption.still_processed(name_of(budgets[0])) from error

    async def _charge(self, budget: Obj, pod_name: str, dry_run: bool) -> None:
        def change(current: Obj) -> Obj:
            status = disruption.charged_status(current, pod_name, self._scope.clock.now())
            return {**current, "metadata": dict(current["metadata"]), "status": status}

        namespace, name = namespace_of(budget), name_of(budget)
        options = Options(dry_run=dry_run)
        call = Call("update", POD_DISRUPTION_BUDGETS, namespace, name, "status", None, options)
        await modify(self._scope, self._user, call, Modification(change))

    async def _delete(self, call: Call, options: Options) -> None:
        if not options.dry_run:
            marked = await self._mark(call, options)
            if options.precondition_resource_version:
                options = _of_version(options, marked)  # it was ourselves who changed it
        inner = Call("delete", PODS, call.namespace, call.name, options=options)
        await delete(self._scope, self._user, inner)

    async def _mark(self, call: Call, options: Options) -> Obj:
        """The pod, with the condition that says why it goes. Raises Conflict."""

        def change(pod: Obj) -> Obj:
            check_preconditions(_POD, pod, options)
            status = pod.get("status") or {}
            now = self._scope.clock.now()
            conditions = with_condition(status.get("conditions") or (), CONDITION, now)
            marked = {**status, "conditions": conditions}
            return {**pod, "metadata": dict(pod["metadata"]), "status": marked}

        inner = Call("update", PODS, call.namespace, call.name, "eviction")
        return (await modify(self._scope, self._user, inner, Modification(change))).obj


def _delete_options(given: Obj, options: Options) -> Options:
    """Raises Failure where the body and the query do not ask for the same dry run."""
    preconditions, dry_run = given.get("preconditions") or {}, given.get("dryRun") or []
    if options.dry_run and dry_run and dry_run != ["All"]:
        raise Failure(
            "Non-matching dry-run options in request and content: [All] and "
            f"[{' '.join(map(str, dry_run))}]"
        )
    return Options(
        dry_run=options.dry_run or "All" in dry_run,
        grace_seconds=given.get("gracePeriodSeconds"),
        precondition_uid=preconditions.get("uid") or "",
        precondition_resource_version=preconditions.get("resourceVersion") or "",
        propagation=given.get("propagationPolicy") or "",
    )


def _of_version(options: Options, pod: Obj) -> Options:
    return replace(options, precondition_resource_version=meta_of(pod)["resourceVersion"])


def _budgets_of(scope: RequestScope, pod: Obj) -> list[Obj]:
    found = []
    for budget in scope.registry.find_all(POD_DISRUPTION_BUDGETS):
        selector = (budget.get("spec") or {}).get("selector")
        if namespace_of(budget) != namespace_of(pod) or selector is None:
            continue
        if selectors.from_object(selector).matches(labels_of(pod)):
            found.append(budget)
    return found
