from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampan.scheduler.devices.allocate import MOST_STEPS, CannotAllocate, Search
from sampan.scheduler.devices.device_pools import Pools
from sampan.scheduler.devices.devices import claim_of, class_of, slice_of
from tests.support.generators.device_objects import (
    DRIVER,
    device,
    device_class,
    device_request,
    resource_claim,
    resource_slice,
)

_devices = st.lists(
    st.fixed_dictionaries(
        {"taints": st.sampled_from(((), (), ("broken",)))},
        optional={"model": st.sampled_from("ab"), "link": st.sampled_from("xy")},
    ),
    max_size=4,
)
_models = st.sampled_from((None, "a", "b"))


def _asking(model, count, everything, admin, tolerant):
    made = {"adminAccess": True} if admin else {}
    if everything:
        made["allocationMode"] = "All"
    elif count:
        made["count"] = count
    if tolerant:
        made["tolerations"] = [{"key": "broken", "operator": "Exists"}]
    return model, made


_wishes = st.builds(
    _asking,
    _models,
    st.sampled_from((0, 1, 2)),
    st.sampled_from((False, False, True)),
    st.sampled_from((False, False, False, True)),
    st.booleans(),
)
_requests = st.lists(
    st.one_of(st.lists(_wishes, min_size=2, max_size=2), _wishes), min_size=1, max_size=2
)
_claims = st.lists(
    st.tuples(_requests, st.sampled_from((None, "all", "r0"))), min_size=1, max_size=2
)


def is_model(model):
    return f'device.attributes["{DRIVER}"].?model.orValue("") == "{model}"'


def matching(one, expression):
    """What the selectors of this test say, without the language."""
    if expression == "true":
        return True
    [model] = [model for model in "ab" if expression == is_model(model)]
    return one.attributes.get(f"{DRIVER}/model") == ("string", model)


def written(requests):
    made = []
    for number, one in enumerate(requests):
        wishes = one if isinstance(one, list) else [one]
        asked = [
            device_request(
                f"s{at}" if isinstance(one, list) else "",
                *([is_model(model)] if model else []),
                **fields,
            )
            for at, (model, fields) in enumerate(wishes)
        ]
        kind = {"firstAvailable": asked} if isinstance(one, list) else {"exactly": asked[0]}
        made.append({"name": f"r{number}", **kind})
    return made


def is_good(claims, picked, in_use):
    """Everything that must hold of an allocation, read off it."""
    seen = {}
    for number, (claim, devices) in enumerate(zip(claims, picked, strict=True)):
        for one in devices:
            there = seen.setdefault(one.device.id, [])
            if one.request.admin:
                if number in there:
                    return False
            elif there or one.device.id in in_use:
                return False
            there.append(number)
            if one.device.taints and not one.request.tolerations:
                return False
            if not all(matching(one.device, text) for text in one.request.selectors):
                return False
        for constraint in claim.constraints:
            those = [one for one in devices if constraint.concerns(one.request.name)]
            values = {one.device.attributes.get(constraint.attribute) for one in those}
            if those and (None in values or len(values) > 1):
                return False
    return True


def ways(claims, there):
    """Every way to deal devices out, alternatives in their order, good or not."""
    slots = [(number, those) for number, claim in enumerate(claims) for those in claim.requests]
    for chosen in product(*(those for _, those in slots)):
        for dealt in product(*(_dealt(request, there) for request in chosen)):
            picked = [[] for _ in claims]
            for (number, _), request, devices in zip(slots, chosen, dealt, strict=True):
                picked[number] += [_Pair(request, one) for one in devices]
            yield chosen, picked


class _Pair:
    def __init__(self, request, one):
        self.request, self.device = request, one


def _dealt(request, there):
    if request.count:
        return list(permutations(there, request.count))
    everything = [one for one in there if all(matching(one, text) for text in request.selectors)]
    return [tuple(everything)] if everything else []


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(_devices, _claims, st.sets(st.integers(0, 3), max_size=1))
def test_devices_are_found_exactly_where_there_is_a_way(offered, asked, used):
    """[S4] Against every way to deal them out."""
    slice_ = slice_of(
        resource_slice(
            "s", [device(f"d{at}", **one) for at, one in enumerate(offered)], nodeName="n"
        )
    )
    claims = []
    for number, (requests, constraint) in enumerate(asked):
        constraints = []
        if constraint:
            some = {"requests": [constraint]} if constraint != "all" else {}
            constraints = [{"matchAttribute": f"{DRIVER}/link", **some}]
        claims.append(claim_of(resource_claim(f"c{number}", written(requests), constraints)))
    in_use = {(DRIVER, "s", f"d{at}") for at in used}
    classes = {"gpu": class_of(device_class("gpu", "true"))}
    search = Search(claims, classes, in_use, matching)
    found = search.allocated(Pools([slice_]).reached("n", ()))
    good = [way for way in ways(claims, slice_.devices) if is_good(claims, way[1], in_use)]
    assert (found is not None) == bool(good)
    if found is None:
        return
    assert is_good(claims, found, in_use)
    for claim, devices in zip(claims, found, strict=True):
        for those in claim.requests:
            mine = [one for one in devices if one.request in those]
            assert len({one.request.name for one in mine}) == 1
            request = mine[0].request
            everything = [
                one
                for one in slice_.devices
                if all(matching(one, text) for text in request.selectors)
            ]
            assert len(mine) == (request.count or len(everything))
    # Of the first request, the first alternative for which there is a way at all.
    first = claims[0].requests[0]
    best = min(first.index(chosen[0]) for chosen, _ in good)
    assert next(one.request for one in found[0] if one.request in first) == first[best]


def search_for(*requests):
    claim = claim_of(resource_claim("c", requests))
    classes = {"gpu": class_of(device_class())}
    return Search([claim], classes, set(), matching)


def test_only_the_newest_generation_of_a_pool_counts_and_only_when_it_is_whole():
    old = slice_of(resource_slice("a", [device("d0"), device("d1")], pool="p", nodeName="n"))
    new = slice_of(
        resource_slice("b", [device("d0")], pool="p", generation=2, count=2, nodeName="n")
    )
    asked = search_for({"name": "r", "exactly": device_request()})
    assert asked.allocated(Pools([old]).reached("n", ())) is not None
    assert asked.allocated(Pools([old, new]).reached("n", ())) is None
    rest = slice_of(
        resource_slice("c", [device("d1")], pool="p", generation=2, count=2, nodeName="n")
    )
    [[picked]] = asked.allocated(Pools([old, new, rest]).reached("n", ()))
    assert picked.device.id == (DRIVER, "p", "d0")


def test_all_devices_of_a_pool_that_is_not_whole_cannot_be_had():
    some = slice_of(resource_slice("b", [device("d0")], pool="p", count=2, nodeName="n"))
    twice = slice_of(resource_slice("b", [device("d0"), device("d0")], pool="p", nodeName="n"))
    asked = search_for({"name": "r", "exactly": device_request(allocationMode="All")})
    with pytest.raises(CannotAllocate, match=r"resource pool .*/p is currently being updated"):
        asked.allocated(Pools([some]).reached("n", ()))
    with pytest.raises(CannotAllocate, match="is invalid"):
        asked.allocated(Pools([twice]).reached("n", ()))


def test_a_search_without_end_is_given_up():
    many = [device(f"d{at}", model="a") for at in range(12)]
    there = Pools([slice_of(resource_slice("s", many, nodeName="n"))]).reached("n", ())
    asked = search_for(
        {"name": "r", "exactly": device_request(count=11)},
        {"name": "s", "exactly": device_request("", is_model("b"))},
    )
    with pytest.raises(CannotAllocate, match="timed out trying to allocate devices"):
        asked.allocated(there)
    assert MOST_STEPS < 10**6
