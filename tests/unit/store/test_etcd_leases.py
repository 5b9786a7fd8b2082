from itertools import count

from sampan.core.tasks import all_of
from sampan.store.etcd_leases import KEYS_PER_LEASE, Leases
from tests.support import virtual_time
from tests.support.manual_clock import ManualClock


class Granting:
    """Leases as etcd grants them: the seconds of each, in order."""

    def __init__(self):
        self.seconds, self._ids = [], count(1)

    async def grant(self, seconds):
        self.seconds.append(seconds)
        return next(self._ids)


def test_keys_that_expire_at_nearly_the_same_time_share_a_lease():
    async def story():
        clock, etcd = ManualClock(), Granting()
        leases = Leases(clock, etcd.grant)
        assert set(await all_of(leases.of(3600) for _ in range(50))) == {1}
        await clock.advance(60)
        assert await leases.of(3600) == 1
        await clock.advance(1)
        assert await leases.of(3600) == 2, "the first one would expire too early"
        assert await leases.of(10) == 3
        assert etcd.seconds == [3660, 3660, 10]

    virtual_time.run(story())


def test_a_lease_holds_a_bounded_number_of_keys():
    async def story():
        leases = Leases(ManualClock(), Granting().grant)
        given = [await leases.of(3600) for _ in range(KEYS_PER_LEASE + 1)]
        assert given.count(1) == KEYS_PER_LEASE
        assert given[-1] == 2

    virtual_time.run(story())


def test_a_lease_that_etcd_does_not_know_is_not_used_again():
    async def story():
        leases = Leases(ManualClock(), Granting().grant)
        assert await leases.of(60) == 1
        leases.forget(1)
        assert await leases.of(60) == 2

    virtual_time.run(story())
