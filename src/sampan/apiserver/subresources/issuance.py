"""podcertificaterequests/NAME/status.

Job: take what the signer of a pod's certificate says, and judge it by the time of the day.
"""

from sampan.api.calls import Answer, Call
from sampan.api.errors import FieldError
from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.api.validation import validate_status_update
from sampan.apiserver.authn.user import User
from sampan.apiserver.write.object_rules import keep_all_but_status
from sampan.apiserver.write.request_scope import RequestScope
from sampan.apiserver.write.update import modify_by_body


async def issue(scope: RequestScope, user: User, call: Call) -> Answer:
    """PUT and PATCH."""
    # It reads certificates: a start need not load cryptography for it.
    from sampan.api.validation.access.pod_certificate_request import validate_request_status

    def prepare(new: Obj, old: Obj) -> None:
        keep_all_but_status(call.resource, new, old)

    def validate(resource: Resource, new: Obj, old: Obj, _warnings: list[str]) -> list[FieldError]:
        wrong = validate_status_update(resource, new, old)
        return wrong or validate_request_status(new, old, scope.clock.now())

    return await modify_by_body(scope, user, call, prepare, validate)
