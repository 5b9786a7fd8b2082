"""Server-side apply: over what is there, or from nothing.

Job: update the object, or create it where there is none; again when it comes or goes meanwhile.
"""

from dataclasses import replace
from functools import partial

from sampan.api.calls import Answer, Call
from sampan.api.errors import AlreadyExists, NotFound, conflict
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.calls import authorize
from sampan.apiserver.write.create import create
from sampan.apiserver.write.object_rules import check_names
from sampan.apiserver.write.ownership import check_options
from sampan.apiserver.write.races import ATTEMPTS, lost_race
from sampan.apiserver.write.request_scope import RequestScope, weight_of
from sampan.apiserver.write.update import update


def _check_uid(call: Call) -> None:
    """Who names a uid means an object that is there. Raises Conflict."""
    given = (call.body.get("metadata") or {}).get("uid")
    if given:
        why = (
            f"uid mismatch: the provided object specified uid {given}, and no existing object was "
            "found"
        )
        raise conflict(call.resource.plural, call.resource.group, call.name, why)


async def apply(scope: RequestScope, user: User, call: Call) -> Answer:
    check_options(call)
    for _ in range(ATTEMPTS):
        try:
            return await update(scope, user, call)
        except NotFound:
            _check_uid(call)
            warnings: list[str] = []
            now = scope.clock.now()
            applied = partial(scope.ownership.applied, user, call, {}, warnings, now)
            new = await scope.beside(weight_of(call), applied)
            check_names(call, new)
        try:
            new_call = replace(call, verb="create", name="", body=new, problems=())
            await authorize(scope.authorization, user, new_call)
            answer = await create(scope, user, new_call)
        except AlreadyExists:
            continue
        answer.warnings = [*warnings, *answer.warnings]
        return answer
    raise lost_race(call)
