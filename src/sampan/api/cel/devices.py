"""CEL environment of device selectors: `device`.

Job: the environment of selectors, and what is wrong with one before it is used.
"""

import functools
from collections.abc import Mapping

from sampan.api.cel.catalog import KUBERNETES_DEVICES
from sampan.api.cel.language.environment import Environment
from sampan.api.cel.language.errors import CompileError
from sampan.api.cel.language.types import BOOL, DYN, STRING, Type, map_of, object_type
from sampan.api.cel.language.values import QUANTITY
from sampan.api.cel.program import compile_expression

DEVICE = object_type("DRADevice")
_FIELDS: dict[str, Type] = {
    "driver": STRING,
    "attributes": map_of(STRING, map_of(STRING, DYN)),
    "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    "allowMultipleAllocations": BOOL,
}


class _Shapes:
    def fields_of(self, name: str) -> Mapping[str, Type] | None:
        return _FIELDS if name == DEVICE.name else None


@functools.cache
def environment() -> Environment:
    return Environment({"device": DEVICE}, KUBERNETES_DEVICES, _Shapes())


def trouble_of(expression: str) -> str:
    """Nothing, where the expression may be used as a selector."""
    try:
        found = compile_expression(expression, environment()).result_type
    except CompileError as error:
        return f"compilation failed: {error}"
    if found not in (BOOL, DYN):
        return f"must evaluate to bool or the unknown type, not {found}"
    return ""
