"""Subresources that are no plain update: binding, eviction, scale, finalize, token.

Job: each takes its call through the same chain, with a change of its own.
"""

from sampan.api.calls import Answer, Call, Options
from sampan.api.errors import (
    BadRequest,
    FieldError,
    InternalError,
    TooManyRequests,
    conflict,
    invalid,
    invalid_value,
    not_found,
    required,
)
from sampan.api.objects import (
    Obj,
    copy_of,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    time_text,
    uid_of,
)
from sampan.api.resources import NODES, POD_DISRUPTION_BUDGETS, PODS, SECRETS, Resource
from sampan.api.rules import selectors
from sampan.api.rules.account_token import TOKEN_SECONDS
from sampan.api.rules.scale import scale_of
from sampan.apiserver.admission.chain import CREATE, attributes_of
from sampan.apiserver.authn.tokens import Claims, TokenSigner
from sampan.apiserver.authn.user import User
from sampan.apiserver.chain import Chain
from sampan.apiserver.registry import namespaces, pods
from sampan.apiserver.registry.metadata import new_uid
from sampan.apiserver.write.decoding import decoded
from sampan.apiserver.write.object_rules import check_names
from sampan.apiserver.write.ownership import check_options
from sampan.apiserver.write.patching import patched

SUCCESS: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
MIN_TOKEN_SECONDS = 600
EXTENDED_SECONDS = 365 * 24 * 3600  # of a pod's own token, which its node replaces every hour
NO_BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."


def _keep(_new: Obj, _old: Obj) -> None:
    """The change is the server's own: nothing to prepare."""


def _accept(_resource: Resource, _new: Obj, _old: Obj) -> list[FieldError]:
    return []


async def bind(chain: Chain, user: User, call: Call) -> Answer:
    """pods/NAME/binding, and the older bindings resource. [A9]"""
    binding = decoded(chain.parts.schema, call, [])
    name = call.name or name_of(binding)
    target = binding.get("target") or {}
    if not target.get("name"):
        raise invalid("Binding", "", name, [required("target.name")])
    if target.get("kind") not in (None, "", "Node"):
        wrong = invalid_value("target.kind", target["kind"], 'must be "Node" or empty')
        raise invalid("Binding", "", name, [wrong])
    wanted_uid = uid_of(binding)

    def change(pod: Obj) -> Obj:
        new = pods.bound(pod, binding, chain.parts.clock.now())
        if wanted_uid:
            new["metadata"]["uid"] = wanted_uid  # checked against the pod's own
        return new

    inner = Call("update", PODS, call.namespace, name, "binding", options=call.options)
    await chain.modify(user, inner, change, _keep, _accept)
    return Answer(SUCCESS, code=201)


async def finalize_namespace(chain: Chain, user: User, call: Call) -> Answer:
    given = decoded(chain.parts.schema, call, [])
    check_names(call, given)

    def change(current: Obj) -> Obj:
        new = namespaces.finalized(current, given)
        new["metadata"]["resourceVersion"] = meta_of(given).get("resourceVersion") or ""
        return new

    return await chain.modify(user, call, change, _keep, _accept)


async def get_scale(chain: Chain, user: User, call: Call) -> Answer:
    item = await chain.parts.registry.current(call.resource, call.namespace, call.name)
    return Answer(scale_of(item.obj))


async def set_scale(chain: Chain, user: User, call: Call) -> Answer:
    warnings: list[str] = []
    given = decoded(chain.parts.schema, call, warnings) if call.verb == "update" else None
    if given is None:
        check_options(call)

    def change(current: Obj) -> Obj:
        if call.options.patch_type == "apply":
            now = chain.parts.clock.now()
            scale, owned = chain.ownership.applied_scale(user, call, current, warnings, now)
            new = _scaled(call, current, scale)
            chain.ownership.own(new, owned, current)
            return new
        if given is not None:
            return _scaled(call, current, given)
        return _scaled(
            call, current, patched(chain.parts.schema, call, scale_of(current), warnings)
        )

    def keep_generation(new: Obj, old: Obj) -> None:
        if (new.get("spec") or {}) != (old.get("spec") or {}):
            new["metadata"]["generation"] = int(meta_of(old).get("generation") or 0) + 1

    answer = await chain.modify(user, call, change, keep_generation, _accept)
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


async def evict(chain: Chain, user: User, call: Call) -> Answer:
    eviction = decoded(chain.parts.schema, call, [])
    if name_of(eviction) not in ("", call.name):
        raise BadRequest("name in URL does not match name in Eviction object")
    pod = (await chain.parts.registry.current(PODS, call.namespace, call.name)).obj
    options = _delete_options(eviction.get("deleteOptions") or {}, call.options)
    if _needs_budget(pod):
        budgets = _budgets_of(chain, pod)
        if len(budgets) > 1:
            raise InternalError(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource "
                "does not support."
            )
        if budgets and not call.options.dry_run:
            await _take_from_budget(chain, user, budgets[0], call.name)
    await _mark_disrupted(chain, user, call)
    await chain.delete(user, Call("delete", PODS, call.namespace, call.name, options=options))
    return Answer(SUCCESS, code=201)


def _delete_options(given: Obj, options: Options) -> Options:
    preconditions = given.get("preconditions") or {}
    return Options(
        dry_run=options.dry_run or given.get("dryRun") == ["All"],
        grace_seconds=given.get("gracePeriodSeconds"),
        precondition_uid=preconditions.get("uid") or "",
        precondition_resource_version=preconditions.get("resourceVersion") or "",
        propagation=given.get("propagationPolicy") or "",
    )


def _needs_budget(pod: Obj) -> bool:
    """As canIgnorePDB: pods that do not run any more, or not yet, disturb nobody."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed", "Pending") and not meta_of(pod).get(
        "deletionTimestamp"
    )


def _budgets_of(chain: Chain, pod: Obj) -> list[Obj]:
    found = []
    for budget in chain.parts.registry.find_all(POD_DISRUPTION_BUDGETS):
        selector = (budget.get("spec") or {}).get("selector")
        if namespace_of(budget) != namespace_of(pod) or selector is None:
            continue
        if selectors.from_object(selector).matches(labels_of(pod)):
            found.append(budget)
    return found


async def _take_from_budget(chain: Chain, user: User, budget: Obj, pod: str) -> None:
    call = Call("update", POD_DISRUPTION_BUDGETS, namespace_of(budget), name_of(budget), "status")

    def change(current: Obj) -> Obj:
        status = current.get("status") or {}
        allowed = int(status.get("disruptionsAllowed") or 0)
        if allowed <= 0:
            raise _no_budget(current)
        disrupted = {**(status.get("disruptedPods") or {}), pod: time_text(chain.parts.clock.now())}
        taken = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
        return {**current, "metadata": dict(current["metadata"]), "status": taken}

    await chain.modify(user, call, change, _keep, _accept)


def _no_budget(budget: Obj) -> TooManyRequests:
    status = budget.get("status") or {}
    why = (
        f"The disruption budget {name_of(budget)} needs {status.get('desiredHealthy', 0)} healthy "
        f"pods and has {status.get('currentHealthy', 0)} currently"
    )
    return TooManyRequests(
        NO_BUDGET, details={"causes": [{"reason": "DisruptionBudget", "message": why}]}
    )


async def _mark_disrupted(chain: Chain, user: User, call: Call) -> None:
    now = time_text(chain.parts.clock.now())
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": now,
    }

    def change(pod: Obj) -> Obj:
        status = pod.get("status") or {}
        others = [c for c in status.get("conditions") or () if c.get("type") != "DisruptionTarget"]
        marked = {**status, "conditions": [*others, condition]}
        return {**pod, "metadata": dict(pod["metadata"]), "status": marked}

    inner = Call("update", PODS, call.namespace, call.name, "eviction", options=call.options)
    await chain.modify(user, inner, change, _keep, _accept)


class TokenRequests:
    """serviceaccounts/NAME/token."""

    def __init__(self, signer: TokenSigner | None) -> None:
        self._signer = signer

    async def create(self, chain: Chain, user: User, call: Call) -> Answer:
        if self._signer is None:
            raise not_found("serviceaccounts/token", "", call.name)
        parts = chain.parts
        request = decoded(parts.schema, call, [])
        await parts.admission.validate(attributes_of(user, CREATE, call, request, None))
        account = (await parts.registry.current(call.resource, call.namespace, call.name)).obj
        spec = request.setdefault("spec", {})
        seconds = int(spec.get("expirationSeconds") or 3600)
        if seconds < MIN_TOKEN_SECONDS:
            why = "may not specify a duration less than 10 minutes"
            wrong = invalid_value("spec.expirationSeconds", seconds, why)
            raise invalid("TokenRequest", "authentication.k8s.io", call.name, [wrong])
        seconds = min(seconds, parts.settings.token_max_seconds)
        spec["expirationSeconds"] = seconds
        spec.setdefault("audiences", list(parts.settings.token_audiences))
        now = parts.clock.now()
        bound = self._bound(chain, call, spec.get("boundObjectRef"))
        kind, name, uid, node, node_uid = (*bound, "", "", "", "", "")[:5]
        lasts, warn_after = seconds, 0
        own = set(spec["audiences"]) <= set(parts.settings.token_audiences)
        if parts.settings.token_extend and kind == "pod" and seconds == TOKEN_SECONDS and own:
            # As upstream: clients that read their token once go on; they are noted as stale.
            lasts, warn_after = EXTENDED_SECONDS, int(now) + seconds
        claims = Claims(
            tuple(spec["audiences"]), int(now) + lasts, call.namespace, call.name,
            uid_of(account), kind, name, uid, node, node_uid, warn_after=warn_after,
        )  # fmt: skip
        token = self._signer.token(claims, now, new_uid(parts.rng))
        request["metadata"] = {
            "name": call.name,
            "namespace": call.namespace,
            "creationTimestamp": time_text(now),
        }
        request["status"] = {"token": token, "expirationTimestamp": time_text(now + seconds)}
        return Answer(request, code=201)

    def _bound(self, chain: Chain, call: Call, reference: Obj | None) -> tuple[str, ...]:
        """What the token says of the object that it is good for; of a pod, its node as well."""
        if not reference:
            return ()
        kinds = {"Pod": PODS, "Secret": SECRETS, "Node": NODES}
        resource = kinds.get(reference.get("kind") or "")
        if resource is None:
            raise BadRequest(
                f"cannot bind token for serviceaccount {call.name!r} to object of kind "
                f"{reference.get('kind')!r}"
            )
        name = reference.get("name") or ""
        namespace = call.namespace if resource.namespaced else ""
        found = chain.parts.registry.find(resource, namespace, name)
        if found is None:
            raise not_found(resource.plural, "", name)
        if reference.get("uid") and reference["uid"] != uid_of(found):
            why = (
                f"the UID in the bound object reference ({reference['uid']}) does not match the "
                f"UID in record. The object might have been deleted and then recreated"
            )
            raise conflict(resource.kind, "", name, why)
        said = (resource.kind.lower(), name, uid_of(found))
        node_name = str((found.get("spec") or {}).get("nodeName") or "") if resource is PODS else ""
        node = chain.parts.registry.find(NODES, "", node_name) if node_name else None
        return said if node is None else (*said, node_name, uid_of(node))
