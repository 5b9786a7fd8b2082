"""CEL variables of a policy: object, oldObject, request, namespaceObject, authorizer.

Job: the values of object, oldObject, request, namespaceObject and authorizer; and asking the
    authorization chain what an expression wants to know.
Invariant: an evaluation never waits: it stops at a question, which is answered, and runs again.
Invariant: one question is asked once for a write.
Invariant: what takes long, or looks at a large object, is evaluated beside the loop, and no
    evaluation goes on for ever.
"""

from collections.abc import Callable
from typing import TypeVar

import orjson

from sampan.api.cel.language.cost import Interrupt
from sampan.api.cel.language.errors import Interrupted
from sampan.api.cel.language.values import Value
from sampan.api.cel.libraries.authorizer import (
    Answer,
    Authorizer,
    Question,
    ResourceCheck,
    Undecided,
    from_answers,
)
from sampan.api.objects import Obj
from sampan.api.resources import NAMESPACES
from sampan.apiserver.admission.chain import Attributes, Find
from sampan.apiserver.admission.matching.admission_request import request_of
from sampan.apiserver.admission.matching.rules import Matched
from sampan.apiserver.admission.plugin_initializer import Aid
from sampan.apiserver.authn.user import ACCOUNT_PREFIX, User, component, with_authenticated_group
from sampan.apiserver.authz.chain import Attributes as Access
from sampan.core.side_thread import countdown

T = TypeVar("T")
AT_ONCE_SECONDS = 0.01
MOST_SECONDS = 5.0  # of one policy's evaluation, with one set of parameters
LARGE_BYTES = 64 * 1024
MOST_QUESTIONS = 64  # of one write: what an expression may cost ends long before
_META = (
    "name", "generateName", "namespace", "labels", "annotations", "creationTimestamp",
    "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "resourceVersion",
    "finalizers",
)  # fmt: skip


class _TakesLong(Exception):
    """Longer than everybody else can wait."""


def _stopping(is_over: Callable[[], bool], failure: type[Exception]) -> Interrupt:
    def check() -> None:
        if is_over():
            raise failure

    return check


class PolicyRequest:
    """One write, as policies look at it."""

    def __init__(self, attributes: Attributes, find: Find, aid: Aid) -> None:
        self.attributes = attributes
        self._find, self._aid = find, aid
        self._answers: dict[Question, Answer] = {}
        self._is_large: bool | None = None

    async def variables(self, matched: Matched) -> dict[str, Value]:
        """With the objects in the version of the rule that matched; as they are at this moment."""
        request = await self._aid.conversions.when_known(
            lambda: request_of(self.attributes, matched, "")
        )
        del request["uid"]
        obj, old = request.pop("object"), request.pop("oldObject")
        authorizer = Authorizer(from_answers(self._answers))
        return {
            "object": obj,
            "oldObject": old,
            "request": request,
            "namespaceObject": self._namespace(),
            "authorizer": authorizer,
            "authorizer.requestResource": ResourceCheck(authorizer.decide, self._own_question()),
        }

    async def decided(self, evaluate: Callable[[Interrupt], T]) -> T:
        """What `evaluate` gives once everything that it wants to know is known."""
        for _ in range(MOST_QUESTIONS):
            try:
                return await self._evaluate(evaluate)
            except Undecided as stopped:
                self._answers[stopped.question] = await self._ask(stopped.question)
        return await self._evaluate(evaluate)

    async def _evaluate(self, evaluate: Callable[[Interrupt], T]) -> T:
        """At once where that is quick; else from the start again, beside the loop."""
        clock = self._aid.clock
        if not self._is_about_large_objects():
            await self._aid.share.give_way()
            began = clock.monotonic()
            latest = began + AT_ONCE_SECONDS
            try:
                return evaluate(_stopping(lambda: clock.monotonic() > latest, _TakesLong))
            except _TakesLong:
                pass  # nothing has happened: an evaluation changes nothing
            finally:
                self._aid.share.use(clock.monotonic() - began)
        interrupt = _stopping(countdown(MOST_SECONDS), Interrupted)
        return await self._aid.side.run(lambda: evaluate(interrupt))

    def _is_about_large_objects(self) -> bool:
        if self._is_large is None:
            both = (self.attributes.obj, self.attributes.old)
            try:
                self._is_large = len(orjson.dumps(both)) > LARGE_BYTES
            except (TypeError, ValueError):
                self._is_large = True  # numbers that only some writers can print
        return self._is_large

    async def _ask(self, question: Question) -> Answer:
        access = Access(
            user=self._user(question),
            verb=question.verb,
            group=question.group,
            resource=question.resource,
            subresource=question.subresource,
            namespace=question.namespace,
            name=question.name,
            path=question.path,
            field_selector=question.field_selector,
        )
        allowed, reason = await self._aid.authorization.decide(access)
        return Answer(allowed, reason)

    def _user(self, question: Question) -> User:
        if question.account is None:
            return self.attributes.user
        namespace, name = question.account
        return with_authenticated_group(component(f"{ACCOUNT_PREFIX}{namespace}:{name}"))

    def _own_question(self) -> Question:
        attributes = self.attributes
        return Question(
            group=attributes.resource.group,
            resource=attributes.resource.plural,
            subresource=attributes.subresource,
            namespace=attributes.namespace,
            name=attributes.name,
        )

    def _namespace(self) -> Obj | None:
        attributes = self.attributes
        if attributes.resource is NAMESPACES or not attributes.namespace:
            return None
        found = self._find(NAMESPACES, "", attributes.namespace)
        return None if found is None else shown_namespace(found)


def shown_namespace(namespace: Obj) -> Obj:
    """The fields of a namespace that expressions may read."""
    meta, spec = namespace.get("metadata") or {}, namespace.get("spec") or {}
    status = namespace.get("status") or {}
    shown = {key: meta[key] for key in _META if key in meta}
    return {
        "metadata": {**shown, "UID": meta.get("uid") or ""},
        "spec": {"finalizers": spec.get("finalizers") or []},
        "status": {"conditions": status.get("conditions") or [], "phase": status.get("phase")},
    }
