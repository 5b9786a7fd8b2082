"""Access, token and self-subject reviews: answered, never stored.

Job: SelfSubjectReview, TokenReview, and the access reviews, answered by the chain's own parts.
"""

from sampan.api.calls import Answer, Call
from sampan.api.errors import BadRequest, invalid
from sampan.api.objects import Obj, spec_of, time_text
from sampan.api.rules import selectors
from sampan.api.validation import validate_create
from sampan.apiserver.authn.tokens import BadToken
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.chain import Attributes
from sampan.apiserver.write.posted import Posted
from sampan.apiserver.write.request_scope import RequestScope

_OF_RESOURCES = ("verbs", "apiGroups", "resources", "resourceNames")
_SIGNS = {"In": "=", "NotIn": "!="}


async def self_subject_review(scope: RequestScope, user: User, posted: Posted) -> Answer:
    await posted.admit()
    review = _new(posted.call)
    review["metadata"] = {"creationTimestamp": time_text(scope.clock.now())}
    review["status"] = {"userInfo": user_info(user)}
    return Answer(review, code=201)


async def token_review(scope: RequestScope, user: User, posted: Posted) -> Answer:
    review = posted.obj
    spec = spec_of(review)
    if not spec.get("token"):
        raise BadRequest("token is required for TokenReview in authentication")
    await posted.admit()
    audiences = tuple(spec.get("audiences") or ())
    try:
        found, good = await scope.authentication.reviewed_token(spec["token"], audiences)
    except BadToken as error:
        said = f"[invalid bearer token, {error}]" if str(error) else "invalid bearer token"
        review["status"] = {"user": {}, "error": said}
        return Answer(review, code=201)
    review["status"] = {"authenticated": True, "user": user_info(found), "audiences": good}
    return Answer(review, code=201)


async def self_access_review(scope: RequestScope, user: User, posted: Posted) -> Answer:
    _check(posted)
    return await _review(scope, posted, user)


async def access_review(scope: RequestScope, user: User, posted: Posted) -> Answer:
    """Of a namespace of its own, too: a LocalSubjectAccessReview."""
    _check(posted)
    spec = spec_of(posted.obj)
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(spec.get("groups") or ())
    asked = User(spec.get("user") or "", groups, spec.get("uid") or "", extra)
    return await _review(scope, posted, asked)


async def self_rules_review(scope: RequestScope, user: User, posted: Posted) -> Answer:
    """kubectl auth can-i --list. What was asked is not repeated, as upstream."""
    namespace = spec_of(posted.obj).get("namespace")
    if not namespace:
        raise BadRequest("no namespace on request")
    await posted.admit()
    known = scope.authorization.rules(user, namespace)
    status: Obj = {"resourceRules": [], "nonResourceRules": [], "incomplete": known.incomplete}
    for rule in known.rules:
        if rule.get("resources"):
            status["resourceRules"].append(_fields(rule, _OF_RESOURCES))
        if rule.get("nonResourceURLs"):
            status["nonResourceRules"].append(_fields(rule, ("verbs", "nonResourceURLs")))
    if known.trouble:
        status["evaluationError"] = known.trouble
    return Answer({**_new(posted.call), "metadata": {}, "spec": {}, "status": status}, code=201)


def _new(call: Call) -> Obj:
    return {"kind": call.resource.kind, "apiVersion": call.resource.api_version}


def _fields(rule: Obj, names: tuple[str, ...]) -> Obj:
    return {name: rule[name] for name in names if rule.get(name)}


def _check(posted: Posted) -> None:
    """Raises Invalid."""
    resource = posted.call.resource
    wrong = validate_create(resource, posted.obj)
    if wrong:
        raise invalid("", resource.group, "", wrong)  # of no kind, as upstream


async def _review(scope: RequestScope, posted: Posted, user: User) -> Answer:
    await posted.admit()
    review = posted.obj
    spec = spec_of(review)
    asked, troubles = _access(user, spec)
    allowed, denied, reason = await scope.authorization.review(asked)
    status: Obj = {"allowed": allowed}
    if denied:
        status["denied"] = True
    if reason:
        status["reason"] = reason
    if troubles:
        status["evaluationError"] = "; ".join(troubles)
    review["status"] = status
    return Answer(review, code=201)


def _access(user: User, spec: Obj) -> tuple[Attributes, list[str]]:
    """What is asked, and of what that is only a part."""
    given = spec.get("resourceAttributes")
    if given is None:
        of_path = spec.get("nonResourceAttributes") or {}
        return Attributes(user, of_path.get("verb") or "", path=of_path.get("path") or ""), []
    fields, trouble = _field_selector(given.get("fieldSelector") or {})
    troubles = [f"spec.resourceAttributes.fieldSelector {trouble}"] if trouble else []
    trouble = _label_trouble(given.get("labelSelector") or {})
    troubles += [f"spec.resourceAttributes.labelSelector {trouble}"] if trouble else []
    asked = Attributes(
        user,
        given.get("verb") or "",
        given.get("group") or "",
        given.get("resource") or "",
        given.get("subresource") or "",
        given.get("namespace") or "",
        given.get("name") or "",
        field_selector=fields,
    )
    return asked, troubles


def _field_selector(given: Obj) -> tuple[str, str]:
    """The raw text, or the requirements written as one; and what is wrong with it."""
    raw = given.get("rawSelector") or ""
    if raw:
        try:
            selectors.parse_field_selector(raw)
        except selectors.SelectorError:
            return "", _ignored(0)
        return raw, ""
    requirements = given.get("requirements") or ()
    good = [
        f"{item.get('key')}{_SIGNS[item['operator']]}{selectors.escaped(item['values'][0])}"
        for item in requirements
        if item.get("operator") in _SIGNS and len(item.get("values") or ()) == 1
    ]
    return ",".join(good), _ignored(len(good)) if len(good) < len(requirements) else ""


def _label_trouble(given: Obj) -> str:
    raw = given.get("rawSelector") or ""
    try:
        if raw:
            selectors.parse_label_selector(raw)
    except selectors.SelectorError:
        return _ignored(0)
    good, requirements = 0, given.get("requirements") or ()
    for item in requirements:
        try:
            selectors.from_object({"matchExpressions": [item]})
        except selectors.SelectorError:
            continue
        good += 1
    return _ignored(good) if good < len(requirements) else ""


def _ignored(good: int) -> str:
    return "partially ignored due to parse error" if good else "ignored due to parse error"


def user_info(user: User) -> Obj:
    shown: Obj = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    shown["groups"] = list(user.groups)
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in user.extra.items()}
    return shown
