"""[N8] Bandwidth limits by annotation."""

import pytest

from sampan.kubelet.container_spec.bandwidth import EGRESS, INGRESS, is_limited, warning_of
from sampan.testing.worlds.simulated_node import pod_named


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
