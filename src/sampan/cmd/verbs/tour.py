"""`sampan tour`: one pod's way through the cluster, step by step, for who wants to learn it.

Job: create a pod that a scheduling gate holds back, explain each step where it happens, open the
    gate when its time has come, remove the pod in the end.
Invariant: whatever the learner does, the pod does not stay.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj, name_of
from sampan.api.rules.journey import printable
from sampan.api.rules.pods import is_ready, is_terminal
from sampan.cli.printers.yaml_text import to_yaml
from sampan.client import kubeconfig
from sampan.client.blocking import BlockingClient
from sampan.cmd.errors import CannotStart, sentence_of
from sampan.cmd.tour import pages
from sampan.cmd.tour.lesson import LessonStep, lesson
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.images.reference import PAUSE_IMAGE

GATE = "sampan.dev/tour"
OPENED_AT = "The queue"  # until this step the gate is closed
MOST_SECONDS = 60.0  # that a step is waited for
POLL_SECONDS = 0.05
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Asked:
    namespace: str
    kubeconfig: str
    image: str = PAUSE_IMAGE
    pause: bool = True


class _Quit(Exception):
    """The learner has seen enough."""


def run(asked: Asked) -> int:
    try:
        loaded = kubeconfig.load(asked.kubeconfig, os.environ, str(Path.home()))
        client = BlockingClient(loaded.connection(), user_agent="sampan-tour")
        tour = Tour(client, asked, lambda text: print(text, flush=True))
        with contextlib.closing(client), contextlib.suppress(_Quit, KeyboardInterrupt):
            tour.walk()
        return 0
    except BrokenPipeError:
        raise
    except (ApiError, CannotStart, kubeconfig.KubeconfigError, OSError) as error:
        print(f"sampan: {sentence_of(error)}", file=sys.stderr)
        return 1


class Tour:
    def __init__(self, client: BlockingClient, asked: Asked, say: Callable[[str], None]) -> None:
        self._client, self._asked, self._say = client, asked, say
        self._pods = f"/api/v1/namespaces/{asked.namespace}/pods"
        self._links = sys.stdout.isatty()
        self._name = ""
        self._seen: list[str] = []  # the pod's lines on the last page

    def walk(self) -> None:
        steps = lesson()
        self._name = name_of(self._client.json("POST", self._pods, body=self._pod()))
        self._say(
            f"The way of a pod through sampan, in {len(steps)} steps. The pod is {self._name}; a "
            f"scheduling gate holds it back until its turn comes.\n{pages.source_note()}"
        )
        try:
            for step in steps:
                self._pause()
                self._show(step, len(steps))
            self._pause()
        finally:
            self._remove()

    def _show(self, step: LessonStep, count: int) -> None:
        if step.title == OPENED_AT:
            patch = {"spec": {"schedulingGates": None}}
            self._client.json("PATCH", self._path, body=patch, content_type=MERGE_PATCH)
            self._say("\nThe gate is open: from here on the pod waits for nobody.")
        spans = self._wait_for(step)
        self._say("\n" + "\n".join(pages.page(step, count, spans, links=self._links)))
        pod = self._client.json("GET", self._path)
        lines = pages.plain_lines(pod)
        if lines != self._seen:
            self._say("\n  The pod now:")
            self._say("\n".join(f"  {line}" for line in pages.pod_lines(pod, self._seen)))
        self._seen = lines
        if step.original.spans and not spans:
            self._say(f"\n  It did not come this far: `sampan why {self._name}` may know why.")

    def _wait_for(self, step: LessonStep) -> list[Obj]:
        """Its spans, once the pod is as far; none where it does not come so far."""
        deadline = time.monotonic() + (MOST_SECONDS if step.original.spans else 0.0)
        while True:
            trace = self._trace()
            spans = pages.spans_of(step, trace)
            is_last = step is lesson()[-1]
            pod = self._client.json("GET", self._path)
            if spans and (not is_last or is_ready(pod) or is_terminal(pod)):
                return spans
            if trace is None or time.monotonic() >= deadline:
                return spans
            time.sleep(POLL_SECONDS)

    def _trace(self) -> Obj | None:
        """None where the server keeps none."""
        path = f"/sampan/v1/trace/pods/{self._asked.namespace}/{self._name}"
        try:
            newest: Obj = self._client.json("GET", path)["traces"][0]
        except NotFound:
            return None
        return newest

    def _pause(self) -> None:
        while self._asked.pause:
            try:
                answer = input("\n[Enter] goes on, o shows the whole object, q ends: ")
            except EOFError:
                raise _Quit from None
            match answer.strip().lower():
                case "q":
                    raise _Quit
                case "o":
                    whole = to_yaml(self._client.json("GET", self._path))
                    self._say("\n".join(printable(line) for line in whole.splitlines()))
                case _:
                    return

    def _remove(self) -> None:
        with contextlib.suppress(NotFound):
            self._client.json("DELETE", self._path, {"gracePeriodSeconds": "1"})
        self._say(
            f"\nThe pod is deleted. `sampan trace {self._name}` shows all of its way, the way down "
            "too."
        )

    @property
    def _path(self) -> str:
        return f"{self._pods}/{self._name}"

    def _pod(self) -> Obj:
        return {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "tour-"},
            "spec": {
                "schedulingGates": [{"name": GATE}], "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": self._asked.image,
                                "imagePullPolicy": "IfNotPresent"}],
            },
        }  # fmt: skip
