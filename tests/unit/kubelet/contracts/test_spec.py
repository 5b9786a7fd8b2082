from dataclasses import replace

from sampan.kubelet.contracts import spec
from sampan.kubelet.contracts.runtime import ContainerState, Role
from tests.support.processor_time import quickest_seconds
from tests.support.worlds.observed_pods import container, exited_container, observed_pod
from tests.support.worlds.simulated_node import pod_named


def test_containers_are_found_with_their_role():
    pod = pod_named(
        "web",
        initContainers=[{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
        ephemeralContainers=[{"name": "e"}],
    )
    roles = {name: spec.find_container(pod, name)[0] for name in ("i", "s", "main", "e")}
    assert roles == {
        "i": Role.INIT,
        "s": Role.SIDECAR,
        "main": Role.NORMAL,
        "e": Role.EPHEMERAL,
    }
    assert spec.field_path(pod, "s") == "spec.initContainers{s}"
    assert spec.field_path(pod, "e") == "spec.ephemeralContainers{e}"
    assert spec.field_path(pod, "nobody") == ""


def test_rules_of_a_container_may_restart_what_the_policy_would_not():
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    one = {"name": "main", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    pod = pod_named("web", containers=[one])
    assert spec.restarts_after_exit(pod, one, 42)
    assert not spec.restarts_after_exit(pod, one, 1)


def test_what_runs_is_not_restarted_and_what_never_started_is():
    pod = pod_named("web", restartPolicy="Never")
    one = pod["spec"]["containers"][0]
    assert not spec.should_restart(pod, one, container())
    assert spec.should_restart(pod, one, container(state=ContainerState.CREATED))
    assert spec.should_restart(pod, one, None)
    assert not spec.should_restart(pod, one, exited_container())


def test_the_grace_is_what_deletion_asked_for_else_what_the_spec_says():
    pod = pod_named("web", terminationGracePeriodSeconds=7)
    assert spec.grace_seconds_of(pod) == 7
    pod["metadata"]["deletionGracePeriodSeconds"] = 0
    assert spec.grace_seconds_of(pod) == 0
    assert spec.grace_seconds_of(pod_named("web")) == 30


def test_the_hash_follows_name_and_image_only():
    one = {"name": "a", "image": "b"}
    assert spec.container_hash(one) == spec.container_hash({**one, "env": []})
    assert spec.container_hash(one) != spec.container_hash({**one, "image": "c"})


def test_one_of_thousands_of_containers_is_found_without_looking_at_each():
    named = [{"name": f"c{number}"} for number in range(3000)]
    pod = {"spec": {"containers": named, "initContainers": [{"name": "init"}]}}
    seen = tuple(replace(container(), name=f"c{n}", id=f"i{n}") for n in range(3000))
    observed = observed_pod(*seen)
    statuses = [{"name": f"c{number}", "ready": True} for number in range(3000)]

    def looked_for():
        for number in range(3000):
            assert spec.find_container(pod, f"c{number}") == (Role.NORMAL, named[number])
            assert spec.latest(observed, f"c{number}") is seen[number]
            assert spec.status_named(statuses, f"c{number}") is statuses[number]

    assert quickest_seconds(looked_for) < 0.1
    assert spec.find_container(pod, "init") == (Role.INIT, {"name": "init"})
    assert spec.find_container(pod, "none") is None
    assert spec.latest(observed, "none") is None
    assert spec.status_named(statuses, "none") == {}
    assert spec.is_long(pod)
