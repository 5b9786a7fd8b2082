from sampan.scheduler.model.pod_terms import (
    NO_DEMANDS,
    carried_by,
    demands_of,
    selector_of,
    selects,
)


def pod(**spec):
    return {"metadata": {"namespace": "default", "labels": {"app": "web", "v": "2"}}, "spec": spec}


def term(**more):
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **more}


def required(*terms):
    return {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}


def test_no_selector_matches_nothing_and_an_empty_one_everything():
    assert not selects(selector_of(None), {"a": "b"})
    assert selects(selector_of({}), {"a": "b"})


def test_a_plain_pod_asks_nothing_of_others():
    assert demands_of(pod()) is NO_DEMANDS


def test_a_term_without_namespaces_means_the_pods_own():
    (found,) = demands_of(pod(affinity={"podAffinity": required(term())})).affinity
    assert found.selector.matches("default", {}, {"app": "web"})
    assert not found.selector.matches("other", {}, {"app": "web"})


def test_an_empty_namespace_selector_means_all():
    (found,) = demands_of(
        pod(affinity={"podAffinity": required(term(namespaceSelector={}))})
    ).affinity
    assert found.selector.matches("anywhere", {}, {"app": "web"})


def test_label_keys_are_in_the_selectors_of_terms_since_the_pod_was_created():
    later = pod(affinity={"podAntiAffinity": required(term(matchLabelKeys=["v"]))})
    (found,) = demands_of(later).anti_affinity
    assert found.selector.matches("default", {}, {"app": "web", "v": "1"})


def test_label_keys_of_a_spread_stand_for_the_pods_own_values():
    one = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["v"]}
    (found,) = demands_of(pod(topologySpreadConstraints=[one])).spread
    assert found.selector.matches("default", {}, {"v": "2"})
    assert not found.selector.matches("default", {}, {"v": "1"})


def test_what_is_carried_has_its_sign():
    weighted = {"weight": 7, "podAffinityTerm": term()}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
    made = pod(
        affinity={"podAffinity": {**required(term()), **preferred},
                  "podAntiAffinity": {**required(term()), **preferred}},
    )  # fmt: skip
    found = carried_by(demands_of(made))
    assert [(one.forbids, one.attracts, one.weight) for one in found] == [
        (True, False, 0), (False, True, 0), (False, False, 7), (False, False, -7),
    ]  # fmt: skip


def test_the_policies_of_a_spread_have_upstreams_defaults():
    constraint = {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}
    (found,) = demands_of(pod(topologySpreadConstraints=[constraint])).spread
    assert (found.hard, found.min_domains) == (True, 1)
    assert (found.honor_affinity, found.honor_taints) == (True, False)
    assert found.selector.labels is None
