"""namespaces/NAME/finalize.

Job: take a namespace with its finalizers, those of its spec and those of its metadata; its status
    stays.
"""

from sampan.api.calls import Answer, Call
from sampan.api.errors import FieldError
from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.api.validation import validate_update
from sampan.api.validation.cluster.namespace import validate_namespace_finalizers
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry import namespaces
from sampan.apiserver.write.request_scope import RequestScope
from sampan.apiserver.write.update import modify_by_body


async def finalize_namespace(scope: RequestScope, user: User, call: Call) -> Answer:
    return await modify_by_body(scope, user, call, namespaces.finalize, _validate)


def _validate(resource: Resource, new: Obj, old: Obj, warnings: list[str]) -> list[FieldError]:
    errors = validate_update(resource, new, old, warnings)
    validate_namespace_finalizers(new, errors)
    return errors
