from hypothesis import given
from hypothesis import strategies as st

from sampan.controllers.access.root_ca import plan
from sampan.controllers.actions import NOTHING, Create, Update

ACTIVE = {"metadata": {"name": "ns"}}
TERMINATING = {"metadata": {"name": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def test_a_namespace_without_the_bundle_gets_it():
    [action] = plan(ACTIVE, None, "PEM").actions
    assert isinstance(action, Create)
    assert action.obj["data"] == {"ca.crt": "PEM"}
    assert action.obj["metadata"]["name"] == "kube-root-ca.crt"


def test_a_terminating_namespace_gets_none():
    assert plan(TERMINATING, None, "PEM") is NOTHING


TEXT = st.text("abc", max_size=3)
CONFIG_MAPS = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({}, optional={"annotations": st.dictionaries(TEXT, TEXT)})},
    optional={"data": st.dictionaries(st.sampled_from(["ca.crt", "x"]), TEXT)},
)


@given(CONFIG_MAPS)
def test_whatever_it_became_one_update_puts_it_right(config_map):
    [action] = plan(ACTIVE, config_map, "PEM").actions
    assert isinstance(action, Update)
    assert action.obj["data"] == {"ca.crt": "PEM"}
    assert plan(ACTIVE, action.obj, "PEM") is NOTHING
