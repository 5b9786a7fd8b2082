"""certificatesigningrequests/NAME/approval.

Job: write the verdict about a request, and nothing else.
Invariant: a verdict is given through /approval alone, a certificate through /status alone.
"""

from functools import partial

from sampan.api.calls import Answer, Call
from sampan.api.errors import FieldError
from sampan.api.objects import Obj, status_of
from sampan.api.resources import Resource
from sampan.api.validation import validate_status_update
from sampan.api.validation.access.certificate_signing_request import validate_request_approval
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry.certificate_signing_requests import date_conditions
from sampan.apiserver.write.object_rules import keep_all_but_status
from sampan.apiserver.write.request_scope import RequestScope
from sampan.apiserver.write.update import modify_by_body


async def approve(scope: RequestScope, user: User, call: Call) -> Answer:
    """PUT and PATCH."""
    now = scope.clock.now()
    prepare = partial(_keep_all_but_verdict, call.resource, now)
    return await modify_by_body(scope, user, call, prepare, _validate)


def _keep_all_but_verdict(resource: Resource, now: float, new: Obj, old: Obj) -> None:
    keep_all_but_status(resource, new, old)
    date_conditions(new, old, now)
    conditions = status_of(new).get("conditions")
    status = dict(status_of(old))
    status.pop("conditions", None)
    new["status"] = {**status, **({"conditions": conditions} if conditions else {})}


def _validate(resource: Resource, new: Obj, old: Obj, _warnings: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    validate_request_approval(new, old, errors)
    return errors or [
        error
        for error in validate_status_update(resource, new, old)
        if error.field.startswith("metadata")
    ]
