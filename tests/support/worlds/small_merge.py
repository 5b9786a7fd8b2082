"""How the small API merges a patch.

Job: a strategic merge as far as statuses need it: conditions merge by type, a null removes.
Invariant: what was there before is not changed in place.
"""

from sampan.api.objects import Obj, copy_of


def merge_patch(before: Obj, patch: Obj) -> Obj:
    result = _merge(before, patch)
    assert isinstance(result, dict)
    return result


def _merge(before: object, patch: object) -> object:
    if isinstance(patch, dict):
        result = copy_of(before) if isinstance(before, dict) else {}
        for name, value in patch.items():
            if value is None:
                result.pop(name, None)
            elif name == "conditions":
                result[name] = _merge_conditions(result.get(name) or [], value)
            else:
                result[name] = _merge(result.get(name), value)
        return result
    if isinstance(patch, list):
        return [copy_of(item) for item in patch if item != {"$patch": "replace"}]
    return patch


def _merge_conditions(before: list[Obj], patch: list[Obj]) -> list[Obj]:
    result = {condition["type"]: condition for condition in before}
    for condition in patch:
        kind = condition["type"]
        if condition.get("$patch") == "delete":
            result.pop(kind, None)
        else:
            result[kind] = merge_patch(result.get(kind) or {}, condition)
    return list(result.values())
