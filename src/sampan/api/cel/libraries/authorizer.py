"""`authorizer.group('apps').resource('deployments').check('create').allowed()`.

Job: gather what is asked, and look the decision up among those that are known.
Invariant: nothing here waits. A decision that is not known is raised as Undecided; who evaluates
    asks for it, and evaluates again.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sampan.api.cel.language.errors import EvaluationError
from sampan.api.cel.language.functions import Library
from sampan.api.cel.language.types import opaque_type
from sampan.api.rules import names
from sampan.core.fast_dataclass import dataclass

_SPACE = "kubernetes.authorization"
AUTHORIZER, PATH, GROUP, RESOURCE, DECISION = (
    opaque_type(f"{_SPACE}.{item}")
    for item in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)
AUTHORIZERS = Library("kubernetes.authz", types=(AUTHORIZER, PATH, GROUP, RESOURCE, DECISION))
_CHECK_COST = 350_000  # so that an expression may ask twice


@dataclass(frozen=True, slots=True)
class Question:
    """May this be done? By the request's user, or by the service account that is named."""

    verb: str = ""
    account: tuple[str, str] | None = None  # namespace, name
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    cel_type = DECISION
    allowed: bool
    reason: str = ""
    error: str = ""


class Undecided(Exception):
    """The evaluation stops here until the question is answered."""

    def __init__(self, question: Question) -> None:
        super().__init__("an authorization decision is needed")
        self.question = question


Decide = Callable[[Question], Answer]  # raises Undecided


def from_answers(answers: Mapping[Question, Answer]) -> Decide:
    def decide(question: Question) -> Answer:
        if question not in answers:
            raise Undecided(question)
        return answers[question]

    return decide


@dataclass(frozen=True, slots=True)
class Authorizer:
    cel_type = AUTHORIZER
    decide: Decide
    asked: Question = Question()


@dataclass(frozen=True, slots=True)
class PathCheck:
    cel_type = PATH
    decide: Decide
    asked: Question


@dataclass(frozen=True, slots=True)
class GroupCheck:
    cel_type = GROUP
    decide: Decide
    asked: Question


@dataclass(frozen=True, slots=True)
class ResourceCheck:
    cel_type = RESOURCE
    decide: Decide
    asked: Question


@AUTHORIZERS.member(AUTHORIZER.name, "path", "string", to=PATH.name)
def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return PathCheck(authorizer.decide, replace(authorizer.asked, path=path))


@AUTHORIZERS.member(AUTHORIZER.name, "group", "string", to=GROUP.name)
def _group(authorizer: Authorizer, group: str) -> GroupCheck:
    return GroupCheck(authorizer.decide, replace(authorizer.asked, group=group))


@AUTHORIZERS.member(AUTHORIZER.name, "serviceAccount", "string", "string", to=AUTHORIZER.name)
def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if names.dns_subdomain(name):
        raise EvaluationError("Invalid service account name")
    if names.dns_label(namespace):
        raise EvaluationError("Invalid service account namespace")
    return Authorizer(authorizer.decide, replace(authorizer.asked, account=(namespace, name)))


@AUTHORIZERS.member(GROUP.name, "resource", "string", to=RESOURCE.name)
def _resource(check: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(check.decide, replace(check.asked, resource=resource))


def _declare_part(name: str, key: str) -> None:
    @AUTHORIZERS.member(RESOURCE.name, name, "string", to=RESOURCE.name)
    def narrowed(check: ResourceCheck, value: str) -> ResourceCheck:
        return ResourceCheck(check.decide, replace(check.asked, **{key: value}))  # type: ignore[arg-type]  # every part is a text


for _name, _key in {
    "subresource": "subresource",
    "namespace": "namespace",
    "name": "name",
    "fieldSelector": "field_selector",
    "labelSelector": "label_selector",
}.items():
    _declare_part(_name, _key)


@AUTHORIZERS.member(PATH.name, "check", "string", to=DECISION.name, cost=_CHECK_COST)
@AUTHORIZERS.member(RESOURCE.name, "check", "string", to=DECISION.name, cost=_CHECK_COST)
def _check(check: PathCheck | ResourceCheck, verb: str) -> Answer:
    return check.decide(replace(check.asked, verb=verb))


@AUTHORIZERS.member(DECISION.name, "allowed", to="bool")
def _is_allowed(decision: Answer) -> bool:
    return decision.allowed


@AUTHORIZERS.member(DECISION.name, "reason", to="string")
def _reason(decision: Answer) -> str:
    return decision.reason


@AUTHORIZERS.member(DECISION.name, "errored", to="bool")
def _has_error(decision: Answer) -> bool:
    return bool(decision.error)


@AUTHORIZERS.member(DECISION.name, "error", to="string")
def _error(decision: Answer) -> str:
    return decision.error
