import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampan.api.objects import name_of
from sampan.client.indexer import Cache
from sampan.controllers.storage.volume_matching import (
    INDICES,
    best_match,
    is_bound_to,
    mismatch,
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
