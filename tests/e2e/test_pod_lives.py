"""The lives of some 240 small pods, as an original kubelet led them on real containers, once more
here: every status on record is seen, in that order and in those words, and so are the events."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from sampan.api.objects import name_of
from sampan.api.resources import NAMESPACES, NODES
from sampan.client import kubeconfig, rest
from sampan.core.clock import SystemClock
from tests.support.parts.images import busybox_archive
from tests.support.pod_lives.leading import Leading, Life
from tests.support.pod_lives.looks import words
from tests.support.pod_lives.recordings import differences, is_over, read

pytestmark = [pytest.mark.containerd, pytest.mark.slow, pytest.mark.timeout(600)]

RECORDED = read(Path(__file__).parent / "expected" / "pod_lives.jsonl.gz")
IMAGES = (
    "registry.k8s.io/e2e-test-images/busybox:1.37.0-1",
    "registry.k8s.io/e2e-test-images/agnhost:2.59",
)
AT_ONCE, MOST_SECONDS, TURNS = 32, 75.0, 3

# Statuses on record that only another pace shows: by pod, their numbers.
KEPT: dict[str, tuple[set[int], str]] = {
    "deadline": ({3}, "the container was seen to run only when it was over"),
    "init-fails-always": ({4, 6}, "the end is told with its back-off where a write is on its way"),
    "init-rule": ({4}, "the end is told when the sandbox is stopped, too"),
    "resize-and-back": ({4}, "what the resize waits for is told with the pod's generation"),
    "three-roles": ({10}, "the end of the sidecars is told with the end of the pod"),
}
# Without containerd and its shim nobody speaks of them; and one question asks for a manifest.
NATIVE_WORDS = (
    (
        r"failed to create containerd task: failed to create shim task: OCI runtime create failed: "
        r"runc create failed: (.*?): unknown",
        r"OCI runtime create failed: crun create failed: \1",
    ),
    (r'failed to do request: Head \\"', r'failed to do request: Get \\"'),
    (
        r"rpc error: code = Unknown desc = failed to exec in container: failed to start exec "
        r'\\"ID\\": OCI runtime exec failed: exec failed: unable to start container process: '
        r"(.*?): unknown",
        r"failed to exec in container: \1",
    ),
    (r"failed to create containerd container: (cannot load seccomp)", r"\1"),
)


def recorded_lives(runtime):
    text = json.dumps(RECORDED)
    for words_there, words_here in NATIVE_WORDS if runtime == "native" else ():
        text = re.sub(words_there, words_here, text)
    lives = json.loads(text)
    for name, (numbers, _) in KEPT.items():
        looks = lives[name]["looks"]
        lives[name]["words"] += sorted(words([looks[number] for number in numbers]))
        lives[name]["looks"] = [one for at, one in enumerate(looks) if at not in numbers]
    return lives


def seconds_of(life):
    """`secs`: how long it was watched on the original."""
    return min(MOST_SECONDS, 20.0 + 1.5 * life.scenario["secs"])


async def replay(connection, runtime):
    """Each until it is as on record: a machine that others use, too, may miss a status that lasts a
    moment, or a probe's first failure. What is wrong is wrong each time."""
    client, lives = rest.connect(connection, clock=SystemClock()), {}
    records = recorded_lives(runtime)
    longest_first = sorted(records, key=lambda name: -records[name]["secs"])
    try:
        node = name_of((await client.list(NODES)).items[0])
        for turn in range(TURNS):
            again = [
                Life(name, records[name])
                for name in longest_first
                if name not in lives or differences(lives[name])
            ]
            if not again:
                break
            namespace = f"lives-{turn}"
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})
            leading = Leading(client, namespace, node, again)
            await leading.run(is_over, seconds_of, AT_ONCE)
            await client.delete(NAMESPACES, "", namespace)
            lives |= {life.name: life for life in again}
    finally:
        await client.close()
    return lives


@pytest.fixture(scope="module")
def lives(cluster, workspace, runtime):
    for number, reference in enumerate(IMAGES):
        archive = busybox_archive(workspace / f"{number}.tar", reference, mark=reference)
        cluster.run("image", "import", str(archive))
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    return asyncio.run(replay(connection, runtime))


@pytest.mark.parametrize("name", RECORDED)
def test_a_life_is_that_on_record(lives, name):
    assert differences(lives[name]) == [], json.dumps(lives[name].looks, indent=1)
