"""POST of what is answered, and is no object of its own: reviews, bindings, evictions, tokens.

Job: read the body, let admission change it, and give it to who answers; that one says when it is
    ready to be judged.
Invariant: whatever is posted is admitted: mutated before anybody looks at it, validated before
    anything is done.
"""

from collections.abc import Awaitable, Callable

from sampan.api.calls import Answer, Call
from sampan.api.objects import Obj
from sampan.apiserver.admission.chain import CREATE, Admission, Attributes, attributes_of
from sampan.apiserver.authn.user import User
from sampan.apiserver.write.decoding import decode_body
from sampan.apiserver.write.object_rules import SUCCESS, WarningsCarried, check_namespace
from sampan.apiserver.write.request_scope import Handler, RequestScope


class Posted:
    """What was sent, and how it is judged."""

    __slots__ = ("_admission", "_attributes", "call", "obj", "warnings")

    def __init__(
        self, call: Call, admission: Admission, attributes: Attributes, warnings: list[str]
    ) -> None:
        assert attributes.obj is not None
        self.call, self.obj, self.warnings = call, attributes.obj, warnings
        self._admission, self._attributes = admission, attributes

    async def admit(self) -> None:
        """Raises Forbidden and whatever else admission says."""
        await self._admission.validate(self._attributes)
        self.warnings += self._attributes.warnings

    def succeeded(self) -> Answer:
        return Answer({**SUCCESS, "code": 201}, code=201)


AnswerPosted = Callable[[RequestScope, User, Posted], Awaitable[Answer]]


def posting(answer_posted: AnswerPosted, default: Callable[[Obj], None] | None = None) -> Handler:
    """`default`: fills in what comes back to the caller; None: it gets nothing but a Status."""

    async def handle(scope: RequestScope, user: User, call: Call) -> Answer:
        warnings: list[str] = []
        with WarningsCarried(warnings):
            obj = decode_body(scope.schema, call, warnings)
            check_namespace(call, _metadata(obj))
            if default is not None:
                default(obj)
                scope.ownership.posted(user, call, obj, scope.clock.now())
            attributes = attributes_of(user, CREATE, call, obj, None)
            await scope.admission.mutate(attributes)
            answer = await answer_posted(
                scope, user, Posted(call, scope.admission, attributes, warnings)
            )
        answer.warnings = [*dict.fromkeys(warnings), *answer.warnings]
        return answer

    return handle


def _metadata(obj: Obj) -> Obj:
    found: Obj = obj.setdefault("metadata", {})
    return found
