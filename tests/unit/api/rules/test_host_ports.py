"""Host ports [S6]."""

from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules.host_ports import ANY_ADDRESS, HostPort, host_ports


def container(name="c", requests=None, limits=None, **rest):
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **rest}


def pod(*containers, init=(), **spec):
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
    }


def test_host_ports_of_containers_and_sidecars_are_taken_on_the_node():
    ports = [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]
    side = container(
        restartPolicy="Always", ports=[{"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]
    )
    brief = container(ports=[{"hostPort": 99}])
    found = host_ports(pod(container(ports=ports), init=[side, brief]))
    assert found == (HostPort("TCP", 8080, "0.0.0.0"), HostPort("UDP", 53, "10.0.0.1"))


PORTS = st.builds(
    HostPort,
    st.sampled_from(["TCP", "UDP"]),
    st.sampled_from([80, 443]),
    st.sampled_from([ANY_ADDRESS, "10.0.0.1", "10.0.0.2"]),
)


@given(PORTS, PORTS)
def test_a_conflict_is_mutual_and_needs_the_same_protocol_and_port(one, other):
    assert one.conflicts_with(other) == other.conflicts_with(one)
    assert one.conflicts_with(one)
    if one.conflicts_with(other):
        assert (one.protocol, one.port) == (other.protocol, other.port)


def test_any_address_conflicts_with_every_address():
    everywhere, here = HostPort("TCP", 80, ANY_ADDRESS), HostPort("TCP", 80, "10.0.0.1")
    assert everywhere.conflicts_with(here)
    assert not here.conflicts_with(HostPort("TCP", 80, "10.0.0.2"))
