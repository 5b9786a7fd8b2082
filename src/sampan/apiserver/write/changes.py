"""The change that a PUT or a PATCH makes of an object.

Job: the body of a call as a change: the object sent, patched or applied, named and defaulted.
Invariant: each attempt gets an object of its own: plugins and allocators change it, and an attempt
    that lost a race must leave nothing to the next one.
"""

from collections.abc import Callable

from sampan.api.calls import Call
from sampan.api.defaults import apply_defaults, changes_status_alone
from sampan.api.objects import Obj
from sampan.apiserver.authn.user import User
from sampan.apiserver.write.decoding import decode_body
from sampan.apiserver.write.object_rules import check_names
from sampan.apiserver.write.ownership import check_options
from sampan.apiserver.write.patching import apply_patch
from sampan.apiserver.write.request_scope import RequestScope

_NOT_DEFAULTED = frozenset({"apiVersion", "kind", "metadata", "status"})
Change = Callable[[Obj], Obj]  # the object as it is → as it shall be; a new one


def change_of(scope: RequestScope, user: User, call: Call, warnings: list[str]) -> Change:
    """Raises BadRequest and the like, of a body that no object could make good."""
    if call.verb == "update":
        return _replacement(scope, call, warnings)
    check_options(call)

    def patch(old: Obj) -> Obj:
        if call.options.patch_type == "apply":
            new = scope.ownership.applied(user, call, old, warnings, scope.clock.now())
        else:
            new = apply_patch(scope.schema, call, old, warnings)
        return _complete(call, new, _is_stored(call, new, old))

    return patch


def _replacement(scope: RequestScope, call: Call, warnings: list[str]) -> Change:
    first = [_complete(call, decode_body(scope.schema, call, warnings))]

    def replace(_old: Obj) -> Obj:
        return first.pop() if first else _complete(call, decode_body(scope.schema, call, []))

    return replace


def _is_stored(call: Call, new: Obj, old: Obj) -> bool:
    """Is all but its status the stored object's own, which has its defaults?"""
    if not changes_status_alone(call.resource, call.subresource):
        return False
    for key, value in old.items():
        if key not in _NOT_DEFAULTED and (key not in new or new[key] is not value):
            return False
    return True


def _complete(call: Call, obj: Obj, has_defaults: bool = False) -> Obj:
    check_names(call, obj)
    if not has_defaults:
        apply_defaults(call.resource, obj)
    return obj
