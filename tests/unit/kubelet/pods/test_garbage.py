import asyncio

from sampan.kubelet.pods import garbage
from tests.support.worlds.observed_pods import container, exited_container, observed_pod, sandbox


def test_of_each_container_only_the_newest_dead_one_stays():
    seen = observed_pod(
        container(attempt=3),
        exited_container(attempt=2),
        exited_container(attempt=1),
        exited_container("other", attempt=1),
        exited_container("other", attempt=0),
    )
    assert garbage.dead_containers(seen) == ["main-1", "other-0"]


def test_a_replaced_sandbox_goes_when_it_holds_nothing_that_is_needed():
    boxes = (sandbox(attempt=2), sandbox(attempt=1, ready=False), sandbox(attempt=0, ready=False))
    seen = observed_pod(container(in_sandbox=2), exited_container(in_sandbox=1), sandboxes=boxes)
    assert garbage.dead_sandboxes(seen) == ["sandbox-0"]


def test_directories_are_removed_and_missing_ones_do_not_matter(tmp_path):
    (tmp_path / "pod" / "logs").mkdir(parents=True)
    asyncio.run(garbage.remove_directories([f"{tmp_path}/pod", f"{tmp_path}/none"]))
    assert list(tmp_path.iterdir()) == []
