"""kubelet/containerd/stray_shims.py: only what containerd has forgotten for good."""

import asyncio
import json

from sampan.kubelet.containerd.config import layout
from sampan.kubelet.containerd.stray_shims import (
    LOOKS_AFTER_SECONDS,
    HostLocalAddresses,
    Shim,
    remove_namespaces,
    remove_strays,
    strays,
    suspects,
)
from sampan.kubelet.contracts.runtime import RuntimeUnavailable
from tests.support import virtual_time
from tests.support.virtual_time import LoopClock
from tests.support.worlds.observed_pods import container, observed_pod

OLD, NEW, KNOWN = Shim(1, "old"), Shim(2, "new"), Shim(3, "known")


def test_a_shim_that_is_unknown_in_both_looks_is_a_stray():
    assert strays([OLD, KNOWN], {"known"}, [OLD, KNOWN], {"known"}) == [OLD]


def test_a_shim_that_came_later_is_a_start_under_way():
    assert strays([KNOWN], {"known"}, [KNOWN, NEW], {"known"}) == []


def test_a_shim_that_became_known_or_went_is_left_alone():
    assert strays([OLD], set(), [OLD], {"old"}) == []
    assert strays([OLD], set(), [], set()) == []


def test_a_pid_that_was_given_to_another_shim_is_not_the_same():
    assert strays([OLD], set(), [Shim(1, "other")], set()) == []


def test_whose_sandbox_is_ready_is_no_suspect():
    assert suspects([OLD, KNOWN], {"known"}) == [OLD]


def test_the_network_of_a_sandbox_goes_and_nothing_outside_of_our_own(tmp_path):
    paths = layout(tmp_path / "d")
    own = paths.state / "netns" / "cni-1"
    own.parent.mkdir(parents=True)
    foreign = tmp_path / "foreign"
    results = [tmp_path / "result", tmp_path / "broken"]
    interfaces = [{"name": "veth1"}, {"name": "eth0", "sandbox": str(own)},
                  {"name": "eth1", "sandbox": str(foreign)}]  # fmt: skip
    results[0].write_text(json.dumps({"result": {"interfaces": interfaces}}))
    results[1].write_text("{")
    for file in (own, foreign):
        file.touch()
    remove_namespaces("old", paths, results)
    assert not own.exists()
    assert foreign.exists()
    assert not any(file.exists() for file in results)


class Forgetful:
    """A runtime that knows one pod, and answers only when asked again."""

    def __init__(self):
        self._asked = 0

    async def pods(self):
        self._asked += 1
        if self._asked == 1:
            raise RuntimeUnavailable("not yet")
        return [observed_pod(container())]


def test_an_address_that_no_sandbox_ever_claims_is_freed_at_last(tmp_path):
    ipam, clock = tmp_path / "ipam", LoopClock()
    ipam.mkdir()
    known = observed_pod(container()).sandboxes[0].id
    for address, owner in (("10.244.0.2", "never-made"), ("10.244.0.3", known)):
        (ipam / address).write_text(f"{owner}\r\neth0")

    async def story():
        paths = layout(tmp_path / "d")
        networks = HostLocalAddresses(ipam)
        await remove_strays(paths, networks, Forgetful(), environment={}, clock=clock)
        return clock.now()

    began = 1_700_000_000.0
    assert virtual_time.run(story()) - began >= sum(LOOKS_AFTER_SECONDS)
    assert [path.name for path in ipam.iterdir()] == ["10.244.0.3"]


def test_only_the_addresses_of_the_stray_are_freed(tmp_path):
    (tmp_path / "sampan").mkdir()
    for address, owner in (("10.244.0.2", "old"), ("10.244.0.3", "known")):
        (tmp_path / "sampan" / address).write_text(f"{owner}\r\neth0")
    (tmp_path / "sampan" / "last_reserved_ip.0").write_text("10.244.0.3")
    networks = HostLocalAddresses(tmp_path)
    assert networks.holders() == {"old", "known"}
    asyncio.run(networks.release("old"))
    left = sorted(path.name for path in (tmp_path / "sampan").iterdir())
    assert left == ["10.244.0.3", "last_reserved_ip.0"]
