"""namespaces/NAME/finalize.

Job: take a namespace's own finalizers, and nothing else of it.
"""

from sampan.api.calls import Answer, Call
from sampan.api.objects import Obj, meta_of
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry import namespaces
from sampan.apiserver.write.decoding import decode_body
from sampan.apiserver.write.object_rules import check_names
from sampan.apiserver.write.request_scope import RequestScope
from sampan.apiserver.write.update import Modification, modify


async def finalize_namespace(scope: RequestScope, user: User, call: Call) -> Answer:
    given = decode_body(scope.schema, call, [])
    check_names(call, given)

    def change(current: Obj) -> Obj:
        new = namespaces.finalize(current, given)
        new["metadata"]["resourceVersion"] = meta_of(given).get("resourceVersion") or ""
        return new

    return await modify(scope, user, call, Modification(change))
