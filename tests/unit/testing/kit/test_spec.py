import pytest

from sampan.testing.kit.spec import CannotStart, Spec, spec_of


def test_without_choices_it_is_one_node_in_memory():
    assert spec_of({}) == Spec(1, "*", True, "memory", "real")


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"node": 3}, "no 'node'"),
        ({"nodes": "3"}, "nodes='3'"),
        ({"nodes": -1}, "nodes=-1"),
        ({"store": "etcd"}, "memory, sqlite"),
        ({"clock": "slow"}, "real, virtual"),
        ({"controllers": ["*"]}, "a text"),
        ({"scheduler": 1}, "True or False"),
        ({"ingress": "yes"}, "True or False"),
        ({"store": "sqlite", "clock": "virtual"}, "thread"),
        ({"real": 1}, "True or False"),
        ({"real": True, "clock": "virtual"}, "real time"),
        ({"real": True, "nodes": 2}, "its one node is this machine"),
        ({"real": True, "runtime": "docker"}, "cri, native"),
        ({"runtime": "native"}, "is for real=True"),
        ({"version": 1.36}, "a text such as '1.36'"),
        ({"feature_gates": ["A"]}, "a text such as 'A=true"),
    ],
)
def test_what_means_nothing_is_refused_in_one_sentence(chosen, says):
    with pytest.raises(CannotStart, match=says) as refused:
        spec_of(chosen)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "chosen",
    [
        {"nodes": 3, "controllers": "*,-job", "clock": "virtual"},
        {"real": True, "runtime": "cri"},
        {
            "version": "1.36",
            "feature_gates": {"A": True, "B": False},
            "runtime_config": "x/v1=true",
        },
    ],
)
def test_it_survives_the_way_to_another_process(chosen):
    spec = spec_of(chosen)
    assert spec_of(spec.as_dict()) == spec


def test_gates_are_a_text_or_a_dict():
    """[V2]"""
    assert spec_of({"feature_gates": {"A": True, "B": False}}).feature_gates == "A=true,B=false"
    assert spec_of({"feature_gates": "A=true"}).feature_gates == "A=true"
