import pytest

from sampan.scheduler.model.requests import MOST, HostPort, amounts, usage_of

MI = 1024 * 1024


def container(name="c", *, restart=None, ports=(), **requests):
    made = {"name": name, "resources": {"requests": requests}, "ports": list(ports)}
    if restart:
        made["restartPolicy"] = restart
    return made


def pod(*containers, init=(), status=None, **spec):
    return {
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
        "status": status or {},
    }


def requests(made):
    return dict(usage_of(made).requests)


def test_containers_are_added_up():
    made = pod(container(cpu="250m", memory="64Mi"), container("d", cpu="1"))
    assert requests(made) == {"cpu": 1250, "memory": 64 * MI}


def test_init_containers_count_by_the_largest_one_alone():
    made = pod(container(cpu="1"), init=[container("i", cpu="3"), container("j", cpu="2")])
    assert requests(made) == {"cpu": 3000}


def test_sidecars_run_beside_later_init_containers_and_the_main_ones():
    init = [
        container("first", cpu="2"),
        container("sidecar", restart="Always", cpu="1"),
        container("second", cpu="2500m"),
    ]
    assert requests(pod(container(cpu="1"), init=init)) == {"cpu": 3500}
    assert requests(pod(container(cpu="4"), init=init)) == {"cpu": 5000}


def test_pod_level_resources_replace_the_sum_of_what_they_name():
    made = pod(
        container(cpu="1", memory="1Mi"),
        resources={"requests": {"cpu": "3", "hugepages-2Mi": "4Mi", "example.com/gpu": "1"}},
    )
    assert requests(made) == {"cpu": 3000, "memory": MI, "hugepages-2Mi": 4 * MI}


def test_overhead_is_added_at_the_end():
    made = pod(container(cpu="1"), overhead={"cpu": "100m", "memory": "10Mi"})
    assert requests(made) == {"cpu": 1100, "memory": 10 * MI}


def test_zeros_are_left_out_and_extended_resources_kept():
    made = pod(container(**{"cpu": "0", "example.com/gpu": "2"}))
    assert requests(made) == {"example.com/gpu": 2}


def test_containers_without_requests_count_by_default_in_scores_only():
    usage = usage_of(pod(container(), container("d", cpu="1"), container("e", cpu="0")))
    assert dict(usage.requests) == {"cpu": 1000}
    assert usage.scored_cpu == 100 + 1000 + 0
    assert usage.scored_memory == 3 * 200 * MI


def resized(reason=""):
    conditions = [{"type": "PodResizePending", "reason": reason}] if reason else []
    statuses = [{"name": "c", "allocatedResources": {"cpu": "2"}, "resources": {}}]
    return pod(container(cpu="1"), status={"containerStatuses": statuses, "conditions": conditions})


def test_while_a_container_shrinks_what_its_node_holds_counts():
    assert requests(resized()) == {"cpu": 2000}


def test_an_infeasible_growth_does_not_count():
    made = resized("Infeasible")
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"
    assert requests(made) == {"cpu": 2000}


def test_host_ports_of_containers_and_sidecars_are_held():
    port = {"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP"}
    made = pod(
        container(ports=[{"containerPort": 80}, {"hostPort": 443}]),
        init=[container("i", ports=[port]), container("s", restart="Always", ports=[port])],
    )
    assert usage_of(made).ports == (
        HostPort("TCP", 443, "0.0.0.0"),
        HostPort("UDP", 8080, "10.0.0.1"),
    )


@pytest.mark.parametrize("written", ["nonsense", "", None, {}, [], "-5", True])
def test_nonsense_quantities_count_as_nothing(written):
    assert amounts({"memory": written}).get("memory", 0) in (0, 1)


def test_huge_quantities_are_cut_off():
    assert amounts({"memory": "999Ei", "cpu": 10**30}) == {"memory": MOST, "cpu": MOST}


def test_what_else_a_pod_of_the_same_template_has_counts():
    """Pods of one template share what their containers ask for, as one object."""
    shared = container(cpu="1")
    port = {"containerPort": 80, "hostPort": 80}
    assert requests(pod(shared)) == {"cpu": 1000}
    assert requests(pod(shared, overhead={"cpu": "1"})) == {"cpu": 2000}
    assert requests(pod(shared, resources={"requests": {"cpu": "5"}})) == {"cpu": 5000}
    assert requests(pod(shared, init=[container(cpu="3")])) == {"cpu": 3000}
    assert requests(pod(shared, shared)) == {"cpu": 2000}
    assert usage_of(pod({**shared, "ports": [port]})).ports
    held = {"name": "c", "resources": {"requests": {"cpu": "4"}}}
    assert requests(pod(shared, status={"containerStatuses": [held]})) == {"cpu": 4000}
    assert usage_of(pod(shared)) is usage_of(pod({**shared, "name": "other"}))
