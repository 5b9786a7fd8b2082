"""Reviews: questions about who I am and what is allowed. Nothing is stored.

Job: SelfSubjectReview, TokenReview, and the access reviews, answered by the chain's own parts.
"""

from sampan.api.calls import Answer, Call
from sampan.api.errors import invalid, required
from sampan.api.objects import Obj
from sampan.apiserver.authn.tokens import BadToken
from sampan.apiserver.authn.user import MASTERS, User
from sampan.apiserver.authz.chain import Attributes
from sampan.apiserver.chain import Chain
from sampan.apiserver.decoding import decoded


async def self_subject_review(chain: Chain, user: User, call: Call) -> Answer:
    review = decoded(chain.parts.schema, call, [])
    review["status"] = {"userInfo": user_info(user)}
    return Answer(review, code=201)


async def token_review(chain: Chain, user: User, call: Call) -> Answer:
    review = decoded(chain.parts.schema, call, [])
    spec = review.get("spec") or {}
    if not spec.get("token"):
        raise invalid("TokenReview", "authentication.k8s.io", "", [required("spec.token")])
    audiences = tuple(spec.get("audiences") or ())
    try:
        found = chain.parts.authentication.token_user(spec["token"], audiences)
    except BadToken as error:
        review["status"] = {"user": {}, "error": str(error)}
        return Answer(review, code=201)
    shown = list(audiences or chain.parts.settings.token_audiences)
    review["status"] = {"authenticated": True, "user": user_info(found), "audiences": shown}
    return Answer(review, code=201)


async def self_access_review(chain: Chain, user: User, call: Call) -> Answer:
    review = decoded(chain.parts.schema, call, [])
    return _reviewed(chain, review, user)


async def access_review(chain: Chain, user: User, call: Call) -> Answer:
    review = decoded(chain.parts.schema, call, [])
    spec = review.get("spec") or {}
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(spec.get("groups") or ())
    asked = User(spec.get("user") or "", groups, spec.get("uid") or "", extra)
    return _reviewed(chain, review, asked)


async def self_rules_review(chain: Chain, user: User, call: Call) -> Answer:
    review = decoded(chain.parts.schema, call, [])
    everything = MASTERS in user.groups
    rules: list[Obj] = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    paths: list[Obj] = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    review["status"] = {
        "resourceRules": rules if everything else [],
        "nonResourceRules": paths if everything else [],
        "incomplete": False,
    }
    return Answer(review, code=201)


def _reviewed(chain: Chain, review: Obj, user: User) -> Answer:
    spec = review.get("spec") or {}
    of_resource, of_path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (of_resource is None) == (of_path is None):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(review["kind"], "authorization.k8s.io", "", [required("spec", why)])
    allowed, reason = chain.parts.authorization.decide(_asked(user, of_resource, of_path))
    status: Obj = {"allowed": allowed}
    if reason:
        status["reason"] = reason
    review["status"] = status
    return Answer(review, code=201)


def _asked(user: User, of_resource: Obj | None, of_path: Obj | None) -> Attributes:
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
    )


def user_info(user: User) -> Obj:
    shown: Obj = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    shown["groups"] = list(user.groups)
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in user.extra.items()}
    return shown
