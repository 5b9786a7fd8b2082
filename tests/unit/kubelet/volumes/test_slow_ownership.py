import asyncio

import pytest

from sampan.kubelet.volumes.ownership import Walked
from sampan.kubelet.volumes.slow_ownership import told_while
from tests.support import virtual_time


def told(seconds, files=0, error=None):
    """What a pod hears of a change that takes so long."""
    said = []

    async def story():
        loop = asyncio.get_running_loop()
        changing, walked = loop.create_future(), Walked(files)
        how = (changing.set_exception, error) if error else (changing.set_result, None)
        loop.call_later(seconds, *how)
        await told_while(changing, walked, "u1/volumes/v", said.append)

    virtual_time.run(story())
    return said


def test_a_pod_hears_of_a_slow_change_of_ownership_after_half_a_minute_and_then_each_minute():
    """[N15]"""
    assert told(29) == []
    [first] = told(89)
    assert first.startswith(
        "Setting volume ownership for u1/volumes/v is taking longer than expected, consider using "
        "OnRootMismatch - https://kubernetes.io/docs/"
    )
    each = "Setting volume ownership for u1/volumes/v, processed 7 files."
    assert told(151, files=7)[1:] == [each, each]


def test_what_goes_wrong_is_told_by_whoever_waits():
    with pytest.raises(PermissionError):
        told(1, error=PermissionError())
