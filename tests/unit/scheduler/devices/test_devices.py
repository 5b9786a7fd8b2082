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
