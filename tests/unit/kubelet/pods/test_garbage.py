import asyncio

from sampan.kubelet.pods import garbage
from sampan.testing.worlds.observed_pods import container, exited, observed, sandbox


def test_of_each_container_only_the_newest_dead_one_stays():
    seen = observed(
        container(attempt=3),
        exited(attempt=2),
        exited(attempt=1),
        exited("other", attempt=1),
        exited("other", attempt=0),
    )
    assert garbage.dead_containers(seen) == ["main-1", "other-0"]


def test_a_replaced_sandbox_goes_when_it_holds_nothing_that_is_needed():
    boxes = (sandbox(attempt=2), sandbox(attempt=1, ready=False), sandbox(attempt=0, ready=False))
    seen = observed(container(in_sandbox=2), exited(in_sandbox=1), sandboxes=boxes)
    assert garbage.dead_sandboxes(seen) == ["sandbox-0"]


def test_directories_are_removed_and_missing_ones_do_not_matter(tmp_path):
    (tmp_path / "pod" / "logs").mkdir(parents=True)
    asyncio.run(garbage.remove_directories([tmp_path / "pod", tmp_path / "none"]))
    assert list(tmp_path.iterdir()) == []
