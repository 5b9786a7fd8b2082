"""Carrying out a plan: what it says to start, stop and remove.

Job: one `match` over the actions; every effect with its event, and with the reason why a
    container still waits where it failed.
Invariant: holds no policy: what to do was decided by plan.py.
Invariant: containers start in the order of the plan; pulling images goes on beside the sandbox.
Owner: PodSync, one call at a time per pod.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TypeVar, assert_never

from sampan.api.errors import ApiError, NotFound
from sampan.api.objects import Obj, name_of, namespace_of, spec_of, uid_of
from sampan.api.resources import RUNTIME_CLASSES
from sampan.api.rules.durations import seconds_text
from sampan.core.fast_dataclass import dataclass
from sampan.core.metrics import Metrics
from sampan.core.tasks import all_of, give_way
from sampan.kubelet.cgroups.pod_cgroups import CgroupFailure
from sampan.kubelet.container_spec import generate
from sampan.kubelet.container_spec.security_context import check_user_namespaces, wants_own_users
from sampan.kubelet.container_spec.user_namespaces import NoIdsLeft, UserNamespaces
from sampan.kubelet.context import LANE, NodeContext
from sampan.kubelet.contracts.resize_state import Applied
from sampan.kubelet.contracts.runtime import (
    Image,
    ObservedPod,
    Role,
    RuntimeFailure,
    RuntimeFeatures,
    SandboxSpec,
    address_of,
    newest_sandbox,
    ready_sandbox,
)
from sampan.kubelet.contracts.spec import (
    HASH_ANNOTATION,
    container_hash,
    find_container,
    instances,
    latest,
)
from sampan.kubelet.contracts.verdict import Verdict, Waiting
from sampan.kubelet.contracts.volumes_hook import MountedVolume, SubPathFailure, VolumeFailure
from sampan.kubelet.images.image_manager import ImageFailure, ImageManager
from sampan.kubelet.pods.given_resources import GivenResources
from sampan.kubelet.pods.hooks import HookFailure, Subject, handler_of
from sampan.kubelet.pods.parts import PodTools
from sampan.kubelet.pods.planning.actions import (
    Action,
    CreateSandbox,
    HoldBack,
    KillContainer,
    KillPod,
    KillReason,
    RemoveContainer,
    Resize,
    StartContainer,
    Update,
)
from sampan.kubelet.pods.planning.crash_backoff import STREAK_ANNOTATION
from sampan.kubelet.pods.resizing import Resized, Resizer
from sampan.kubelet.pods.start_at_once import TYPES, Started
from sampan.kubelet.pods.start_inputs import InputReader, Services, StartInputs

POST_START_SECONDS = 3600.0
ACTIONS_PER_TURN = 8  # of the loop
NO_SERVICES = "services have not yet been read at least once, cannot construct envvars"
T = TypeVar("T")


@dataclass(slots=True)
class Performed:
    """What came of it."""

    failed: bool = False
    waiting: dict[str, Waiting] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    resized: Resized | None = None
    verdict: Verdict | None = None  # the pod cannot be had here after all


@dataclass(slots=True)
class _Site:
    """What the starts of one pod share; filled while the plan is carried out."""

    pod: Obj
    observed: ObservedPod | None
    applied: Applied
    sandbox_id: str = ""
    attempt: int = 0  # the sandbox's
    sandbox: SandboxSpec | None = None
    mounts: Mapping[str, MountedVolume] | None = None
    pod_ips: Sequence[str] = ()
    inputs: StartInputs = field(default_factory=StartInputs)
    broken: bool = False  # no sandbox or no volumes: nothing is started


class _Failed:
    """What could not be started, under upstream's names."""

    def __init__(self, metrics: Metrics) -> None:
        self.pods = metrics.counter(
            "kubelet_started_pods_errors_total", "Cumulative number of errors when starting pods"
        )
        self.containers = metrics.counter(
            "kubelet_started_containers_errors_total",
            "Cumulative number of errors when starting containers",
            ("container_type", "code"),
        )


class Performer:
    def __init__(
        self,
        context: NodeContext,
        tools: PodTools,
        *,
        puller: ImageManager,
        services: Services,
        node: generate.NodeFacts,
        features: Callable[[], RuntimeFeatures],
    ) -> None:
        """`features`: what the runtime can do, as it last said."""
        self._runtime, self._client, self._clock = context.runtime, context.client, context.clock
        self._killer, self._hooks, self._volumes = tools.killer, tools.hooks, tools.volumes
        self._events, self._cgroups, self._logs = tools.events, tools.cgroups, tools.logs
        self._given = GivenResources(tools.resources, tools.events, context.metrics.traces)
        self._puller, self._node, self._features = puller, node, features
        self._inputs = InputReader(context, tools, puller, services, features)
        self._users = UserNamespaces(node.root_dir)
        self._resizer = Resizer(context.runtime, tools.cgroups, node.resources)
        self._started, self._failed = Started(context.metrics), _Failed(context.metrics)
        self._traces = context.metrics.traces

    async def _traced(self, pod: Obj, step: str, work: Awaitable[T]) -> T:
        return await self._traces.timed(uid_of(pod), LANE, step, work)

    async def perform(
        self,
        pod: Obj,
        actions: Sequence[Action],
        observed: ObservedPod | None,
        applied: Applied = MappingProxyType({}),
    ) -> Performed:
        """`applied`: resources that containers got after they were created, by container id."""
        site, done = _Site(pod, observed, applied), Performed()
        sandbox = ready_sandbox(observed)
        if sandbox is not None:
            site.sandbox_id, site.attempt = sandbox.id, sandbox.attempt
            site.pod_ips = sandbox.ips
        before = [action for action in actions if not isinstance(action, StartContainer)]
        starts = [action for action in actions if isinstance(action, StartContainer)]
        if not starts:
            await self._in_order(site, before, done)
            return done
        try:
            await self._inputs.read(pod, site.inputs)
        except VolumeFailure as error:
            # As upstream: not even an image is pulled before the volumes are there.
            self._no_volumes(site, error, done)
            return done
        async with self._inputs.pulling(pod, starts, site.inputs):
            await all_of([self._in_order(site, before, done), self._mount(site, done)])
            await self._in_order(site, starts, done)
        return done

    async def _in_order(self, site: _Site, actions: Sequence[Action], done: Performed) -> None:
        for number, action in enumerate(actions):
            if number % ACTIONS_PER_TURN == ACTIONS_PER_TURN - 1:
                await give_way()  # where nothing has to be waited for (a simulated pod)
            match action:
                case KillPod(why):
                    await self._kill_pod(site, why)
                case KillContainer():
                    await self._kill(site, action)
                case RemoveContainer(container_id):
                    self._logs.removed(container_id)
                    await self._runtime.remove_container(container_id)
                case CreateSandbox(attempt):
                    if not site.broken:
                        await self._create_sandbox(site, attempt, done)
                case StartContainer(held=HoldBack() as held) if self._clock.now() < held.until:
                    self._hold_back(site, held, done)
                case StartContainer():
                    if not site.broken:
                        await self._start(site, action, done)
                case Resize(updates):
                    await self._resize(site, updates, done)
                case HoldBack():
                    self._hold_back(site, action, done)
                case _:
                    assert_never(action)

    async def _resize(self, site: _Site, updates: Sequence[Update], done: Performed) -> None:
        assert site.observed is not None
        done.resized = await self._resizer.resize(site.pod, updates, site.observed, site.applied)
        done.failed = done.failed or bool(done.resized.error)

    async def _kill_pod(self, site: _Site, why: KillReason) -> None:
        if site.observed is None:
            return
        if why is KillReason.SANDBOX_CHANGED:
            self._events.normal(
                site.pod, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created."
            )
        await self._killer.kill_pod(site.pod, site.observed, None)
        site.sandbox_id, site.pod_ips = "", ()

    async def _kill(self, site: _Site, kill: KillContainer) -> None:
        assert site.observed is not None
        named = instances(site.observed, kill.name)
        found = next(container for container in named if container.id == kill.id)
        address = address_of(site.observed)
        await self._killer.kill_container(site.pod, found, kill.grace_seconds, kill.why, address)

    async def _create_sandbox(self, site: _Site, attempt: int, done: Performed) -> None:
        pod = site.pod
        self._started.pods.add()
        if not await self._given.prepare(pod):
            site.broken = done.failed = True
            return
        try:
            if self._cgroups is not None:
                making = self._cgroups.ensure(pod, has_quota=self._given.has_quota(pod))
                await self._traced(pod, "cgroups", making)
            spec = self._sandbox_spec(pod, attempt, await self._runtime_handler(pod))
            self._logs.begin(spec.log_directory)
            running = self._traced(pod, "sandbox and network", self._runtime.run_sandbox(spec))
            site.sandbox_id, site.attempt, site.sandbox = await running, attempt, spec
            if not spec.security.host_network:
                site.pod_ips = await self._ips(uid_of(pod), site.sandbox_id)
        except CgroupFailure as error:
            site.broken = done.failed = True
            message = f"unable to ensure pod container exists: {error}"
            self._events.warning(pod, "FailedToCreatePodContainer", message)
        except (RuntimeFailure, generate.ConfigError, NotFound) as error:
            site.broken = done.failed = True
            self._failed.pods.add()
            self._events.warning(
                pod, "FailedCreatePodSandBox", f"Failed to create pod sandbox: {error}"
            )

    async def _runtime_handler(self, pod: Obj) -> str:
        name = spec_of(pod).get("runtimeClassName")
        if not name:
            return ""
        found = await self._client.get(RUNTIME_CLASSES, "", name)
        return str(found.get("handler") or "")

    async def _ips(self, uid: str, sandbox_id: str) -> Sequence[str]:
        seen = newest_sandbox(await self._runtime.pod(uid))
        return seen.ips if seen is not None and seen.id == sandbox_id else ()

    def _no_volumes(self, site: _Site, error: VolumeFailure, done: Performed) -> None:
        site.broken = done.failed = True
        done.verdict = error.verdict
        if error.reason:
            self._events.warning(site.pod, error.reason, str(error))

    async def _mount(self, site: _Site, done: Performed) -> None:
        try:
            await self._inputs.mount(site.pod, site.inputs)
        except VolumeFailure as error:
            self._no_volumes(site, error, done)

    async def _start(self, site: _Site, start: StartContainer, done: Performed) -> None:
        pod, name = site.pod, start.name
        self._started.containers.add(TYPES[start.role])
        self._trace_restart(site, start)
        _, container = find_container(pod, name) or (None, {})
        try:
            image = await site.inputs.image_of(container)
        except ImageFailure as error:
            self._refuse(site, name, error.reason, str(error), done, said=error.reason)
            return
        try:
            creation = self._create(site, start, container, image)
            container_id = await self._traced(pod, f"create {name}", creation)
        except (generate.ConfigError, SubPathFailure) as error:
            self._refuse(site, name, "CreateContainerConfigError", str(error), done)
            return
        except RuntimeFailure as error:
            self._refuse(
                site, name, error.reason or "CreateContainerError", _failure_text(error), done
            )
            return
        self._events.normal(pod, "Created", "Container created", container=name)
        try:
            await self._traced(pod, f"start {name}", self._runtime.start_container(container_id))
        except RuntimeFailure as error:
            self._refuse(
                site, name, error.reason or "RunContainerError", _failure_text(error), done
            )
            return
        self._given.started(pod, name, container_id)
        self._events.normal(pod, "Started", "Container started", container=name)
        log_path = f"{generate.log_directory(pod, self._node)}/{name}/{start.attempt}.log"
        self._logs.started(pod, name, container_id, log_path)
        done.started.append(name)
        await self._post_start(site, container, container_id, done)

    def _trace_restart(self, site: _Site, start: StartContainer) -> None:
        """How long the container was held back since the one before it ended."""
        last = latest(site.observed, start.name) if start.attempt else None
        if last is not None and last.finished_at > 0:
            self._traces.span(
                uid_of(site.pod), LANE, f"back-off of {start.name}", last.finished_at,
                restart=str(start.attempt),
            )  # fmt: skip

    async def _create(
        self, site: _Site, start: StartContainer, container: Obj, image: Image
    ) -> str:
        try:
            handler = await self._runtime_handler(site.pod)
        except ApiError as error:
            raise generate.ConfigError(str(error)) from error
        if site.inputs.services is None:
            raise generate.ConfigError(NO_SERVICES)
        if site.sandbox is None:
            site.sandbox = self._sandbox_spec(site.pod, site.attempt, handler)
        if site.mounts is None:
            site.mounts = site.inputs.mounts()
        sandbox = site.sandbox
        grants = await self._given.grants(site.pod, container)
        spec = generate.container_spec(
            site.pod,
            container,
            generate.ContainerContext(
                attempt=start.attempt,
                image_id=image.id,
                image=image,
                objects=site.inputs.objects,
                pod_ips=site.pod_ips,
                node=self._node,
                mounts=site.mounts,
                files=await self._inputs.env_files(container, site.mounts),
                service_variables=site.inputs.services,
                features=self._features(),
                runtime_handler=handler,
                users=sandbox.security.users,
                grants=grants,
            ),
        )
        notes = {
            **spec.annotations,
            HASH_ANNOTATION: container_hash(container),
            STREAK_ANNOTATION: str(start.streak),
        }
        resolved = await self._volumes.resolve(site.pod, start.name, spec.mounts)
        security = replace(spec.security, process_namespace_of=_target(site, container))
        return await self._runtime.create_container(
            site.sandbox_id,
            replace(spec, annotations=notes, mounts=resolved, security=security),
            sandbox,
        )

    def _sandbox_spec(self, pod: Obj, attempt: int, handler: str) -> SandboxSpec:
        """Raises ConfigError."""
        features = self._features()
        check_user_namespaces(pod, features, handler)  # before ids are taken
        try:
            users = self._users.range_of(uid_of(pod)) if wants_own_users(pod) else None
        except NoIdsLeft as error:
            raise generate.ConfigError(str(error)) from error
        return generate.sandbox_spec(
            pod,
            attempt=attempt,
            node=self._node,
            runtime_handler=handler,
            features=features,
            users=users,
        )

    async def _post_start(
        self, site: _Site, container: Obj, container_id: str, done: Performed
    ) -> None:
        handler = handler_of(container, "postStart")
        if handler is None:
            return
        address = (*site.pod_ips, *self._node.node_ips, "")[0]
        try:
            subject = Subject(container, container_id, address, site.pod)
            hook = self._hooks.run(handler, subject, POST_START_SECONDS)
            await self._traced(site.pod, f"postStart hook of {container['name']}", hook)
        except HookFailure as error:
            name = container["name"]
            # The message may hold secrets of the command's output: it stays out of the event.
            self._events.warning(
                site.pod, "FailedPostStartHook", "PostStartHook failed", container=name
            )
            done.waiting[name] = Waiting("PostStartHookError", str(error))
            done.started.remove(name)
            done.failed = True
            await self._killer.stop_failed(site.pod, container_id, name, address)

    def _refuse(
        self, site: _Site, name: str, reason: str, message: str, done: Performed, said: str = ""
    ) -> None:
        done.failed = True
        role, _ = find_container(site.pod, name) or (Role.NORMAL, {})
        self._failed.containers.add(TYPES[role], reason)
        done.waiting[name] = Waiting(reason, message)
        self._events.warning(site.pod, "Failed", f"Error: {said or message}", container=name)

    def _hold_back(self, site: _Site, held: HoldBack, done: Performed) -> None:
        pod, name = site.pod, held.name
        full = f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
        delay = seconds_text(held.delay_seconds)
        done.waiting[name] = Waiting(
            "CrashLoopBackOff",
            f"back-off {delay} restarting failed container={name} pod={full}",
        )
        self._events.warning(
            pod,
            "BackOff",
            f"Back-off restarting failed container {name} in pod {full}",
            container=name,
        )


def _target(site: _Site, container: Obj) -> str:
    """The id of the container that an ephemeral one looks into. Raises ConfigError."""
    name = container.get("targetContainerName")
    if not name:
        return ""
    found = latest(site.observed, name)
    if found is None:
        raise generate.ConfigError(f"unable to find target container {name}")
    return found.id


def _failure_text(error: RuntimeFailure) -> str:
    """As upstream's events: what the runtime said, without the words of the wire."""
    return str(error).partition(" desc = ")[2] or str(error)
