import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.objects import name_of
from sampan.client.indexer import Cache
from sampan.controllers.storage.volume_matching import (
    INDICES,
    NEEDS,
    WOKEN,
    best_match,
    claims_for,
    is_bound_to,
    mismatch,
    next_claims,
    volumes_for,
)


def claim(size="1Gi", **spec):
    return {
        "metadata": {"name": "data", "namespace": "default", "uid": "u1"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            **spec,
        },
    }


def volume(name="v", size="1Gi", phase="Available", **spec):
    return {
        "metadata": {"name": name},
        "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **spec},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("have", "want", "why"),
    [
        (volume(size="1Gi"), claim(size="2Gi"), "requested PV is too small"),
        (volume(storageClassName="a"), claim(), "storageClassName does not match"),
        (volume(volumeMode="Block"), claim(), "incompatible volumeMode"),
        (volume(accessModes=["ReadOnlyMany"]), claim(), "incompatible accessMode"),
        (
            volume(),
            claim(volumeAttributesClassName="gold"),
            "VolumeAttributesClassName does not match",
        ),
        (volume(), claim(), None),
    ],
)
def test_why_a_volume_does_not_suit(have, want, why):
    assert mismatch(have, want) == why


def test_a_volume_with_fewer_modes_is_preferred_to_a_smaller_one():
    plain = volume("plain", "5Gi")
    rich = volume("rich", "1Gi", accessModes=["ReadWriteOnce", "ReadWriteMany"])
    assert best_match([rich, plain], claim(), only_reserved=False) is plain


def test_a_reserved_volume_comes_before_all_others():
    reserved = volume("r", "9Gi", claimRef={"namespace": "default", "name": "data"})
    assert best_match([volume("v"), reserved], claim(), only_reserved=False) is reserved
    assert best_match([volume("v")], claim(), only_reserved=True) is None


def test_an_older_claim_of_the_same_name_is_another_claim():
    other = volume(claimRef={"namespace": "default", "name": "data", "uid": "u0"})
    assert not is_bound_to(other, claim())


SIZES = st.lists(st.integers(1, 20), max_size=8)


@given(SIZES, st.integers(1, 20))
def test_what_is_chosen_is_the_least_that_is_enough(sizes, wanted):
    volumes = [volume(f"v{number}", f"{size}Gi") for number, size in enumerate(sizes)]
    chosen = best_match(volumes, claim(f"{wanted}Gi"), only_reserved=False)
    enough = [size for size in sizes if size >= wanted]
    if not enough:
        assert chosen is None
    else:
        assert chosen["spec"]["capacity"]["storage"] == f"{min(enough)}Gi"


def free(name, size="1Gi", **spec):
    whole = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **spec}
    return {"metadata": {"name": name}, "spec": whole, "status": {"phase": "Available"}}


def asking(size="1Gi", **spec):
    requests = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": "c", "namespace": "n", "uid": "u"}, "spec": {**requests, **spec}}


def test_of_volumes_that_are_alike_one_is_looked_at():
    cache = Cache(INDICES)
    for number in range(100):
        cache.put(free(f"small-{number}"))
        cache.put(free(f"large-{number}", "2Gi"))
    found = volumes_for(cache, asking())
    assert len(found) == 2
    assert name_of(best_match(found.values(), asking(), only_reserved=False)) == "small-0"
    cache.put({**free("small-0"), "status": {"phase": "Bound"}})
    assert "small-1" in volumes_for(cache, asking())


def test_a_claim_that_selects_by_labels_is_shown_all_that_is_free():
    cache = Cache(INDICES)
    for number in range(10):
        cache.put(free(f"v-{number}"))
    assert len(volumes_for(cache, asking(selector={"matchLabels": {"a": "b"}}))) == 10


def test_what_a_claim_names_and_what_names_it_are_among_its_volumes():
    cache = Cache(INDICES)
    cache.put({**free("named"), "status": {"phase": "Bound"}})
    cache.put(free("reserved", claimRef={"namespace": "n", "name": "c"}))
    cache.put(free("another's", claimRef={"namespace": "n", "name": "d"}))
    assert set(volumes_for(cache, asking(volumeName="named"))) == {"named", "reserved"}


def waiting(name, size="1Gi", **spec):
    found = claim(size, **spec)
    return {**found, "metadata": {"name": name, "namespace": "default", "uid": name}}


def cache_of(indices, *objects):
    cache = Cache(indices)
    for obj in objects:
        cache.put(obj)
    return cache


def names(objects):
    return {name_of(obj) for obj in objects}


def test_a_free_volume_wakes_a_few_of_those_whom_it_suits():
    alike = [waiting(f"alike-{number}") for number in range(2 * WOKEN)]
    fast = {"matchLabels": {"disk": "fast"}}
    others = [
        waiting("large", "9Gi"),
        waiting("of-a-class", storageClassName="gold"),
        waiting("choosy", selector=fast),
        waiting("small", "1Mi"),
        waiting("named", volumeName="v"),
    ]
    claims = cache_of(NEEDS, *alike, *others)
    found = names(claims_for(claims, volume()))
    assert found == {*names(alike[:WOKEN]), "small"}
    quick = volume()
    quick["metadata"]["labels"] = {"disk": "fast"}
    assert "choosy" in names(claims_for(claims, quick))


def test_when_one_has_got_its_volume_the_next_have_their_turn():
    first, second = waiting("first"), waiting("second")
    bound = waiting("first", volumeName="v1")
    claims = cache_of(NEEDS, bound, second, waiting("large", "9Gi"))
    free, none = cache_of(INDICES, volume("v2")), cache_of(INDICES)
    assert names(next_claims(claims, free, first, bound)) == {"second"}
    assert names(next_claims(claims, free, first, None)) == {"second"}
    assert next_claims(claims, none, first, bound) == []
    assert next_claims(claims, free, first, first) == []
    assert next_claims(claims, cache_of(INDICES, volume("v2", "1Mi")), first, bound) == []


SIZES = st.sampled_from(["1Gi", "2Gi", "3Gi"])


@given(st.lists(SIZES, max_size=20), st.lists(SIZES, max_size=20))
def test_whoever_is_woken_takes_all_that_can_be_taken(wants, offers):
    """The wake-ups alone, one after the other, leave nobody waiting for what is free."""
    claims = cache_of(NEEDS, *(waiting(f"c{n}", size) for n, size in enumerate(wants)))
    volumes = cache_of(INDICES)
    turns = []

    def take_turns():
        while turns:
            key = f"default/{turns.pop(0)}"
            found = claims.get(key)
            if found is None or found["spec"].get("volumeName"):
                continue
            best = best_match(volumes_for(volumes, found).values(), found, only_reserved=False)
            if best is not None:
                volumes.remove(best)
                [(old, new, _)] = claims.put(waiting(name_of(found), volumeName=name_of(best)))
                turns.extend(sorted(names(next_claims(claims, volumes, old, new))))

    for n, size in enumerate(offers):
        free = volume(f"v{n}", size)
        volumes.put(free)
        turns.extend(sorted(names(claims_for(claims, free))))
        if n % 3 == 0:
            take_turns()
    take_turns()
    left = [item for item in claims.all() if not item["spec"].get("volumeName")]
    assert not any(mismatch(free, item) is None for free in volumes.all() for item in left)
