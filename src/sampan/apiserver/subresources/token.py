"""serviceaccounts/NAME/token.

Job: a signed token of a service account, for as long and for whom the request asks.
Invariant: a token is bound to a pod of its own account only.
"""

from sampan.api.calls import Answer, Call
from sampan.api.errors import (
    BadRequest,
    FieldError,
    conflict,
    invalid,
    invalid_value,
    not_found,
)
from sampan.api.objects import Obj, meta_of, spec_of, time_text, uid_of
from sampan.api.resources import NODES, PODS, SECRETS, Resource
from sampan.api.rules.tokens.account_token import TOKEN_SECONDS
from sampan.apiserver.authn.tokens import Claims, Signer
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry.metadata import new_uid
from sampan.apiserver.write.posted import Posted
from sampan.apiserver.write.request_scope import RequestScope

DEFAULT_SECONDS = 3600
MIN_TOKEN_SECONDS, MOST_TOKEN_SECONDS = 600, 2**32
EXTENDED_SECONDS = 365 * 24 * 3600  # of a pod's own token, which its node replaces every hour
_GROUP = "authentication.k8s.io"
_BOUND: dict[str, Resource] = {"Pod": PODS, "Secret": SECRETS, "Node": NODES}


async def create(signer: Signer | None, scope: RequestScope, user: User, posted: Posted) -> Answer:
    """serviceaccounts/NAME/token."""
    call, request = posted.call, posted.obj
    if signer is None:
        raise not_found("serviceaccounts/token", "", call.name)
    account = await _account(scope, posted)
    spec = request.setdefault("spec", {})
    spec.setdefault("boundObjectRef", None)  # as Go writes it
    now = scope.clock.now()
    request["metadata"] = {
        **request["metadata"],
        "name": call.name,
        "namespace": call.namespace,
        "uid": uid_of(account),
        "creationTimestamp": time_text(now),
    }
    _check_seconds(spec["expirationSeconds"])
    await posted.admit()  # a node is judged by whom it asked for, before that is filled in
    spec["audiences"] = spec.get("audiences") or list(scope.settings.token_audiences)
    bound = _bound_object(scope, call, spec["boundObjectRef"])
    seconds, most = int(spec["expirationSeconds"]), signer.most_seconds
    if 0 < most < seconds:
        posted.warnings.append(
            f"requested expiration of {seconds} seconds shortened to {most} seconds"
        )
        seconds = spec["expirationSeconds"] = most
    kind, name, uid, node, node_uid = (*bound, "", "", "", "", "")[:5]
    lasts, warn_after = seconds, 0
    own = set(spec["audiences"]) <= set(scope.settings.token_audiences)
    if scope.settings.token_extend and kind == "pod" and seconds == TOKEN_SECONDS and own:
        # As upstream: clients that read their token once go on; they are noted as stale.
        lasts = min(EXTENDED_SECONDS, signer.longest_seconds or EXTENDED_SECONDS)
        warn_after = int(now) + seconds
    claims = Claims(
        tuple(spec["audiences"]), int(now) + lasts, call.namespace, call.name,
        uid_of(account), kind, name, uid, node, node_uid, warn_after=warn_after,
    )  # fmt: skip
    made = signer.token(claims, now, new_uid(scope.rng))
    token = made if isinstance(made, str) else await made
    request["status"] = {"token": token, "expirationTimestamp": time_text(now + seconds)}
    return Answer(request, code=201)


def set_defaults(request: Obj) -> None:
    spec = request.setdefault("spec", {})
    spec.setdefault("expirationSeconds", DEFAULT_SECONDS)


async def _account(scope: RequestScope, posted: Posted) -> Obj:
    """Of the one that is asked for, and of no other of its name. Raises Invalid, NotFound,
    Conflict."""
    call, meta = posted.call, meta_of(posted.obj)
    if meta.get("name") and meta["name"] != call.name:
        why = "must match the service account name if specified"
        wrong = invalid_value("metadata.name", meta["name"], why)
        raise invalid("TokenRequest", _GROUP, call.name, [wrong])
    account = (await scope.registry.current(call.resource, call.namespace, call.name)).obj
    if meta.get("uid") and meta["uid"] != uid_of(account):
        why = (
            f"the UID in the token request ({meta['uid']}) does not match the UID of the service "
            f"account ({uid_of(account)})"
        )
        raise conflict("TokenRequest", _GROUP, call.name, why)
    return account


def _check_seconds(seconds: int) -> None:
    """Raises Invalid."""
    wrong: list[FieldError] = []
    path = "spec.expirationSeconds"
    if seconds < MIN_TOKEN_SECONDS:
        why = "may not specify a duration less than 10 minutes"
        wrong.append(invalid_value(path, seconds, why))
    if seconds > MOST_TOKEN_SECONDS:
        why = "may not specify a duration larger than 2^32 seconds"
        wrong.append(invalid_value(path, seconds, why))
    if wrong:
        raise invalid("TokenRequest", _GROUP, "", wrong)


def _found(scope: RequestScope, call: Call, resource: Resource, reference: Obj) -> Obj:
    """Raises NotFound, BadRequest, Conflict."""
    name = reference.get("name") or ""
    namespace = call.namespace if resource.namespaced else ""
    found = scope.registry.find(resource, namespace, name)
    if found is None:
        raise not_found(resource.plural, "", name)
    if resource is PODS and spec_of(found).get("serviceAccountName") != call.name:
        raise BadRequest(
            f'cannot bind token for serviceaccount "{call.name}" to pod running with different '
            "serviceaccount name."
        )
    if reference.get("uid") and reference["uid"] != uid_of(found):
        why = (
            f"the UID in the bound object reference ({reference['uid']}) does not match the "
            f"UID in record. The object might have been deleted and then recreated"
        )
        raise conflict(resource.kind, "", name, why)
    return found


def _bound_object(scope: RequestScope, call: Call, reference: Obj | None) -> tuple[str, ...]:
    """What the token says of the object that it is good for; of a pod, its node as well."""
    if reference is None:
        return ()
    group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
    kind = reference.get("kind") or ""
    resource = _BOUND.get(kind) if not group else None
    if resource is None:
        raise BadRequest(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    found = _found(scope, call, resource, reference)
    name = reference.get("name") or ""
    said = (kind.lower(), name, uid_of(found))
    node_name = str(spec_of(found).get("nodeName") or "") if resource is PODS else ""
    if not node_name:
        return said
    node = scope.registry.find(NODES, "", node_name)
    return (*said, node_name, "" if node is None else uid_of(node))
