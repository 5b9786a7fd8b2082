import orjson

from sampan.api.resources import DAEMON_SETS
from sampan.controllers.actions import Create, Patch
from sampan.controllers.workloads.revisions import (
    HASH,
    current_revision,
    data_of,
    surplus_revisions,
)


def owner(image):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"image": image}]}}
    return {
        "metadata": {"name": "agent", "namespace": "ns", "uid": "o"},
        "spec": {"template": template},
    }


def test_a_new_template_gets_a_new_revision():
    made = current_revision(DAEMON_SETS, owner("v1"), [])
    assert isinstance(made.action, Create)
    obj = made.action.obj
    assert obj["revision"] == 1
    assert obj["metadata"]["name"] == f"agent-{obj['metadata']['labels'][HASH]}"
    assert obj["data"]["spec"]["template"]["$patch"] == "replace"


def test_the_current_one_is_found_again():
    first = current_revision(DAEMON_SETS, owner("v1"), []).obj
    assert current_revision(DAEMON_SETS, owner("v1"), [first]).action is None


def test_going_back_gives_the_old_one_the_highest_number():
    first = current_revision(DAEMON_SETS, owner("v1"), []).obj
    second = current_revision(DAEMON_SETS, owner("v2"), [first]).obj
    assert second["revision"] == 2
    back = current_revision(DAEMON_SETS, owner("v1"), [first, second])
    assert isinstance(back.action, Patch)
    assert back.obj["revision"] == 3


def test_the_oldest_unused_ones_go():
    history = [
        {"metadata": {"name": f"r{n}", "namespace": "ns", "uid": str(n)}, "revision": n}
        for n in range(5)
    ]
    gone = surplus_revisions(history, {"r0"}, 2)
    assert [action.name for action in gone] == ["r1", "r2"]
    assert surplus_revisions(history, set(), None) == []


def test_data_has_its_keys_in_order():
    """[W3] Other programs compare the bytes."""
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}, "metadata": {"labels": {}}}
    text = orjson.dumps(data_of({"spec": {"template": template, "replicas": 1}}))
    assert text == (
        b'{"spec":{"template":{"$patch":"replace","metadata":{"labels":{}},'
        b'"spec":{"containers":[{"image":"i","name":"c"}]}}}}'
    )
