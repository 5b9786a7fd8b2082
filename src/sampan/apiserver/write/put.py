"""PUT: update, or create where the kind allows it.

Job: update the object, or create it where there is none; again when it comes or goes meanwhile.
Invariant: who names a uid means an object that is there.
Invariant: who may only update creates nothing.
"""

from functools import partial

from sampan.api.calls import Answer, Call
from sampan.api.errors import AlreadyExists, NotFound, conflict
from sampan.api.objects import Obj
from sampan.apiserver.authn.user import User
from sampan.apiserver.authz.calls import authorize
from sampan.apiserver.write.create import create
from sampan.apiserver.write.object_rules import check_names
from sampan.apiserver.write.races import ATTEMPTS, lost_race
from sampan.apiserver.write.request_scope import RequestScope, weight_of
from sampan.apiserver.write.update import update
from sampan.core.fast_dataclass import replace


async def put(scope: RequestScope, user: User, call: Call) -> Answer:
    if not _creates(scope, call):
        return await update(scope, user, call)
    for _ in range(ATTEMPTS):
        try:
            return await update(scope, user, call)
        except NotFound:
            body = await scope.beside(weight_of(call), partial(_new_body, call))
            new_call = replace(call, verb="create", name="", subresource="", body=body)
        try:
            await authorize(scope.authorization, user, new_call)
            return await create(scope, user, new_call)
        except AlreadyExists:
            continue
    raise lost_race(call)


def _creates(scope: RequestScope, call: Call) -> bool:
    """Of a Service also its status, as upstream."""
    if call.subresource:
        return call.subresource == "status" and call.resource.group_resource == "services"
    return scope.strategies.of(call.resource).creates_on_update


def _new_body(call: Call) -> Obj:
    """Raises BadRequest, Conflict."""
    body: Obj = {**call.body, "metadata": {**(call.body.get("metadata") or {})}}
    given = body["metadata"].get("uid")
    if given:
        why = (
            "StorageError: invalid object, Code: 4, AdditionalErrorMsg: Precondition failed: "
            f"UID in precondition: {given}, UID in object meta: "
        )
        raise conflict(call.resource.plural, call.resource.group, call.name, why)
    check_names(call, body)
    body["metadata"].pop("resourceVersion", None)
    return body
