import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.rules.aspects import NODE, OTHER, PHASE, looks_at
from sampan.client.indexer import Cache, by_controller_uid, by_namespace, by_node_name


def pod(name, uid="u", revision=1, node="", owners=()):
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": uid,
            "resourceVersion": str(revision),
            "ownerReferences": [{"uid": owner, "controller": True} for owner in owners],
        },
        "spec": {"nodeName": node},
    }


def test_an_object_is_found_by_key_and_by_index():
    cache = Cache({"namespace": by_namespace, "node": by_node_name})
    cache.put(pod("a", node="n1"))
    cache.put(pod("b"))
    assert cache.get("ns/a") == pod("a", node="n1")
    assert len(cache.by("namespace", "ns")) == 2
    assert cache.by("node", "n1") == [pod("a", node="n1")]
    assert cache.by("node", "n2") == []


def test_an_index_follows_a_change():
    cache = Cache({"node": by_node_name})
    cache.put(pod("a", node="n1"))
    cache.put(pod("a", node="n2", revision=2))
    assert cache.by("node", "n1") == []
    assert list(cache.index_values("node")) == ["n2"]


def test_an_index_added_late_knows_what_is_there():
    cache = Cache()
    cache.put(pod("a", owners=("o1", "o2")))
    cache.add_index("owner", by_controller_uid)
    assert cache.by("owner", "o2") == [pod("a", owners=("o1", "o2"))]


def test_the_same_name_with_another_uid_is_a_deletion_and_a_creation():
    cache = Cache()
    old, new = pod("a", uid="1"), pod("a", uid="2")
    cache.put(old)
    assert [change[:2] for change in cache.put(new)] == [(old, None), (None, new)]


def test_replace_reports_only_what_differs():
    cache = Cache()
    same, changed, gone = pod("same"), pod("changed"), pod("gone")
    for one in (same, changed, gone):
        cache.put(one)
    changed_now, new = pod("changed", revision=2), pod("new")
    assert [change[:2] for change in cache.replace([same, changed_now, new])] == [
        (gone, None),
        (changed, changed_now),
        (None, new),
    ]


def test_the_deletion_of_an_unknown_object_is_no_change():
    assert Cache().remove(pod("a")) == []


PODS = st.builds(
    pod,
    st.sampled_from("abc"),
    st.sampled_from("12"),
    st.integers(1, 3),
    st.sampled_from(["", "n1", "n2"]),
    st.lists(st.sampled_from("xy"), max_size=2),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), PODS),
        st.tuples(st.just("remove"), PODS),
        st.tuples(st.just("replace"), st.lists(PODS, max_size=3)),
    ),
    max_size=12,
)


@pytest.mark.slow
@given(STEPS)
def test_indices_always_agree_with_the_objects(steps):
    cache = Cache({"node": by_node_name, "owner": by_controller_uid})
    for verb, value in steps:
        getattr(cache, verb)(value)
        fresh = Cache({"node": by_node_name, "owner": by_controller_uid})
        fresh.replace(cache.all())
        for index in ("node", "owner"):
            assert set(cache.index_values(index)) == set(fresh.index_values(index))
            for at in fresh.index_values(index):
                assert {o["metadata"]["name"] for o in cache.by(index, at)} == {
                    o["metadata"]["name"] for o in fresh.by(index, at)
                }


def by_colour(obj):
    return obj["team"], obj["colour"]


def named(name, uid, colour):
    meta = {"name": name, "uid": uid, "resourceVersion": uid}
    return {"metadata": meta, "team": "a", "colour": colour}


def test_a_cache_counts_what_it_has_also_after_a_whole_new_list():
    cache = Cache()
    cache.put(named("early", "1", "red"))
    cache.add_tally("colours", by_colour)
    cache.put(named("late", "2", "red"))
    assert cache.tally("colours", "a") == {"red": 2}
    cache.replace([named("late", "3", "blue"), named("new", "4", "blue")])
    assert cache.tally("colours", "a") == {"blue": 2}
    cache.remove(named("new", "4", "red"))  # its last state need not be the one that was counted
    assert cache.tally("colours", "a") == {"blue": 1}
    cache.add_tally("colours", by_colour)  # another controller asks for the same
    assert cache.tally("colours", "a") == {"blue": 1}


def test_a_cache_that_compares_asks_no_index_about_what_it_does_not_look_at():
    asked = []

    @looks_at(NODE)
    def by_node(obj):
        asked.append(obj["spec"]["nodeName"])
        return (obj["spec"]["nodeName"],)

    cache = Cache({"node": by_node})
    cache.compare()
    cache.put(pod("a", node="n1"))
    ran = {**pod("a", node="n1", revision=2), "status": {"phase": "Running"}}
    [(_, _, touches)] = cache.put(ran)
    assert touches == PHASE | OTHER
    assert asked == ["n1"]
    assert cache.by("node", "n1") == [ran]  # the newest state all the same
    cache.put(pod("a", node="n2", revision=3))
    assert (cache.by("node", "n1"), cache.count("node", "n2")) == ([], 1)
