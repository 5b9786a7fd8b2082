"""A cluster in the hand of a test.

Job: create, read and wait for objects; the way to its clock, pods, nodes, and to others' clients.
Invariant: what it says when something is not as expected names what was expected, what the cluster
    shows, and why.
Owner: the test; after `close` nothing of it is left.
"""

import functools
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sampan.api.objects import Obj, name_of
from sampan.api.rules.durations import long_seconds
from sampan.cli.objects.discovery import ApiResource
from sampan.client.blocking import BlockingClient
from sampan.client.kubeconfig import Connection
from sampan.cmd.cluster.pki import Pki
from sampan.cmd.snapshot.differences import differences
from sampan.cmd.snapshot.snapshot_file import read, write
from sampan.cmd.snapshot.take import take
from sampan.core.clock import SystemClock
from sampan.core.durations import DurationError
from sampan.core.virtual_time.patience import PATIENCE_SECONDS
from sampan.testing.kit.expectations import (
    READY,
    Condition,
    NotAsExpected,
    expectation_of,
    shown,
)
from sampan.testing.kit.kit_files import DATA
from sampan.testing.kit.kubeconfigs import kubeconfig_text
from sampan.testing.kit.launcher import Launcher, Refused, Started, launcher
from sampan.testing.kit.objects import MANAGER, Objects
from sampan.testing.kit.pacing import ClusterClock
from sampan.testing.kit.spec import CannotStart, Spec, spec_of

if TYPE_CHECKING:
    from sampan.testing.kit.clients import Clients
    from sampan.testing.kit.node_handle import NodeHandle
    from sampan.testing.kit.operator_process import OperatorProcess, Work
    from sampan.testing.kit.pod_handle import PodHandle
    from sampan.testing.kit.webhooks import Function, Webhook, WebhookServer

EVENTS_SHOWN = 10
VERSION_VARIABLE = "SAMPAN_KUBERNETES_VERSION"
Lines = list[str]  # `list` is a verb below


class Cluster:
    def __init__(
        self,
        spec: Spec,
        started: Started,
        origin: Launcher,
    ) -> None:
        self.spec, self._started, self._origin = spec, started, origin
        self.control, self.directory, self.pid = started.control, started.directory, started.pid
        self._connection = connection = _connection(started)
        self.url = connection.server
        self._api = BlockingClient(connection, user_agent=MANAGER, timeout_seconds=60.0)
        self._kept = False
        self._webhooks: WebhookServer | None = None
        self._seed: int | None = None  # of faults, once there are any
        self.clock = ClusterClock(self.control, virtual=spec.virtual)
        self._objects = objects = Objects(self._api, self.clock, self.directory)
        self.kinds, self.apply, self.create = objects.kinds, objects.apply, objects.create
        self.get, self.find, self.list = objects.get, objects.find, objects.list
        self.patch, self.delete, self.events = objects.patch, objects.delete, objects.events

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Its process ends, and its files go; a kept one is left alone."""
        if self._webhooks is not None:
            self._webhooks.close()
        self._api.close()
        if self._kept:
            self.control.close()
        else:
            self._started.end()

    @functools.cached_property
    def kubeconfig(self) -> Path:
        """Of an administrator, for whatever reads such files."""
        path = self.directory / "kubeconfig"
        path.touch(mode=0o600)
        path.write_text(kubeconfig_text(self._connection))
        if self.spec.virtual:
            self.clock.expect_anybody()  # whoever gets it may take a while
        return path

    @functools.cached_property
    def clients(self) -> "Clients":
        """Those of other libraries, where they are installed."""
        from sampan.testing.kit.clients import Clients

        return Clients(self.kubeconfig)

    @functools.cached_property
    def pods(self) -> "PodHandle":
        from sampan.testing.kit.pod_handle import PodHandle

        return PodHandle(self.control, self._api, self._objects, self.clock)

    @functools.cached_property
    def nodes(self) -> "NodeHandle":
        from sampan.testing.kit.node_handle import NodeHandle

        return NodeHandle(self.control, self._api, self._objects, self.clock)

    @property
    def api(self) -> BlockingClient:
        """For paths of any kind: `c.api.json("GET", "/version")`."""
        return self._api

    @contextmanager
    def operator(
        self,
        work: "Work",
        *,
        environment: Mapping[str, str] | None = None,
        watches: bool = True,
        timeout: float | str = 60.0,
    ) -> "Iterator[OperatorProcess]":
        """A command, which finds the cluster in $KUBECONFIG, or a function that gets the path; in
        the `with` it runs, and has begun to watch (`watches=False`: it only polls). Raises
        NotAsExpected with its last words."""
        from sampan.testing.kit.operator_process import OperatorProcess

        before, path = self.clock.watches(), str(self.kubeconfig)
        with (self.directory / "operator.log").open("a+b") as output:
            process = OperatorProcess(work, path, output, self.control, environment)
            try:
                if watches:
                    process.await_watch(self.clock.watches, before, long_seconds(timeout))
                self.clock.settle()
                yield process
            finally:
                process.end()

    def load_image(self, archive: Path | str) -> Lines:
        """Of `docker save` and the like, for the real node; the names under which pods find it."""
        if not self.spec.real:
            raise ValueError("simulated nodes have every image: ask for real=True")
        from sampan.testing.kit.image_import import import_image

        return import_image(self.directory / DATA, Path(archive))

    # Waiting.

    def settle(self) -> None:
        """Returns when nobody in the cluster has anything to do now."""
        self.clock.settle()

    def wait_for(
        self,
        what: str,
        condition: Condition = "exists",
        *,
        namespace: str = "default",
        timeout: float | str = 30.0,
    ) -> Obj:
        """`wait_for("deployment/web", "Available")`; a condition is the name of one (`Ready`,
        `Ready=False`), `exists`, `deleted`, `phase=Running`, or a function of the object. On a
        virtual clock the wait moves it. Raises NotAsExpected; returns the object as it was last
        seen."""
        __tracebackhide__ = True
        expectation = expectation_of(condition)
        kind, name = self._objects.target(what, "")
        seen: list[Obj | None] = [None]

        def holds() -> bool:
            found = self._objects.look(kind, namespace, name)
            seen[0] = found if found is not None else (seen[0] if condition == "deleted" else None)
            return expectation.holds(found)

        if not self.clock.wait_until(holds, long_seconds(timeout)):
            expected = f"{what} in {namespace}: expected within {timeout}: {expectation.text}"
            raise NotAsExpected(self._complaint(expected, kind, namespace, name))
        return seen[0] or {}

    def eventually(
        self, question: Callable[[], object], expected: str = "", timeout: float | str = 30.0
    ) -> None:
        """Returns when `question()` is true; raises NotAsExpected with `expected`."""
        __tracebackhide__ = True
        if not self.clock.wait_until(lambda: bool(question()), long_seconds(timeout)):
            raise NotAsExpected(f"expected within {timeout}: {expected or 'a true answer'}")

    # Assertions: at once true, or after a while.

    def assert_ready(
        self, what: str, *, namespace: str = "default", timeout: float | str = 30.0
    ) -> None:
        """A pod or a node is Ready, a Deployment Available, a Job Complete, a set has all of its
        replicas ready."""
        __tracebackhide__ = True
        kind, _ = self._objects.target(what, "")
        self.wait_for(what, READY.get(kind.kind, "Ready"), namespace=namespace, timeout=timeout)

    def assert_gone(
        self, what: str, *, namespace: str = "default", timeout: float | str = 30.0
    ) -> None:
        __tracebackhide__ = True
        self.wait_for(what, "deleted", namespace=namespace, timeout=timeout)

    def assert_count(
        self,
        what: str,
        count: int,
        *,
        labels: str = "",
        namespace: str = "default",
        timeout: float | str = 30.0,
    ) -> None:
        __tracebackhide__ = True
        found: list[Obj] = []

        def holds() -> bool:
            found[:] = self.list(what, namespace=namespace, labels=labels)
            return len(found) == count

        if not self.clock.wait_until(holds, long_seconds(timeout)):
            names = ", ".join(sorted(map(name_of, found))) or "none"
            where = f" with {labels}" if labels else ""
            raise NotAsExpected(
                f"expected {count} {what}{where} in {namespace}; "
                f"the cluster has {len(found)}: {names}"
            )

    def assert_event(
        self,
        reason: str,
        about: str = "",
        *,
        containing: str = "",
        namespace: str = "default",
        timeout: float | str = 30.0,
    ) -> Obj:
        """There is such an event; returns it."""
        __tracebackhide__ = True
        found: list[Obj] = []

        def holds() -> bool:
            events = self.events(about, namespace=namespace, reason=reason)
            found[:] = [event for event in events if containing in (event.get("message") or "")]
            return bool(found)

        if not self.clock.wait_until(holds, long_seconds(timeout)):
            of = f" about {about}" if about else ""
            saying = f" that says {containing!r}" if containing else ""
            raise NotAsExpected(
                f"expected an event {reason}{of}{saying} in {namespace}; there are:\n"
                + _event_lines(self.events(about, namespace=namespace))
            )
        return found[-1]

    def why(self, pod: str, *, namespace: str = "default") -> str:
        """Why a pod is Pending, or not Ready: as `sampan why`."""
        name = pod.removeprefix("pod/")
        return "\n".join(self.control.ask("why", name=name, namespace=namespace)["lines"])

    def trace(self, pod: str, *, namespace: str = "default") -> str:
        """Each step of a pod's way, and what it waited for: as `sampan trace`."""
        from sampan.api.rules.journey import journey_of
        from sampan.cmd.diagnosis.journey_text import waterfall

        name = pod.removeprefix("pod/")
        found = self._api.json("GET", f"/sampan/v1/trace/pods/{namespace}/{name}")
        journey = journey_of(found["traces"][0])
        return "\n".join(waterfall(f"pod/{name}", journey)) if journey is not None else ""

    def add_webhooks(self, chosen: "Mapping[str, Function] | Iterable[Webhook]") -> None:
        """Functions of the test that the API server asks before it writes (docs/testkit.md). Raises
        CannotStart."""
        from sampan.testing.kit.webhooks import WebhookServer, webhooks_of

        assert self._webhooks is None, "once for a cluster"
        found = webhooks_of(chosen)
        self._webhooks = WebhookServer(Pki(self._started.keys), found)
        self._webhooks.register(self._api)
        self.clock.settle_virtually()

    def record(self) -> None:
        """From now on each write is remembered, for `writes`."""
        self.control.ask("record")

    def writes(self) -> Lines:
        """Each write since `record`, whoever made it, in order: its revision, verb and object, and
        a digest of what was written. The same history has the same lines."""
        path = self.directory / "writes"
        self.control.ask("writes", file=str(path))
        return path.read_text().splitlines()

    # Faults.

    def start_faults(self, *, seed: int | None = None, **chosen: Any) -> int:
        """From now on requests of clients fail by seed (docs/testkit.md); says which seed."""
        used = random.SystemRandom().randrange(10_000) if seed is None else seed
        self.control.ask("faults", chosen={"seed": used, **chosen})
        self._seed = used
        return used

    def stop_faults(self) -> None:
        self.control.ask("faults", chosen=None)

    @contextmanager
    def faults(self, *, seed: int | None = None, **chosen: Any) -> Iterator[int]:
        """Inside of the `with`; a failure is told with the seed."""
        used = self.start_faults(seed=seed, **chosen)
        try:
            yield used
        except AssertionError as error:
            error.add_note(f"with faults of seed={used}: {self.faults_told()}")
            raise
        finally:
            self.stop_faults()

    def faults_told(self) -> str:
        """What clients have met so far."""
        told = self.control.ask("injected")
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(told["injected"].items()))
        return "; ".join([counts or "none", *told["last"][-3:]])

    # More of them.

    def fork(self) -> "Cluster":
        """Another cluster that goes on from where this one is now; neither hears of the other."""
        if self.spec.real or self.spec.store != "memory":
            raise CannotStart("what can be forked is in memory: no real node, no store on disk")
        started = self._origin.fork(self.control, None if not self.spec.virtual else 0)
        return Cluster(self.spec, started, self._origin)

    def save(self, path: Path | str) -> Path:
        """All of its objects, at one revision, in a file: `cluster(snapshot=path)` begins with it,
        and `sampan snapshot` reads it."""
        write(Path(path), take(self._api, SystemClock()))
        return Path(path)

    def diff(self, path: Path | str) -> Lines:
        """What is different from a saved state, in lines as of `sampan snapshot diff`."""
        now = take(self._api, SystemClock())
        found = differences(read(Path(path)).objects, now.objects)
        return [line for item in found for line in item.lines()]

    def keep(self) -> str:
        """It goes on after the tests; returns the lines that say how to look at it and end it."""
        if not self.spec.real:
            self._origin.keep()
        self.control.ask("keep")
        self._kept = True
        return f"export KUBECONFIG={self.kubeconfig}\nkill {self.pid}  # ends it"

    def report(self) -> str:
        """Everything that tests made, with events, logs and why pods are not Ready."""
        from sampan.testing.kit.report import report

        title = f"cluster {self.url}"
        if self._seed is not None:
            title += f", faults of seed={self._seed}"
        return report(title, self.clock.now, self._objects, self.pods, (self.why, self.trace))

    def _complaint(self, expected: str, kind: ApiResource, namespace: str, name: str) -> str:
        there = self._objects.look(kind, namespace, name)
        lines = [expected, f"the cluster shows of {kind.singular}/{name}:", shown(there)]
        about = self.events(f"{kind.plural}/{name}", namespace=namespace if kind.namespaced else "")
        if about:
            lines += ["events:", _event_lines(about)]
        if kind.kind == "Pod" and there is not None:
            try:
                lines += ["why:", self.why(name, namespace=namespace)]
            except Refused as error:
                lines.append(str(error))
        return "\n".join(lines)


def open_cluster(
    *,
    seed: int | None = None,
    webhooks: Any = None,
    clients: Iterable[str] = (),
    patience: float | str = PATIENCE_SECONDS,
    **chosen: Any,
) -> Cluster:
    """Raises CannotStart with one sentence."""
    spec, origin = spec_of({**_of_environment(), **chosen}), launcher()
    fixed = seed if seed is not None else (0 if spec.virtual else None)
    cluster = Cluster(spec, origin.new(spec, fixed), origin)
    try:
        cluster.clock.expect(*([clients] if isinstance(clients, str) else clients))
        if patience != PATIENCE_SECONDS:
            cluster.clock.be_patient(patience)
        if webhooks:
            cluster.add_webhooks(webhooks)
    except (CannotStart, DurationError):
        cluster.close()
        raise
    return cluster


def _of_environment() -> dict[str, Any]:
    """One suite, another version: by a variable of the run."""
    version = os.environ.get(VERSION_VARIABLE, "")
    return {"version": version} if version else {}


def _connection(started: Started) -> Connection:
    keys = Pki(started.keys)
    return Connection(
        f"https://127.0.0.1:{started.port}",
        ca=keys.ca.read_bytes(),
        certificate=keys.certificate("admin").read_bytes(),
        key=keys.key("admin").read_bytes(),
    )


def _event_lines(events: Iterable[Obj]) -> str:
    lines = [
        f"  {event.get('type')} {event.get('reason')} "
        f"{(event.get('involvedObject') or {}).get('name')}: {event.get('message')}"
        for event in events
    ]
    return "\n".join(lines[-EVENTS_SHOWN:]) or "  none"
