from sampan.apiserver.registry.pod_label_keys import merge_label_keys
from sampan.apiserver.registry.pods import prepare_create


def pod(**spec):
    meta = {"name": "x", "namespace": "default", "labels": {"app": "web", "v": "2"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def term(**fields):
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}, **fields}


def selector(*expressions):
    return {
        "matchLabels": {"a": "b"},
        "matchExpressions": [
            {"key": key, "operator": operator, "values": [value]}
            for key, operator, value in expressions
        ],
    }


def test_keys_become_part_of_the_selectors_of_every_kind_of_term():
    keys = {"matchLabelKeys": ["v", "absent"], "mismatchLabelKeys": ["app"]}
    weighted = {"weight": 1, "podAffinityTerm": term(**keys)}
    made = pod(
        affinity={
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(**keys)]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]},
        },
        topologySpreadConstraints=[term(matchLabelKeys=["v"])],
    )
    merge_label_keys(made)
    affinity, both = made["spec"]["affinity"], selector(("v", "In", "2"), ("app", "NotIn", "web"))
    (near,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (far,) = affinity["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert near["labelSelector"] == far["podAffinityTerm"]["labelSelector"] == both
    (spread,) = made["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"] == selector(("v", "In", "2"))
    assert spread["matchLabelKeys"] == ["v"]


def test_a_selector_that_is_absent_stays_absent():
    made = pod(topologySpreadConstraints=[{"topologyKey": "zone", "matchLabelKeys": ["v"]}])
    merge_label_keys(made)
    assert "labelSelector" not in made["spec"]["topologySpreadConstraints"][0]


def test_another_name_of_the_same_pod_merges_nothing_again():
    made = pod(topologySpreadConstraints=[term(matchLabelKeys=["v"])])
    prepare_create(made)
    prepare_create(made)
    (spread,) = made["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"] == selector(("v", "In", "2"))
