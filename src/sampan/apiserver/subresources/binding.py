"""pods/NAME/binding, and the older bindings resource.

Job: give a pod its node, once.
"""

from sampan.api.calls import Answer, Call
from sampan.api.errors import BadRequest, Failure, FieldError
from sampan.api.objects import Obj, meta_of, name_of, uid_of
from sampan.api.resources import PODS
from sampan.api.validation.pod import validate_binding
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry import pods
from sampan.apiserver.write.posted import Posted
from sampan.apiserver.write.request_scope import RequestScope
from sampan.apiserver.write.update import Modification, modify, precondition_error


async def bind(scope: RequestScope, user: User, posted: Posted) -> Answer:
    """pods/NAME/binding, and the older bindings resource. [A9]"""
    call, binding = posted.call, posted.obj
    name = call.name or name_of(binding)
    if not name:
        raise BadRequest("Name parameter required.")
    if name != name_of(binding):
        raise BadRequest("name in URL does not match name in Binding object")
    _check(binding)
    await posted.admit()
    wanted_uid, wanted_version = uid_of(binding), meta_of(binding).get("resourceVersion")

    def change(pod: Obj) -> Obj:
        version = meta_of(pod)["resourceVersion"]
        if wanted_version and wanted_version != version:
            raise precondition_error(inner, "ResourceVersion", wanted_version, version)
        new = pods.bind(pod, binding, scope.clock.now())
        if wanted_uid:
            new["metadata"]["uid"] = wanted_uid  # checked against the pod's own
        return new

    inner = Call(
        "update", PODS, call.namespace, name, "binding", options=call.options, marks=call.marks
    )
    await modify(scope, user, inner, Modification(change, is_admitted=True))
    return posted.succeeded()


def _check(binding: Obj) -> None:
    """Raises Failure: as upstream, which takes what is wrong for a failure of its own."""
    wrong_fields: list[FieldError] = []
    validate_binding(binding, wrong_fields)
    wrong = [str(field) for field in wrong_fields]
    if wrong:
        raise Failure(wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]")
