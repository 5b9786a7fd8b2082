import pytest

from sampan.api.objects import micro_time_text
from sampan.apiserver.subresources.component_statuses import component, lease_trouble

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"holderIdentity": "a", "renewTime": micro_time_text(NOW - 5)}, ""),
        ({"holderIdentity": "a", "renewTime": micro_time_text(NOW - 25)}, "ran out 10 s ago"),
        ({"holderIdentity": "", "renewTime": micro_time_text(NOW)}, "nobody holds the lease"),
        ({}, "nobody holds the lease"),
    ],
)
def test_a_part_is_well_while_it_renews_its_lease(spec, said):
    found = lease_trouble({"spec": spec}, NOW)
    assert said in found
    assert bool(said) is bool(found)


def test_trouble_is_told():
    [condition] = component("etcd-0", "gone")["conditions"]
    assert condition == {"type": "Healthy", "status": "False", "message": "gone"}
