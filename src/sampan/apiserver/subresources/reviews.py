"""Access, token and self-subject reviews: answered, never stored.

Job: SelfSubjectReview, TokenReview, and the access reviews, answered by the chain's own parts.
"""

from sampan.api.calls import Answer, Call
from sampan.api.errors import BadRequest, invalid
from sampan.api.objects import Obj, time_text
from sampan.api.validation import validate_create
from sampan.apiserver.authn.tokens import BadToken
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes
from sampan.apiserver.write.decoding import decode_body
from sampan.apiserver.write.object_rules import check_namespace
from sampan.apiserver.write.request_scope import RequestScope

_OF_RESOURCES = ("verbs", "apiGroups", "resources", "resourceNames")


async def self_subject_review(scope: RequestScope, user: User, call: Call) -> Answer:
    review = decode_body(scope.schema, call, [])
    review["metadata"]["creationTimestamp"] = time_text(scope.clock.now())
    review["status"] = {"userInfo": user_info(user)}
    return Answer(review, code=201)


async def token_review(scope: RequestScope, user: User, call: Call) -> Answer:
    review = decode_body(scope.schema, call, [])
    spec = review.get("spec") or {}
    if not spec.get("token"):
        raise BadRequest("token is required for TokenReview in authentication")
    audiences = tuple(spec.get("audiences") or ())
    try:
        found, good = await scope.authentication.reviewed_token(spec["token"], audiences)
    except BadToken as error:
        review["status"] = {"user": {}, "error": f"[invalid bearer token, {error}]"}
        return Answer(review, code=201)
    review["status"] = {"authenticated": True, "user": user_info(found), "audiences": good}
    return Answer(review, code=201)


async def self_access_review(scope: RequestScope, user: User, call: Call) -> Answer:
    review = _question(scope, call)
    return await _review(scope, review, user)


async def access_review(scope: RequestScope, user: User, call: Call) -> Answer:
    review = _question(scope, call)
    spec = review.get("spec") or {}
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(spec.get("groups") or ())
    asked = User(spec.get("user") or "", groups, spec.get("uid") or "", extra)
    return await _review(scope, review, asked)


async def self_rules_review(scope: RequestScope, user: User, call: Call) -> Answer:
    """kubectl auth can-i --list."""
    review = decode_body(scope.schema, call, [])
    namespace = (review.get("spec") or {}).get("namespace")
    if not namespace:
        raise BadRequest("no namespace on request")
    known = scope.authorization.rules(user, namespace)
    status: Obj = {"resourceRules": [], "nonResourceRules": [], "incomplete": known.incomplete}
    for rule in known.rules:
        if rule.get("resources"):
            status["resourceRules"].append(_fields(rule, _OF_RESOURCES))
        if rule.get("nonResourceURLs"):
            status["nonResourceRules"].append(_fields(rule, ("verbs", "nonResourceURLs")))
    if known.trouble:
        status["evaluationError"] = known.trouble
    review["status"] = status
    return Answer(review, code=201)


def _fields(rule: Obj, names: tuple[str, ...]) -> Obj:
    return {name: rule[name] for name in names if rule.get(name)}


async def local_access_review(scope: RequestScope, user: User, call: Call) -> Answer:
    """Like a SubjectAccessReview, but about the request's own namespace."""
    return await access_review(scope, user, call)


def _question(scope: RequestScope, call: Call) -> Obj:
    """Raises BadRequest or Invalid."""
    review = decode_body(scope.schema, call, [])
    check_namespace(call, review["metadata"])
    wrong = validate_create(call.resource, review)
    if wrong:
        raise invalid("", call.resource.group, "", wrong)  # of no kind, as upstream
    return review


async def _review(scope: RequestScope, review: Obj, user: User) -> Answer:
    spec = review.get("spec") or {}
    asked = _access(user, spec.get("resourceAttributes"), spec.get("nonResourceAttributes"))
    allowed, denied, reason = await scope.authorization.review(asked)
    status: Obj = {"allowed": allowed}
    if denied:
        status["denied"] = True
    if reason:
        status["reason"] = reason
    review["status"] = status
    return Answer(review, code=201)


def _access(user: User, of_resource: Obj | None, of_path: Obj | None) -> Attributes:
    if of_resource is None:
        asked = of_path or {}
        return Attributes(user, asked.get("verb") or "", path=asked.get("path") or "")
    return Attributes(
        user,
        of_resource.get("verb") or "",
        of_resource.get("group") or "",
        of_resource.get("resource") or "",
        of_resource.get("subresource") or "",
        of_resource.get("namespace") or "",
        of_resource.get("name") or "",
        "",
        _field_selector(of_resource.get("fieldSelector") or {}),
    )


def _field_selector(given: Obj) -> str:
    """The raw text, or the requirements written as one."""
    if given.get("rawSelector"):
        return str(given["rawSelector"])
    signs = {"In": "=", "NotIn": "!="}
    return ",".join(
        f"{requirement.get('key')}{signs[requirement['operator']]}{requirement['values'][0]}"
        for requirement in given.get("requirements") or ()
        if requirement.get("operator") in signs and len(requirement.get("values") or ()) == 1
    )


def user_info(user: User) -> Obj:
    shown: Obj = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    shown["groups"] = list(user.groups)
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in user.extra.items()}
    return shown
