"""pods/NAME/binding, and the older bindings resource.

Job: give a pod its node, once.
"""

from sampan.api.calls import Answer, Call
from sampan.api.errors import Failure, FieldError
from sampan.api.objects import Obj, name_of, uid_of
from sampan.api.resources import PODS
from sampan.api.validation.pod import validate_binding
from sampan.apiserver.admission.chain import CREATE, attributes_of
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry import pods
from sampan.apiserver.write.decoding import decode_body
from sampan.apiserver.write.object_rules import SUCCESS
from sampan.apiserver.write.request_scope import RequestScope
from sampan.apiserver.write.update import Modification, modify


async def bind(scope: RequestScope, user: User, call: Call) -> Answer:
    """pods/NAME/binding, and the older bindings resource. [A9]"""
    binding = decode_body(scope.schema, call, [])
    name = call.name or name_of(binding)
    wrong_fields: list[FieldError] = []
    validate_binding(binding, wrong_fields)
    wrong = [str(field) for field in wrong_fields]
    if wrong:
        # As upstream, which takes them for a failure of its own.
        raise Failure(wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]")
    attributes = attributes_of(user, CREATE, call, binding, None)
    await scope.admission.mutate(attributes)
    await scope.admission.validate(attributes)
    wanted_uid = uid_of(binding)

    def change(pod: Obj) -> Obj:
        new = pods.bind(pod, binding, scope.clock.now())
        if wanted_uid:
            new["metadata"]["uid"] = wanted_uid  # checked against the pod's own
        return new

    inner = Call(
        "update", PODS, call.namespace, name, "binding", options=call.options, marks=call.marks
    )
    await modify(scope, user, inner, Modification(change, is_admitted=True))
    return Answer(SUCCESS, code=201)
