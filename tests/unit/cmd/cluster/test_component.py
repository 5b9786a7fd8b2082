"""cmd/cluster/component.py: whose wishes about the lease count."""

import pytest

from sampan.cmd.cluster.component import lease_of, settled
from sampan.cmd.errors import CannotStart
from sampan.cmd.settings import ElectionChoices

WRITTEN = ElectionChoices(True, "kube-system", "kube-scheduler", 15.0, 10.0, 2.0)


def test_what_flags_leave_open_the_file_says():
    assert settled(ElectionChoices(), WRITTEN) == WRITTEN
    found = settled(ElectionChoices(False, name="mine", lease_seconds=30.0), WRITTEN)
    assert found == ElectionChoices(False, "kube-system", "mine", 30.0, 10.0, 2.0)


def test_the_lease_has_upstreams_form():
    lease = lease_of(WRITTEN)
    assert (lease.namespace, lease.name, lease.lease_seconds) == (
        "kube-system", "kube-scheduler", 15,
    )  # fmt: skip
    assert lease.identity != lease_of(WRITTEN).identity
    assert lease_of(ElectionChoices(False)) is None


def test_times_that_let_two_lead_at_once_are_refused():
    with pytest.raises(CannotStart, match="--leader-elect-lease-duration must be longer"):
        lease_of(settled(ElectionChoices(renew_seconds=20.0), WRITTEN))
