"""What a pod asks of the scheduler, judged."""

from sampan.api.validation.pod_spec.scheduling import validate_spread


def test_each_constraint_that_a_later_one_repeats_is_told_once():
    """As upstream: however many follow it."""
    zone = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    errors = []
    validate_spread([zone, {**zone, "topologyKey": "rack"}, zone, zone], "spread", errors)
    place, value = "{topologyKey, whenUnsatisfiable}", '"{zone, DoNotSchedule}"'
    assert [str(error) for error in errors] == [
        f"spread[{index}].{place}: Duplicate value: {value}" for index in (0, 2)
    ]
