"""The lives of 42 small pods, as an original kubelet led them on real containers, once more here:
every status on record is seen, in that order and in those words, and so are the events."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from sampan.api.resources import NAMESPACES
from sampan.client import kubeconfig, rest
from sampan.core.clock import SystemClock
from tests.support.parts.images import busybox_archive
from tests.support.parts.pod_lives import Life, Replay, words

pytestmark = [pytest.mark.containerd, pytest.mark.slow]

RECORDED = json.loads((Path(__file__).parent / "expected" / "pod_lives.json").read_text())
IMAGES = (
    "registry.k8s.io/e2e-test-images/busybox:1.37.0-1",
    "registry.k8s.io/e2e-test-images/agnhost:2.59",
)
# The original's own word, but not in these records: its back-off had not begun when they ended.
WORDS = {"state waiting ImagePullBackOff"} | words(
    [status for life in RECORDED.values() for status in life["statuses"]]
)
AT_ONCE, SECONDS, TURNS = 14, 35.0, 3

# Statuses on record that only another pace shows: by pod, their numbers.
SHORT = "the container ended before, or was seen running after, the original's relist"
AT_REST = "the original was caught restarting the container when the pod was deleted"
STARTED = "here a container is started and ready in one status"
SIDECARS = "here the end of the sidecars is told with the end of the pod"
MERGED = {
    "succeeds": ({3}, SHORT),
    "fails": ({3}, SHORT),
    "init-fails-never": ({3}, SHORT),
    "message-file": ({3}, SHORT),
    "message-logs": ({3}, SHORT),
    "bad-command-never": ({3}, SHORT),
    "on-failure": ({3}, SHORT),
    "two-one-ends": ({3}, SHORT),
    "oom": ({3}, SHORT),
    "deadline": ({3}, SHORT),
    "crashes": ({7, 8, 9}, AT_REST),
    "sidecar": ({6}, SIDECARS),
    "startup": ({4}, STARTED),
    "three-roles": ({5}, STARTED),
}
# Without containerd and its shim nobody speaks of them; and one question asks for a manifest.
NATIVE_WORDS = (
    (
        r"failed to create containerd task: failed to create shim task: OCI runtime create failed: "
        r"runc create failed: (.*?): unknown",
        r"OCI runtime create failed: crun create failed: \1",
    ),
    (r'failed to do request: Head \\"', r'failed to do request: Get \\"'),
)
FASTER = {"on-failure": {5, 7}}


def recorded_lives(runtime):
    if runtime != "native":
        return RECORDED
    text = json.dumps(RECORDED)
    for words_there, words_here in NATIVE_WORDS:
        text = re.sub(words_there, words_here, text)
    return json.loads(text)


async def replay(connection, runtime):
    """Each until it is as on record: a machine that others use, too, may miss a status that lasts a
    moment, or a probe's first failure. What is wrong is wrong each time."""
    client, lives = rest.connect(connection, clock=SystemClock()), {}
    try:
        for turn in range(TURNS):
            namespace = f"lives-{turn}"
            again = [
                Life(name, recorded, namespace, frozenset(_merged(name, runtime)))
                for name, recorded in recorded_lives(runtime).items()
                if name not in lives or differs(lives[name])
            ]
            if not again:
                break
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})
            for start in range(0, len(again), AT_ONCE):
                await Replay(client, namespace, again[start : start + AT_ONCE]).run(SECONDS)
            await client.delete(NAMESPACES, "", namespace)
            lives |= {life.name: life for life in again}
    finally:
        await client.close()
    return lives


def differs(life):
    """How it is not as on record; empty: it is."""
    strange = words(life.statuses) - WORDS
    events, recorded = _events(life.events), _events(life.recorded["events"])
    return [*life.missing(), *strange, *(set(events) ^ set(recorded))]


def _merged(name, runtime):
    merged = MERGED.get(name, (set(), ""))[0]
    return merged | FASTER.get(name, set()) if runtime == "native" else merged


@pytest.fixture(scope="module")
def lives(cluster, workspace, runtime):
    for number, reference in enumerate(IMAGES):
        archive = busybox_archive(workspace / f"{number}.tar", reference, mark=reference)
        cluster.run("image", "import", str(archive))
    connection = kubeconfig.load(str(cluster.kubeconfig), {}, "").connection()
    return asyncio.run(replay(connection, runtime))


@pytest.mark.parametrize("name", RECORDED)
def test_a_life_is_that_on_record(lives, name):
    assert differs(lives[name]) == [], json.dumps(lives[name].statuses, indent=1)


def _events(events):
    """Which of two events comes first within a second nobody remembers."""
    told = [one for one in events if one["reason"] != "MissingClusterDNS"]  # theirs had one
    return sorted({json.dumps(event, sort_keys=True) for event in told})
