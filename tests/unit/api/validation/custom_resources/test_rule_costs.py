"""Rules that may be too expensive are refused with the schema that allows it."""

from sampan.api.validation.custom_resources.rule_expressions import validate_rules

HELP = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)
EXPENSIVE = "self.contains('k')"


def refusals(schema, **how):
    errors = []
    validate_rules(schema, "schema", errors, **how)
    return [(error.field, error.message) for error in errors]


def with_rules(schema, *rules):
    return {**schema, "x-kubernetes-validations": [{"rule": rule} for rule in rules]}


def inside(**properties):
    return {"type": "object", "properties": properties}


def text(most=None):
    return {"type": "string", **({} if most is None else {"maxLength": most})}


def test_a_rule_within_the_limit_is_taken():
    items = with_rules(text(100), EXPENSIVE)
    assert refusals(inside(f={"type": "array", "maxItems": 1000, "items": items})) == []


def test_a_bound_above_a_value_says_how_often_it_is_there():
    items = with_rules(text(10_000), EXPENSIVE)  # 4001 each
    found = refusals(inside(f={"type": "array", "maxItems": 3000, "items": items}))
    rule = "schema.properties[f].items.x-kubernetes-validations[0].rule"
    assert found == [
        (rule, f"Forbidden: estimated rule cost exceeds budget by factor of 1.200300x {HELP}")
    ]
    found = refusals(inside(f={"type": "array", "maxItems": 6000, "items": items}))
    assert "by factor of 2.4x" in found[0][1]


def test_an_unbound_list_above_counts_by_what_fits_into_a_request():
    items = with_rules({"type": "integer"}, "self > 1")
    bound = inside(f={"type": "array", "items": items})
    assert refusals(bound) == []  # 1572864 times 2
    items = with_rules({"type": "integer"}, "[1, 2, 3].exists(x, x == self)")
    found = refusals(inside(f={"type": "array", "items": items}))
    assert "estimated rule cost exceeds budget by factor of 4.6x" in found[0][1]


def test_the_four_most_expensive_rules_are_blamed_for_the_total():
    fields = {
        f"f{at}": {
            "type": "array", "maxItems": 2000 + at, "items": with_rules(text(10_000), EXPENSIVE)
        }
        for at in range(14)
    }  # fmt: skip
    found = refusals(inside(**fields))
    share = (
        "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire "
        "OpenAPIv3 schema"
    )
    blamed = [path for path, message in found if message == share]
    assert blamed == [
        f"schema.properties[f{at}].items.x-kubernetes-validations[0].rule"
        for at in (13, 12, 11, 10)
    ]
    assert found[-1] == (
        "schema",
        "Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema "
        f"exceeds budget by factor of 1.123921x {HELP}",
    )


def test_a_schema_that_was_there_before_is_not_held_to_the_limit_of_a_rule():
    items = with_rules(text(10_000), EXPENSIVE)
    schema = inside(f={"type": "array", "maxItems": 3000, "items": items})
    assert refusals(schema, is_known=True) == []
    assert len(refusals(schema)) == 1


def test_a_message_is_paid_for_once_however_often_its_rule_runs():
    rule = {"rule": "self != 'x'", "messageExpression": "self + ' is x'"}
    items = {**text(100), "x-kubernetes-validations": [rule]}
    assert refusals(inside(f={"type": "array", "maxItems": 100_000, "items": items})) == []
    rule["messageExpression"] = "'n ' + string(size(self))"
    found = refusals(inside(f={"type": "array", "maxItems": 10, "items": items}))
    path = "schema.properties[f].items.x-kubernetes-validations[0].messageExpression"
    assert found[0][0] == path
    assert (
        "estimated messageExpression cost exceeds budget by factor of more than 100x"
        in (found[0][1])
    )


def test_below_an_atomic_map_there_is_no_old_value():
    part = with_rules({"type": "integer"}, "self >= oldSelf")
    atomic = {**inside(n=part), "x-kubernetes-map-type": "atomic"}
    found = refusals(inside(f=atomic))
    why = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
    assert f"{why} schema.properties[f]" in found[0][1]
    assert refusals(inside(f=inside(n=part))) == []
