"""serviceaccounts/NAME/token.

Job: a signed token of a service account, for as long and for whom the request asks.
"""

from sampan.api.calls import Answer, Call
from sampan.api.errors import BadRequest, conflict, invalid, invalid_value, not_found
from sampan.api.objects import Obj, time_text, uid_of
from sampan.api.resources import NODES, PODS, SECRETS, Resource
from sampan.api.rules.tokens.account_token import TOKEN_SECONDS
from sampan.apiserver.admission.chain import CREATE, attributes_of
from sampan.apiserver.authn.tokens import Claims, TokenSigner
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry.metadata import new_uid
from sampan.apiserver.write.decoding import decode_body
from sampan.apiserver.write.request_scope import RequestScope

MIN_TOKEN_SECONDS = 600
_BINDABLE = {"Pod": PODS, "Secret": SECRETS, "Node": NODES}
EXTENDED_SECONDS = 365 * 24 * 3600  # of a pod's own token, which its node replaces every hour


class TokenRequests:
    """serviceaccounts/NAME/token."""

    def __init__(self, signer: TokenSigner | None) -> None:
        self._signer = signer

    async def create(self, scope: RequestScope, user: User, call: Call) -> Answer:
        if self._signer is None:
            raise not_found("serviceaccounts/token", "", call.name)
        request = decode_body(scope.schema, call, [])
        await scope.admission.validate(attributes_of(user, CREATE, call, request, None))
        _check_named(request, call)
        account = (await scope.registry.current(call.resource, call.namespace, call.name)).obj
        account_uid = uid_of(account)
        _check_uid(request, call, account_uid)
        spec = request.setdefault("spec", {})
        seconds = int(spec.get("expirationSeconds") or 3600)
        if seconds < MIN_TOKEN_SECONDS:
            why = "may not specify a duration less than 10 minutes"
            wrong = invalid_value("spec.expirationSeconds", seconds, why)
            raise invalid("TokenRequest", "authentication.k8s.io", "", [wrong])
        seconds = min(seconds, scope.settings.token_max_seconds)
        spec["expirationSeconds"] = seconds
        spec["audiences"] = spec.get("audiences") or list(scope.settings.token_audiences)
        now = scope.clock.now()
        bound = self._bound_object(scope, call, spec.get("boundObjectRef"))
        kind, name, uid, node, node_uid = (*bound, "", "", "", "", "")[:5]
        lasts, warn_after = seconds, 0
        own = set(spec["audiences"]) <= set(scope.settings.token_audiences)
        if scope.settings.token_extend and kind == "pod" and seconds == TOKEN_SECONDS and own:
            # As upstream: clients that read their token once go on; they are noted as stale.
            lasts, warn_after = EXTENDED_SECONDS, int(now) + seconds
        claims = Claims(
            tuple(spec["audiences"]), int(now) + lasts, call.namespace, call.name,
            account_uid, kind, name, uid, node, node_uid, warn_after=warn_after,
        )  # fmt: skip
        token = self._signer.token(claims, now, new_uid(scope.rng))
        request["metadata"] = {
            "name": call.name,
            "namespace": call.namespace,
            "uid": account_uid,
            "creationTimestamp": time_text(now),
        }
        request["status"] = {"token": token, "expirationTimestamp": time_text(now + seconds)}
        return Answer(request, code=201)

    def _bound_object(
        self, scope: RequestScope, call: Call, reference: Obj | None
    ) -> tuple[str, ...]:
        """What the token says of the object that it is good for; of a pod, its node as well."""
        if not reference:
            return ()
        resource = _bindable(reference)
        name = reference.get("name") or ""
        namespace = call.namespace if resource.namespaced else ""
        found = scope.registry.find(resource, namespace, name)
        if found is None:
            raise not_found(resource.plural, "", name)
        if resource is PODS and (found.get("spec") or {}).get("serviceAccountName") != call.name:
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
        said = (resource.kind.lower(), name, uid_of(found))
        node_name = str((found.get("spec") or {}).get("nodeName") or "") if resource is PODS else ""
        node = scope.registry.find(NODES, "", node_name) if node_name else None
        return said if node is None else (*said, node_name, uid_of(node))


def _bindable(reference: Obj) -> Resource:
    """Raises BadRequest."""
    version, kind = reference.get("apiVersion") or "", reference.get("kind") or ""
    group, _, in_group = version.rpartition("/")
    resource = None if group else _BINDABLE.get(kind)
    if resource is None:
        raise BadRequest(f"cannot bind token to object of type {group}/{in_group}, Kind={kind}")
    return resource


def _check_named(request: Obj, call: Call) -> None:
    """A request may repeat whose token it is for. Raises Invalid."""
    for field, wanted in (("name", call.name), ("namespace", call.namespace)):
        given = (request.get("metadata") or {}).get(field)
        if given and given != wanted:
            why = f"must match the service account {field} if specified"
            wrong = invalid_value(f"metadata.{field}", given, why)
            raise invalid("TokenRequest", "authentication.k8s.io", call.name, [wrong])


def _check_uid(request: Obj, call: Call, uid: str) -> None:
    """An account of that name may be another one by now. Raises Conflict."""
    given = (request.get("metadata") or {}).get("uid")
    if given and given != uid:
        why = (
            f"the UID in the token request ({given}) does not match the UID of the service "
            f"account ({uid})"
        )
        raise conflict("TokenRequest", "authentication.k8s.io", call.name, why)
