import pytest

from sampan.api.defaults import apply_defaults
from sampan.api.objects import copy_of, name_of, time_text
from sampan.apiserver.flow.objects import LEVELS, SCHEMAS, flow_objects
from sampan.apiserver.flow.upkeep import next_repair

NOW = 1_700_000_000.0


def stored():
    """What a server has that was started a moment ago: by kind and name."""
    found = {SCHEMAS: {}, LEVELS: {}}
    for resource, obj in flow_objects(NOW - 60):
        apply_defaults(resource, obj)
        found[resource][name_of(obj)] = obj
    return found


def repair_of(found):
    return next_repair(list(found[SCHEMAS].values()), list(found[LEVELS].values()), NOW)


def repaired(found):
    """Until nothing is left to do; what was written."""
    written = []
    for _ in range(50):
        repair = repair_of(found)
        if repair is None:
            return written
        written.append((name_of(repair.obj), repair.is_new))
        found[repair.resource][name_of(repair.obj)] = copy_of(repair.obj)
    raise AssertionError(f"it does not come to an end: {written}")


def test_a_new_server_has_nothing_to_repair():
    assert repair_of(stored()) is None


def test_what_was_deleted_comes_back_and_what_led_there_is_not_dangling():
    found = stored()
    del found[SCHEMAS]["exempt"], found[LEVELS]["workload-low"]
    assert repaired(found) == [("workload-low", True), ("exempt", True)]
    assert found[SCHEMAS] == stored()[SCHEMAS] | {"exempt": found[SCHEMAS]["exempt"]}


@pytest.mark.parametrize(("annotation", "written"), [("true", [("system", False)]), ("false", [])])
def test_a_suggested_one_is_put_right_unless_it_says_no(annotation, written):
    found = stored()
    level = found[LEVELS]["system"]
    level["spec"]["limited"]["nominalConcurrencyShares"] = 1
    level["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": annotation}
    assert repaired(found) == written


def test_the_seats_of_who_is_exempt_may_be_chosen():
    found = stored()
    found[LEVELS]["exempt"]["spec"]["exempt"]["nominalConcurrencyShares"] = 7
    assert repair_of(found) is None


def test_a_schema_says_whether_its_level_is_there():
    found = stored()
    spec = {"priorityLevelConfiguration": {"name": "mine"}, "matchingPrecedence": 9}
    other = {"type": "Mine", "status": "True"}
    found[SCHEMAS]["s"] = {
        "metadata": {"name": "s"}, "spec": spec, "status": {"conditions": [other]},
    }  # fmt: skip
    assert repaired(found) == [("s", False)]
    assert found[SCHEMAS]["s"]["status"]["conditions"] == [
        other,
        {
            "type": "Dangling",
            "status": "True",
            "reason": "NotFound",
            "message": "This FlowSchema references the PriorityLevelConfiguration object named "
            '"mine" but there is no such object',
            "lastTransitionTime": time_text(NOW),
        },
    ]
    found[LEVELS]["mine"] = {"metadata": {"name": "mine"}, "spec": {"type": "Limited"}}
    assert repaired(found) == [("s", False)]
    said = found[SCHEMAS]["s"]["status"]["conditions"][1]
    assert (said["status"], said["reason"]) == ("False", "Found")
    assert said["message"].endswith('"mine" and it exists')
