from hypothesis import given
from hypothesis import strategies as st

from sampan.scheduler.devices.devices import Devices, held_by
from tests.support.generators.device_objects import DRIVER, resource_claim

_keys = st.sampled_from("abc")
_devices = st.one_of(st.none(), st.lists(st.integers(0, 3), max_size=2, unique=True))
_steps = st.lists(
    st.tuples(st.sampled_from(("put", "gone", "promise", "take back")), _keys, _devices),
    max_size=12,
)


def allocation(numbers, admin=False):
    results = [{"driver": DRIVER, "pool": "p", "device": f"d{one}"} for one in numbers or ()]
    if admin and results:
        results[0]["adminAccess"] = True
    return {"devices": {"results": results}}


@given(_steps, st.booleans())
def test_what_is_in_use_is_what_claims_have_and_what_was_promised(steps, admin):
    """Counted change by change, against counting anew; administrators keep nobody away."""
    devices = Devices()
    for step, key, numbers in steps:
        before = devices.changes
        match step:
            case "put":
                status = {} if numbers is None else {"allocation": allocation(numbers, admin)}
                devices.put_claim(key, resource_claim(key, [], **status))
            case "gone":
                devices.put_claim(key, None)
            case "promise" if key not in devices.promised:
                devices.promise(key, allocation(numbers))
            case "take back":
                devices.take_back(key)
        claims = {one for claim in devices.claims.values() for one in claim.held}
        promised = {one for made in devices.promised.values() for one in held_by(made)}
        assert set(devices.in_use()) == claims | promised
        assert devices.changes > before or step in ("promise", "take back")


def test_rules_taint_the_devices_that_they_name():
    """[V1] As ruleMatchesDevice: without a selector none, with an empty one all."""
    devices = Devices()
    spec = {
        "driver": "gpu.example.com", "allNodes": True, "pool": {"name": "p"},
        "devices": [{"name": "a"}, {"name": "b", "taints": [{"key": "own", "effect": "None"}]}],
    }  # fmt: skip
    devices.put_slice("s", {"metadata": {"name": "s"}, "spec": spec})
    broken = {"key": "broken", "effect": "NoSchedule"}

    def tainted(taint=broken, **selector):
        devices.put_rule("r", {"spec": {"taint": taint, **selector}})
        [slice_] = devices.tainted_slices()
        return [device.id[2] for device in slice_.devices if device.taints]

    assert tainted() == []
    assert tainted(deviceSelector={}) == ["a", "b"]
    assert tainted(deviceSelector={"driver": "gpu.example.com", "device": "b"}) == ["b"]
    assert tainted(deviceSelector={"pool": "q"}) == []
    assert tainted({"key": "broken", "effect": "None"}, deviceSelector={}) == []
    devices.put_rule("r", None)
    assert devices.tainted_slices() == list(devices.slices.values())
