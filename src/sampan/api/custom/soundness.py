"""Fast path: custom objects that pruning and validation leave alone. Pure.

Job: write one Python function for each object and list of a schema, which says of a value that it
    is kept as it came and breaks nothing. Pure.
Invariant: a value is sound only where the walk of pruning.py changes nothing, and those of
    value_validation.py and list_types.py find nothing. What is not sound is theirs to judge.
Invariant: nothing of a schema becomes code but numbers, and texts as Python writes them; a
    function is written when its first value comes.
"""

from collections.abc import Callable
from typing import Any
from weakref import ref

from sampan.api.custom import formats, list_types, value_validation
from sampan.api.custom.structural import META_FIELDS, MISSING, Structural
from sampan.api.objects import Obj

Test = Callable[[Any], bool]

MOST_WRITTEN = 400  # fields whose functions are written for one value; some 20 us each
_ANY_OF_BOTH = (
    [{"type": "integer"}, {"type": "string"}],
    [{"type": "string"}, {"type": "integer"}],
)
_INTEGER = f"type({{v}}) is int and {-(2**63)} <= {{v}} < {2**63}"
# The keywords that each type's own lines take care of; others are left to the general check.
_STRUCTURE = frozenset({
    "type", "properties", "items", "additionalProperties", "nullable", "default", "description",
    "title", "example", "externalDocs", "required", "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
    "x-kubernetes-validations", "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource",
})  # fmt: skip
_OWN = {
    "string": frozenset({"maxLength", "minLength", "pattern", "format", "enum"}),
    "integer": frozenset({"maximum", "minimum", "format"}),
    "number": frozenset({"maximum", "minimum", "format"}),
    "boolean": frozenset({"format"}),
    "object": frozenset({"minProperties", "maxProperties"}),
    "array": frozenset({"minItems", "maxItems"}),
}


def compile_soundness(root: Structural) -> Test:
    return _Writer().test_of(root, is_object=True)


class _Writer:
    """The functions of one schema share a scope, in which they find each other by name; it is empty
    when their writer goes, or they would keep each other for ever."""

    def __init__(self) -> None:
        self._scope: dict[str, Any] = {"MISSING": MISSING, "plain": _is_plain}
        self._count = 0
        self._left = 0  # of what may be written for one value

    def __del__(self) -> None:
        self._scope.clear()

    def test_of(self, node: Structural, is_object: bool = False) -> Test:
        name = self._function(node, is_object)

        def test(value: Any) -> bool:
            self._left = MOST_WRITTEN
            return bool(self._scope[name](value))

        return test

    def _name(self, value: Any) -> str:
        self._count += 1
        name = f"n{self._count}"
        self._scope[name] = value
        return name

    def _function(self, node: Structural, is_object: bool = False) -> str:
        """Its name. What stands there first writes the function and makes way for it."""

        writer = ref(self)

        def write(value: Any) -> bool:
            me = writer()
            return me is not None and me._write(name, node, is_object, value)

        name = self._name(write)
        return name

    def _write(self, name: str, node: Structural, is_object: bool, value: Any) -> bool:
        self._left -= 1 + len(node.properties)
        if self._left < 0:
            return False  # another time: writing takes a hundred times as long as looking
        lines = self._object(node, is_object) if node.type == "object" else self._list(node)
        source = f"def {name}(v):\n " + "\n ".join([*lines, "return True"])
        exec(source, self._scope)
        return bool(self._scope[name](value))

    # Expressions: is the value of this variable sound, and not null?

    def _expression(self, node: Structural, variable: str) -> str:
        if node.embedded:
            return "False"
        if node.type in ("object", "array") and not node.int_or_string:
            return f"{self._function(node)}({variable})"
        parts = self._scalar(node, variable)
        return " and ".join(parts)

    def _scalar(self, node: Structural, variable: str) -> list[str]:
        own: frozenset[str] = frozenset()
        if node.int_or_string:
            integer = _INTEGER.format(v=variable)
            found = [f"(type({variable}) is str or {integer})"]
            if node.schema.get("anyOf") in _ANY_OF_BOTH:
                own = frozenset({"anyOf"})
        elif node.type == "string":
            found, own = self._text(node.schema, variable), _OWN["string"]
        elif node.type in ("integer", "number"):
            found, own = self._number(node, variable), _OWN[node.type]
        elif node.type == "boolean":
            found, own = [f"({variable} is True or {variable} is False)"], _OWN["boolean"]
        else:
            found = ["False"]
            if node.preserve and not node.properties:
                found = [f"{variable} is not None and plain({variable})"]
        return found + self._general(node.schema, own, variable)

    def _text(self, schema: Obj, variable: str) -> list[str]:
        found = [f"type({variable}) is str"]
        if schema.get("maxLength") is not None:
            found.append(f"len({variable}) <= {self._name(schema['maxLength'])}")
        if schema.get("minLength") is not None:
            found.append(f"len({variable}) >= {self._name(schema['minLength'])}")
        if schema.get("enum"):
            texts = frozenset(item for item in schema["enum"] if type(item) is str)
            found.append(f"{variable} in {self._name(texts)}")
        test = formats.test_of(schema.get("format") or "")
        if test is not None:
            found.append(f"{self._name(test)}({variable})")
        if schema.get("pattern"):
            search, known = value_validation.search_of(schema["pattern"])
            found.append(f"({variable} in {self._name(known)} or {self._name(search)}({variable}))")
        return found

    def _number(self, node: Structural, variable: str) -> list[str]:
        found = [_INTEGER.format(v=variable)]
        if _bounds_fit(node.schema):
            found = [f"type({variable}) is int"]
        if node.type == "number":
            fraction = f"type({variable}) is float and not {variable}.is_integer()"
            found = [f"(type({variable}) is int or {fraction})"]
        for key, exclusive, sign in (
            ("maximum", "exclusiveMaximum", "<"),
            ("minimum", "exclusiveMinimum", ">"),
        ):
            bound = node.schema.get(key)
            if bound is not None:
                more = "" if node.schema.get(exclusive) else "="
                found.append(f"{variable} {sign}{more} {self._name(bound)}")
        return found

    def _general(self, schema: Obj, own: frozenset[str], variable: str) -> list[str]:
        """Whatever else the schema says of the value itself."""
        rest = {
            key: value
            for key, value in schema.items()
            if key not in own and key not in _STRUCTURE and value not in (None, False, "")
        }
        if not rest:
            return []
        check = value_validation.compile_checks(rest)
        return [f"{self._name(_passes(check))}({variable})"]

    # Functions

    def _object(self, node: Structural, is_object: bool) -> list[str]:
        lines = ["if type(v) is not dict: return False"]
        lines += self._sized(node, "minProperties", "maxProperties")
        needed = set(node.schema.get("required") or ())
        known = dict(node.properties)
        if is_object:
            lines += self._head(node)
            known = {key: prop for key, prop in known.items() if key not in META_FIELDS}
        else:
            lines.append("n = 0")
        is_open = node.preserve and node.additional is None
        always = 0  # fields that are there, or this line is not reached
        for key, prop in known.items():
            if (key in needed or prop.default is not MISSING) and not prop.nullable:
                always += 1
                lines += [
                    f"x = v.get({key!r})",
                    f"if not ({self._expression(prop, 'x')}): return False",
                ]
            else:
                lines += self._optional(key, prop, key in needed, is_open)
        lines.append(f"n += {always}")
        lines += [
            f"if {key!r} not in v: return False" for key in sorted(needed) if key not in known
        ]
        lines += self._others(node, {*known, *(META_FIELDS if is_object else ())})
        return lines + [f"if not {part}: return False" for part in self._rest(node)]

    def _head(self, node: Structural) -> list[str]:
        """apiVersion, kind and metadata are kept whatever they are; the schema may ask something
        of them all the same."""
        count = " + ".join(f"({key!r} in v)" for key in sorted(META_FIELDS))
        lines = [f"n = {count}"]
        for key in sorted(META_FIELDS & node.properties.keys()):
            check = value_validation.compile_checks(node.properties[key].schema)
            test = self._name(_passes(check))
            lines.append(f"if {key!r} in v and not {test}(v[{key!r}]): return False")
        return lines

    def _optional(self, key: str, prop: Structural, is_needed: bool, is_open: bool) -> list[str]:
        expression = self._expression(prop, "x")
        if not prop.nullable:
            # A null is not counted: there is a key more than there are fields.
            lines = [f"x = v.get({key!r})", "if x is not None:", " n += 1"]
            lines.append(f" if not ({expression}): return False")
            return [*lines, f"elif {key!r} in v: return False"] if is_open else lines
        lines = [f"x = v.get({key!r}, MISSING)", "if x is not MISSING:", " n += 1"]
        lines.append(f" if x is not None and not ({expression}): return False")
        if is_needed or prop.default is not MISSING:
            lines.append("else: return False")
        return lines

    def _others(self, node: Structural, known: set[str]) -> list[str]:
        """Keys that are no fields."""
        additional = node.additional
        if isinstance(additional, Structural):
            if known:
                return ["if n != len(v): return False"]
            test = f"not ({self._expression(additional, 'x')})"
            test = f"x is not None and {test}" if additional.nullable else test
            return ["for x in v.values():", f" if {test}: return False"]
        if node.preserve and additional is None:
            names = self._name(frozenset(known))
            return [
                "if n != len(v):",
                " for k, x in v.items():",
                f"  if k not in {names} and not plain(x): return False",
            ]
        return ["if n != len(v): return False"]

    def _list(self, node: Structural) -> list[str]:
        lines = ["if type(v) is not list: return False"]
        lines += self._sized(node, "minItems", "maxItems")
        if node.preserve or node.items is None:
            lines.append("if v: return False")
            return lines
        expression = self._expression(node.items, "x")
        lines += ["for x in v:", f" if not ({expression}): return False"]
        if node.list_type in ("set", "map"):
            lines.append(f"if {self._repeated(node, node.items)}: return False")
        return lines + [f"if not {part}: return False" for part in self._rest(node)]

    def _repeated(self, node: Structural, items: Structural) -> str:
        if node.list_type == "set" and items.type == "string":
            return "len(v) > 1 and len(set(v)) < len(v)"
        keys = [items.properties.get(key) for key in node.map_keys]
        if node.list_type == "map" and all(
            key is not None and key.type == "string" for key in keys
        ):
            found = ", ".join(f"x.get({key!r})" for key in node.map_keys)
            return f"len(v) > 1 and len({{({found},) for x in v}}) < len(v)"
        return f"{self._name(list_types.has_duplicates(node))}(v)"

    def _rest(self, node: Structural) -> list[str]:
        return self._general(node.schema, _OWN[node.type], "v")

    def _sized(self, node: Structural, least: str, most: str) -> list[str]:
        lines = []
        if node.schema.get(least) is not None:
            lines.append(f"if len(v) < {self._name(node.schema[least])}: return False")
        if node.schema.get(most) is not None:
            lines.append(f"if len(v) > {self._name(node.schema[most])}: return False")
        return lines


def _bounds_fit(schema: Obj) -> bool:
    """Whether what is between the bounds is an integer of 64 bits."""
    least, most = schema.get("minimum"), schema.get("maximum")
    return least is not None and most is not None and least > -(2**62) and most < 2**62


def _passes(check: value_validation.Check) -> Test:
    return lambda value: not value_validation.check_value(check, value)


def _is_plain(value: Any) -> bool:
    """What no schema describes is kept, but a number without a fraction is printed without one."""
    kind = type(value)
    if kind is dict:
        return all(_is_plain(item) for item in value.values())
    if kind is list:
        return all(_is_plain(item) for item in value)
    return kind is not float
