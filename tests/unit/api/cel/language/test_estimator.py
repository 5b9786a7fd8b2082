"""What rules may cost at worst: upstream's own figures, with and without bounds in the schema."""

import pytest

from sampan.api.cel.language.estimator import estimated_cost
from sampan.api.cel.libraries.estimates import CALL_ESTIMATES
from sampan.api.cel.program import check_expression
from sampan.api.custom.cel_rules import environment_of
from sampan.api.custom.cel_sizes import extent_of
from sampan.api.custom.cel_types import StructuralObjects
from sampan.api.custom.structural import structural_of

NUMBER, TEXT, TRUTH = {"type": "number"}, {"type": "string"}, {"type": "boolean"}
EITHER = {"x-kubernetes-int-or-string": True}
LIMIT = 10_000_000


def formatted(name):
    return {**TEXT, "format": name}


def list_of(items, most):
    return {"type": "array", "items": items, **({} if most is None else {"maxItems": most})}


def map_of(values, most):
    bound = {} if most is None else {"maxProperties": most}
    return {"type": "object", "additionalProperties": values, **bound}


def text(most, **more):
    return {**TEXT, **more, **({} if most is None else {"maxLength": most})}


def worst(rule, schema):
    node = structural_of(schema)
    objects = StructuralObjects()
    kind = objects.type_of(node, "selfType")
    checked = check_expression(rule, environment_of(objects, kind, {}))
    return estimated_cost(checked, extent_of(node).size_at, CALL_ESTIMATES)


@pytest.mark.parametrize(
    ("items", "rule", "unbound", "most", "bound"),
    [
        (NUMBER, "self.all(x, true)", 4718591, 10, 32),
        (TEXT, "self.all(x, true)", 3145727, 20, 62),
        (TRUTH, "self.all(x, true)", 1887437, 5, 17),
        (list_of(NUMBER, None), "self.all(x, true)", 3145727, 100, 302),
        (NUMBER, "self[1] == 0.0", 2, 5000, 2),
        (TEXT, "self[1] == self[1]", 314577, 8, 314577),
        (NUMBER, "self.all(x, self.all(y, true))", None, 10, 352),
        (NUMBER, "self.all(x, self.all(y, self.all(z, true)))", None, 10, 3552),
        (NUMBER, "self.all(x, x == 0.0)", 6291454, 3 * 1024 * 2048, 25165826),
        (EITHER, "self.all(x, true)", 4718591, 10, 32),
        (EITHER, "self[0] == 5", 3, 10, 3),
        (TRUTH, "self[0] == false", 2, 25, 2),
        (list_of(NUMBER, None), "self[0][0] == -1.0", 3, 51, 3),
        (map_of(NUMBER, None), "self.all(x, x.y == 25.2)", 6291452, 12, 74),
        (map_of(NUMBER, None), "self[0].x > 2.0", 4, 3000, 4),
        (formatted("duration"), "self.all(x, true)", 2359295, 5, 17),
        (formatted("duration"), "self[0].getHours() == 2", 4, 525, 4),
        (formatted("date"), "self.all(x, true)", 725936, 15, 47),
        (formatted("date-time"), "self.all(x, true)", 428963, 25, 77),
        (formatted("date-time"), "self[2].getMinutes() == 45", 4, 99, 4),
    ],
)
def test_of_a_list(items, rule, unbound, most, bound):
    found = worst(rule, list_of(items, None))
    assert found == unbound if unbound is not None else found > LIMIT
    assert worst(rule, list_of(items, most)) == bound


@pytest.mark.parametrize(
    ("values", "rule", "unbound", "most", "bound"),
    [
        (NUMBER, "self.all(x, true)", 1348169, 10, 32),
        (TEXT, "self.all(x, true)", 1179647, 3, 11),
        (TRUTH, "self.all(x, true)", 943718, 100, 302),
        (NUMBER, 'self["x"] == 0.0', 2, 0, 2),
        (TEXT, "self.all(x, x.contains(self[x]))", 2752507, 10, 72),
        (formatted("duration"), "self.all(x, true)", 1048577, 5, 17),
        (formatted("date"), "self.all(x, true)", 524288, 10, 32),
        (formatted("date-time"), "self.all(x, true)", 349526, 25, 77),
        (EITHER, "self.all(x, true)", 1348169, 15, 47),
        ({"type": "integer"}, "oldSelf.size() == self.size()", 5, 10, 5),
        (formatted("date-time"), 'self["a"] == self["b"]', 8, 7, 8),
        (formatted("duration"), 'self["c"] == self["d"]', 8, 42, 8),
    ],
)
def test_of_a_map(values, rule, unbound, most, bound):
    assert worst(rule, map_of(values, None)) == unbound
    assert worst(rule, map_of(values, most)) == bound


@pytest.mark.parametrize(
    ("rule", "unbound", "most", "bound"),
    [
        ("self.contains('test')", 314574, 10, 5),
        ("self.startsWith('test')", 2, 15, 2),
        ("self.endsWith('test')", 2, 30, 2),
        ('size(self + "hello") > size("hello")', 314578, 4, 7),
        ('self.matches("x")', 314574, 50, 22),
        ('"".matches("(((((((((())))))))))[0-9]")', 7, 10, 7),
        ('self.matches("")', 1, 100, 1),
        ('self == "x"', 2, 0, 1),
        ("self.find('[0-9]+') == ''", 629147, 10, 11),
        ("self.lowerAscii() == 'lower!'", 314575, 10, 6),
    ],
)
def test_of_a_text(rule, unbound, most, bound):
    assert worst(rule, text(None)) == unbound
    assert worst(rule, text(most)) == bound


def test_of_texts_in_a_list():
    def cost(rule, most):
        return worst(rule, list_of(text(most), most))

    assert cost("self.join(' ') == 'aa bb'", None) == 329853068905
    assert cost("self.join(' ') == 'aa bb'", 10) == 43
    assert cost("self.isSorted() == true", None) == 329854432052
    assert cost("self.isSorted() == true", 10) == 52


def test_of_what_is_made_of_a_text():
    def fields(most):
        made = {"str": text(most), "before": text(2), "after": text(4), "by": text(most)}
        return {"type": "object", "properties": made}

    replaced = "self.str.replace(self.before, self.after) == 'does not matter'"
    assert worst(replaced, fields(None)) == 629154
    assert worst(replaced, fields(4)) == 12
    assert worst("self.str.split(self.by) == []", fields(None)) == 629160
    assert worst("self.str.split(self.by) == []", fields(10)) == 22


def test_the_longest_of_the_allowed_texts_is_the_bound():
    allowed = {"enum": ["A", "B", "C", "LongValue"]}
    assert worst("self.contains('A')", text(None, **allowed)) == 2
    assert worst("self.contains('A')", text(1000, **allowed)) == 401


@pytest.mark.parametrize(
    ("schema", "bound"),
    [
        ({"type": "object", "properties": {"a": TEXT}}, 1048575),
        ({"type": "object", "required": ["a"], "properties": {"a": TEXT}}, 314572),
        ({"type": "object", "required": ["a"], "properties": {"a": {**TEXT, "default": ""}}},
         1048575),
    ],
)  # fmt: skip
def test_as_many_objects_as_a_request_can_hold(schema, bound):
    assert worst("self.all(x, true)", list_of(schema, None)) == 3 * bound + 2


@pytest.mark.parametrize(
    ("rule", "cost"),
    [
        ("true ? self : self", 1),
        ("dyn(self) == self", 4),
        ("self.map(x, x * 2.0).size() == 3", 154),
        ("self.filter(x, x > 2.0).size() == 3", 164),
        ("self.exists_one(x, x > 2.0)", 43),
        ("self.exists(x, x > 2.0)", 62),
        ("[1, 2].all(x, x > 0)", 21),
        ("self.transformMap(i, x, x).size() == 1", 74),
        ("{'a': self} == {'a': self}", 63),
    ],
)
def test_of_macros_and_literals(rule, cost):
    assert worst(rule, list_of(NUMBER, 10)) == cost


def test_presence_is_free():
    schema = {"type": "object", "properties": {"x": NUMBER}}
    assert worst("has(self.x)", schema) == worst("self.x == 1.0", schema) - 1 == 1


def test_what_nobody_bounds_is_too_expensive():
    """The text of a number has no bound that anybody states."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "x": TEXT}}
    assert worst("'bad ' + string(self.n) == ''", schema) > 100 * LIMIT
    assert worst("'bad %d'.format([self.n]) == ''", schema) < 20
    assert worst("self.?x.optMap(v, v + v).orValue('') == ''", schema) > 100 * LIMIT
