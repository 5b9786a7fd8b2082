"""[R3] A scenario: which simulated pods behave how."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.configuration import BadConfiguration
from sampan.kubelet.simulated.scenario import API_VERSION, KIND, NOTHING, Scenario, scenario_of
from sampan.kubelet.simulated.script import PREFIX


def scenario(*rules):
    return scenario_of({"apiVersion": API_VERSION, "kind": KIND, "rules": list(rules)})


def script_of(found, namespace="default", name="web", labels=None, uid="1", **annotations):
    own = {PREFIX + key.replace("_", "-"): value for key, value in annotations.items()}
    whole = found.annotations(namespace, name, labels or {}, own, uid)
    return {key.removeprefix(PREFIX): value for key, value in whole.items()}


def test_without_rules_a_pod_keeps_its_very_own_annotations():
    own = {"a": "b"}
    assert NOTHING.annotations("default", "web", {}, own, "1") is own
    assert Scenario().annotations("default", "web", {}, own, "1") is own


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        ({}, True),
        ({"namespace": "default"}, True),
        ({"namespace": "other"}, False),
        ({"name": "we?"}, True),
        ({"name": "db-*"}, False),
        ({"selector": {"matchLabels": {"app": "web"}}}, True),
        ({"selector": {"matchLabels": {"app": "db"}}}, False),
        ({"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, True),
        ({"share": 0}, False),
        ({"share": 1}, True),
    ],
)
def test_a_rule_takes_the_pods_that_it_describes(condition, fits):
    found = scenario({**condition, "script": {"start-seconds": 2}})
    assert script_of(found, labels={"app": "web"}) == ({"start-seconds": "2"} if fits else {})


def test_a_later_rule_comes_first_and_the_pod_itself_before_all():
    found = scenario(
        {"script": {"start-seconds": 1, "exit-code": 1, "stop-seconds": 1}},
        {"script": {"start-seconds": 2, "exit-code": 2}},
    )
    assert script_of(found, start_seconds="3") == {
        "start-seconds": "3",
        "exit-code": "2",
        "stop-seconds": "1",
    }


@given(st.floats(0, 1), st.lists(st.uuids(), unique=True, min_size=300, max_size=300))
def test_a_share_takes_about_so_many_and_always_the_same(share, uids):
    found = scenario({"share": share, "script": {"exit-code": 1}})
    taken = [uid for uid in uids if script_of(found, uid=str(uid))]
    assert abs(len(taken) / 300 - share) < 0.2
    again = scenario({"share": share, "script": {"exit-code": 1}})
    assert taken == [uid for uid in uids if script_of(again, uid=str(uid))]


def test_two_rules_of_one_share_take_different_pods():
    half = {"share": 0.5, "script": {"exit-code": 1}}
    found = scenario(half, {"share": 0.5, "script": {"stop-seconds": 1}})
    taken = {frozenset(script_of(found, uid=str(number))) for number in range(100)}
    assert len(taken) == 4, "none, either, both"


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ([], "rules[0]: expected an object"),
        ({}, "rules[0].script: what such a pod does is missing"),
        ({"script": {"exit-code": 1}, "labels": {}}, "rules[0].labels: unknown field"),
        ({"script": {"exit-cod": 1}}, "rules[0].script: exit-cod: unknown"),
        ({"script": {"http.80a": "hello"}}, "rules[0].script: http.80a: '80a' is no port"),
        ({"script": {"usage-cpu": "lots"}}, "rules[0].script: usage-cpu: 'lots' is no quantity"),
        (
            {"script": {"usage-cpu.c": "= x"}},
            "rules[0].script: usage-cpu.c: 'x': undeclared reference to 'x' (in container '')",
        ),
        (
            {"script": {"metric.rps": "1; {a=b} x"}},
            "rules[0].script: metric.rps: 'x' is no quantity",
        ),
        ({"script": {"start-seconds": "x"}}, "rules[0].script: start-seconds: 'x' is no number"),
        ({"script": {"exit-code": 1}, "share": 7}, "rules[0].share: 7 is not between 0 and 1"),
        (
            {"script": {"exit-code": 1}, "selector": {"matchExpressions": [{"operator": "Is"}]}},
            'rules[0].selector: "Is" is not a valid label selector operator',
        ),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(rule, problem):
    with pytest.raises(BadConfiguration) as caught:
        scenario(rule)
    assert caught.value.problems == [problem]


def test_a_file_of_another_kind_is_refused():
    for written in (None, [], {"kind": KIND}, {"apiVersion": API_VERSION, "kind": KIND}):
        with pytest.raises(BadConfiguration):
            scenario_of(written)


def test_the_example_of_the_documentation_is_one():
    text = (Path(__file__).parents[4] / "docs" / "simulated.md").read_text()
    text = text.partition("## By scenario")[2]
    found = scenario_of(yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0]))
    web = script_of(found, "shop", "web-1", {"app": "web"}, uid="7")
    assert web["start-seconds"] == "0.5"
    assert len(found.rules) == 2
