"""[N8] Bandwidth limits by annotation."""

import pytest

from sampan.kubelet.container_spec.bandwidth import (
    EGRESS,
    INGRESS,
    is_limited,
    rate_of,
    warning_of,
)
from sampan.kubelet.contracts.runtime import RuntimeFailure
from tests.support.worlds.simulated_node import pod_named


@pytest.mark.parametrize(
    ("annotations", "spec", "shaped", "reason"),
    [
        ({}, {}, False, None),
        ({INGRESS: "10M"}, {}, True, None),
        ({INGRESS: "10M"}, {}, False, "UndefinedShaper"),
        ({EGRESS: "1k"}, {"hostNetwork": True}, True, "HostNetworkNotSupported"),
        ({EGRESS: "999"}, {}, True, "InvalidBandwidth"),
        ({EGRESS: "2P"}, {}, True, "InvalidBandwidth"),
        ({INGRESS: "fast"}, {}, True, "InvalidBandwidth"),
    ],
)
def test_what_cannot_be_limited_is_said(annotations, spec, shaped, reason):
    pod = pod_named("web", annotations=annotations, **spec)
    found = warning_of(pod, shaped=shaped)
    assert (found[0] if found else None) == reason
    assert is_limited(annotations) == bool(annotations)


def test_a_rate_is_in_bits_per_second_and_a_wrong_one_stops_the_sandbox():
    assert rate_of({INGRESS: "13M"}, INGRESS) == 13_000_000
    assert rate_of({INGRESS: "1Ki"}, INGRESS) == 1024
    assert rate_of({INGRESS: "13M"}, EGRESS) == 0
    with pytest.raises(RuntimeFailure, match=r"bandwidth info from annotations: .*< 1kbit"):
        rate_of({EGRESS: "999"}, EGRESS)
