"""What `sampan up --with` applies when the cluster is there, and waits for.

Job: read the files before anything starts, apply them as kubectl would, wait until what runs is
    ready.
Invariant: whatever is wrong with a manifest is one sentence that names its file.
"""

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sampan.api import resources
from sampan.api.errors import NotFound
from sampan.api.objects import Obj, name_of, namespace_of
from sampan.api.rules import conditions, pods
from sampan.cli import catalog, flags
from sampan.cli.errors import CliError
from sampan.cli.main import main as client_command
from sampan.cli.objects import manifests
from sampan.cli.objects.infos import items_of_list
from sampan.cli.session import Io, Session
from sampan.cli.workloads import rollout_status
from sampan.client import rest
from sampan.client.kubeconfig import load
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.errors import CannotStart
from sampan.core.clock import Clock
from sampan.core.side_thread import SideThread

READY_SECONDS = 300.0
# A kind that the same files define is served some milliseconds after its definition.
DEFINED_SECONDS = 10.0
PAUSE_SECONDS = 0.1
MANAGER = "sampan-up"
ROLLOUTS = ("Deployment", "StatefulSet", "DaemonSet")


def read_manifests(paths: Sequence[str]) -> list[Obj]:
    """The objects of all files, in order; nothing of the cluster is needed."""
    found: list[Obj] = []
    command = catalog.find("apply")
    assert command is not None
    for path in paths:
        if path.startswith(("http://", "https://")):
            raise CannotStart(f"--with takes files and directories: download {path} first")
        values = flags.parse(command.flags, ["-f", path, "-R"])
        try:
            sources = manifests.sources(Session("sampan", "sampan up", Io()), values)
            read = [
                manifests.Manifest(item, manifest.source)
                for source in sources
                for manifest in source.manifests()
                for item in items_of_list(manifest.obj)
            ]
        except CliError as error:
            raise CannotStart(f"--with: {error}") from error
        if not read:
            raise CannotStart(f"--with {path}: there is no object in it")
        for manifest in read:
            complaint = _complaint(manifest.obj)
            if complaint:
                raise CannotStart(f"--with {manifest.source}: {complaint}")
            found.append(manifest.obj)
    return found


def _complaint(obj: object) -> str:
    if not isinstance(obj, dict):
        return "a document is no object: the top is not a mapping"
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str):
            return f"an object has no {field}"
    if not (obj.get("metadata") or {}).get("name"):
        return f"a {obj['kind']} has no metadata.name"
    return ""


class StartManifests:
    def __init__(self, paths: Sequence[str], progress: Progress, clock: Clock) -> None:
        self._paths, self._progress, self._clock = paths, progress, clock
        self._objects = read_manifests(paths)

    async def bring_up(self, kubeconfig: Path) -> None:
        """Returns when all is applied and what runs is ready; raises CannotStart."""
        with self._progress.step("manifests") as step:
            await self._apply(kubeconfig)
            step.detail = f"{len(self._objects)} applied"
        client = rest.connect(load(str(kubeconfig), {}, "/").connection(), clock=self._clock)
        deadline = self._clock.monotonic() + READY_SECONDS
        try:
            for obj in self._objects:
                if is_waited_for(obj):
                    with self._progress.step("ready") as step:
                        step.detail = _label(obj)
                        await self._wait(client, obj, deadline)
        finally:
            await client.close()

    async def _apply(self, kubeconfig: Path) -> None:
        deadline = self._clock.monotonic() + DEFINED_SECONDS
        thread = SideThread("manifests")
        try:
            while complaint := await thread.run(lambda: apply(self._paths, kubeconfig)):
                is_late = self._clock.monotonic() > deadline
                if "no matches for kind" not in complaint or is_late:
                    raise CannotStart(f"--with: {complaint}")
                await self._clock.sleep(PAUSE_SECONDS)
        finally:
            thread.close()

    async def _wait(self, client: rest.RestClient, obj: Obj, deadline: float) -> None:
        while True:
            missing = await _what_is_missing(client, obj)
            if not missing:
                return
            if self._clock.monotonic() > deadline:
                raise CannotStart(
                    f"--with: {_label(obj)} is not ready after {READY_SECONDS:.0f} s ({missing}): "
                    f"start again without --with and ask `sampan why {_label(obj)}`"
                )
            await self._clock.sleep(PAUSE_SECONDS)


def apply(paths: Sequence[str], kubeconfig: Path) -> str:
    """Empty, or what was wrong, in one line."""
    said, complaints = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as cache:  # what is served may change between two tries
        words = [
            "apply", "--server-side", "--force-conflicts", f"--field-manager={MANAGER}", "-R",
            f"--kubeconfig={kubeconfig}", f"--cache-dir={cache}", "--request-timeout=30s",
        ]  # fmt: skip
        words += [word for path in paths for word in ("-f", path)]
        code = client_command(words, program="sampan", io=Io(io.BytesIO(), said, complaints))
    lines = [line for line in complaints.getvalue().splitlines() if line]
    if not code:
        return ""
    wrong = [line for line in lines if not line.startswith("Warning:")] or lines
    return " ".join(wrong).removeprefix("error: ") or f"apply ended with {code}"


def is_waited_for(obj: Obj) -> bool:
    return obj["kind"] in (*ROLLOUTS, "Pod", "Job", "CustomResourceDefinition")


def what_is_missing(obj: Obj) -> str:
    """Empty where it is ready, done or established."""
    match obj["kind"]:
        case "Pod":
            is_over = pods.phase(obj) == "Succeeded"
            return "" if is_over or pods.is_ready(obj) else f"phase {pods.phase(obj)}"
        case "Job":
            return "" if conditions.is_true(obj, "Complete") else "not complete"
        case "CustomResourceDefinition":
            return "" if conditions.is_true(obj, "Established") else "not established"
        case _:
            try:
                text, is_done = rollout_status.sentence(obj)
            except CliError as error:
                # Of a strategy that is not followed, or over its deadline.
                return "" if "only available for" in str(error) else str(error)
            return "" if is_done else text.rstrip(".")


async def _what_is_missing(client: rest.RestClient, obj: Obj) -> str:
    resource = resources.by_kind(obj["apiVersion"], obj["kind"])
    if resource is None:
        return ""
    namespace = (namespace_of(obj) or "default") if resource.namespaced else ""
    try:
        found = await client.get(resource, namespace, name_of(obj))
    except NotFound:
        return "it is gone"
    return what_is_missing({"kind": obj["kind"], **found})


def _label(obj: Obj) -> str:
    where = f" -n {namespace_of(obj)}" if namespace_of(obj) not in ("", "default") else ""
    return f"{obj['kind'].lower()}/{name_of(obj)}{where}"
