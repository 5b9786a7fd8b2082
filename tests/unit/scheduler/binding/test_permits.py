import pytest

from sampan.scheduler.binding.permits import NotPermitted, Permits
from sampan.scheduler.cache.cache_state import CacheState
from sampan.scheduler.plugin import Allow, Deny, Plugin, Wait
from tests.support import virtual_time


class Says(Plugin):
    def permit(self, pod, node):
        return self.args["verdict"]


def pod(uid="u"):
    return {"metadata": {"name": uid, "uid": uid, "namespace": "default"}}


def permits():
    return Permits(CacheState(), lambda uid: None)


def test_all_must_allow():
    handle = permits()
    says = lambda *those: [Says({"verdict": one}, handle) for one in those]  # noqa: E731
    assert handle.ask(says(Allow(), Allow()), pod(), "n") is False
    assert handle.ask(says(Allow(), Wait(5)), pod(), "n") is True
    with pytest.raises(NotPermitted, match="no") as caught:
        handle.ask(says(Deny("no")), pod("other"), "n")
    assert caught.value.plugin == "Says"
    assert [one.uid for one in handle.waiting()] == ["u"]


def test_who_waits_is_allowed_rejected_or_out_of_time():
    async def story():
        handle = permits()
        waits = [Says({"verdict": Wait(5)}, handle)]
        for uid in "abc":
            handle.ask(waits, pod(uid), "n")
        handle.allow("a")
        await handle.answered("a")
        handle.reject("b", "not today")
        with pytest.raises(NotPermitted, match="not today"):
            await handle.answered("b")
        with pytest.raises(NotPermitted, match="timeout after waiting 5s at plugin Says"):
            await handle.answered("c")
        assert handle.waiting() == []
        handle.allow("gone")
        handle.reject("gone", "")

    virtual_time.run(story())
