"""Policy plugins before the first policy exists: nothing of CEL is loaded.

Job: one step for mutating and one for validating policies.
Invariant: without policies a write pays nothing: admission leaves such a step out.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from sampan.api.resources import QUESTIONS
from sampan.apiserver.admission.chain import Attributes, Step
from sampan.apiserver.admission.plugin_initializer import Aid

if TYPE_CHECKING:
    from sampan.apiserver.admission.policies.policies import Policies

_OWN_GROUP = "admissionregistration.k8s.io"
_OWN = frozenset(
    f"{mode}admissionpolic{ending}"
    for mode in ("mutating", "validating")
    for ending in ("ies", "ybindings")
)
Judge = Callable[[Attributes], Awaitable[None] | None]


def step(load: Callable[[], Judge]) -> Step:
    made: list[Judge] = []

    def judged(attributes: Attributes) -> Awaitable[None] | None:
        if is_exempt(attributes):
            return None
        if not made:
            made.append(load())
        return made[0](attributes)

    return judged


def when_compiled(policies: "Policies", aid: Aid, judge: Judge) -> Judge:
    async def judged_later(attributes: Attributes) -> None:
        await policies.compile(aid)
        waiting = judge(attributes)
        if waiting is not None:
            await waiting

    def judged(attributes: Attributes) -> Awaitable[None] | None:
        return judge(attributes) if policies.is_compiled else judged_later(attributes)

    return judged


def is_exempt(attributes: Attributes) -> bool:
    resource = attributes.resource
    if resource.group == _OWN_GROUP:
        return resource.plural in _OWN
    return (resource.group, resource.plural) in QUESTIONS
