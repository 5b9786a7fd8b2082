"""What the node agent asks of a container runtime: sandboxes, containers, images, events.

Job: the contract that containerd (over CRI) and the simulated runtime both fulfil, in our own
    words, so that neither protobuf nor simulation leaks into the decisions.
Invariant: every call has a deadline of its own and raises RuntimeFailure, never a foreign error.
Invariant: stop and remove of what is already stopped or gone succeed.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.contracts.local_streams import LocalStreams, StreamOptions

# A private containerd's own runtime handler for pods with host ports; other runtimes have none.
HOST_PORTS_HANDLER = "host-ports"


class RuntimeFailure(Exception):
    """The runtime refused or could not. `reason` is for the pod's status where there is one."""

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class RuntimeUnavailable(RuntimeFailure):
    """Nobody answers at the socket, or not in time."""


class ImageNotFound(RuntimeFailure):
    """The registry does not have it, or will not say."""


class CommandTimedOut(RuntimeFailure):
    """A command in a container took longer than it was given, and was ended."""


class ContainerState(StrEnum):
    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Mount:
    container_path: str
    host_path: str
    read_only: bool = False
    recursive_read_only: bool = False  # what is mounted below it, too
    propagation: str = "private"  # private | host_to_container | bidirectional
    volume: str = ""  # the pod's volume that it shows; empty for files of the node agent
    sub_path: str = ""  # still to be found inside of host_path; no runtime gets to see one
    relabel: bool = False  # for SELinux: the container's label, on what is there
    image: str = ""  # an image id instead of a host path
    image_sub_path: str = ""


@dataclass(frozen=True, slots=True)
class Device:
    """A device of the node in a container; a directory stands for all devices in it."""

    container_path: str
    host_path: str
    permissions: str = "mrw"  # mknod, read, write


@dataclass(frozen=True, slots=True)
class PortMapping:
    container_port: int
    host_port: int
    protocol: str = "TCP"
    host_ip: str = ""


@dataclass(frozen=True, slots=True)
class LinuxResources:
    cpu_shares: int = 0
    cpu_quota: int = 0
    cpu_period: int = 0
    memory_limit_bytes: int = 0
    oom_score_adj: int = 0
    hugepages: Mapping[str, int] = field(default_factory=dict)  # "2MB" → bytes
    cpus: str = ""  # the processors it may use, as 0-3,7; empty: as it is
    memory_nodes: str = ""  # likewise, NUMA nodes
    swap_bytes: int | None = None  # None: the runtime decides
    oom_group: bool = False  # all of it goes where one process is out of memory (cgroup version 2)

    @property
    def unified(self) -> dict[str, str]:
        """Files of a cgroup of version 2 for which runtimes have no other name."""
        files = {"memory.oom.group": "1"} if self.oom_group else {}
        if self.swap_bytes is not None:
            files["memory.swap.max"] = str(self.swap_bytes)
        return files


@dataclass(frozen=True, slots=True)
class IdRange:
    """User and group ids 0…length-1 of a pod are first…first+length-1 on the node."""

    first: int
    length: int = 65_536


@dataclass(frozen=True, slots=True)
class SecurityContext:
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_username: str = ""
    asks_for_user: bool = False  # the pod says who it is, or who it is not; else the image does
    supplemental_groups: tuple[int, ...] = ()
    privileged: bool = False
    read_only_root: bool = False
    add_capabilities: tuple[str, ...] = ()
    drop_capabilities: tuple[str, ...] = ()
    no_new_privileges: bool = False
    seccomp: str = "Unconfined"  # Unconfined | RuntimeDefault | localhost/PATH
    apparmor: str = ""  # as seccomp, with localhost/PROFILE; empty: the runtime decides
    selinux: tuple[str, str, str, str] | None = None  # user, role, type, level
    unmasked_proc: bool = False
    host_network: bool = False
    host_pid: bool = False
    host_ipc: bool = False
    share_process_namespace: bool = False
    process_namespace_of: str = ""  # another container's id: its processes are seen
    only_given_groups: bool = False  # supplementalGroupsPolicy Strict
    users: IdRange | None = None  # the node's ids behind the pod's 0…; None: the node's own


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """A pod's surroundings: everything of RunPodSandbox that we use."""

    name: str
    namespace: str
    uid: str
    attempt: int
    hostname: str
    log_directory: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    dns_servers: tuple[str, ...] = ()
    dns_searches: tuple[str, ...] = ()
    dns_options: tuple[str, ...] = ()
    port_mappings: tuple[PortMapping, ...] = ()
    cgroup_parent: str = ""
    sysctls: Mapping[str, str] = field(default_factory=dict)
    security: SecurityContext = SecurityContext()
    runtime_handler: str = ""


@dataclass(frozen=True, slots=True)
class HostFile:
    """A small file that must be there before the container is created (it is mounted)."""

    path: str
    content: str = ""
    mode: int = 0o644


class Role(StrEnum):
    INIT = "init"
    SIDECAR = "sidecar"  # an init container that keeps running: restartPolicy Always
    NORMAL = "normal"
    EPHEMERAL = "ephemeral"


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """One container to create, fully resolved: no references, no expansion left."""

    name: str
    attempt: int  # the restart count
    image: str  # what the image service resolved the reference to (an id)
    user_image: str  # what the pod's spec says
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    log_path: str = ""  # relative to the sandbox's log_directory
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    resources: LinuxResources = LinuxResources()
    security: SecurityContext = SecurityContext()
    host_files: tuple[HostFile, ...] = ()  # written by a runtime that has real containers
    role: Role = Role.NORMAL
    devices: tuple[Device, ...] = ()
    cdi_devices: tuple[str, ...] = ()  # by their qualified names


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    id: str
    name: str
    namespace: str
    uid: str
    attempt: int
    ready: bool
    created_at: float
    ips: tuple[str, ...] = ()
    host_network: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContainerUser:
    """As whom a container's first process was begun."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    id: str
    sandbox_id: str
    name: str
    attempt: int
    state: ContainerState
    image: str
    image_id: str  # with digest where the runtime knows one
    created_at: float
    started_at: float = 0.0
    finished_at: float = 0.0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    log_path: str = ""
    settled: bool = True  # False: its end was announced, but its log may still be written
    user: ContainerUser | None = None  # None: the runtime does not say
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """All that the runtime has of one pod uid; newest first in both lists."""

    uid: str
    name: str
    namespace: str
    sandboxes: tuple[SandboxStatus, ...] = ()
    containers: tuple[ContainerStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class RuntimeEvent:
    """Something happened to a container or sandbox. `uid` is empty where the runtime cannot say,
    and then everything must be looked at. `exit` is set when the runtime itself said that
    container `container_id` ended: it may answer RUNNING for some milliseconds longer."""

    uid: str
    container_id: str = ""
    exit_code: int | None = None
    exited_at: float = 0.0
    # How it stands since (a sandbox runs or has exited); None: the runtime does not say.
    state: ContainerState | None = None


@dataclass(frozen=True, slots=True)
class HandlerFeatures:
    """What one runtime handler can do beyond the ordinary."""

    recursive_read_only: bool = False
    user_namespaces: bool = False


@dataclass(frozen=True, slots=True)
class RuntimeFeatures:
    """What the runtime says that it can do; what it does not say it cannot."""

    handlers: Mapping[str, HandlerFeatures] = field(default_factory=dict)  # "" is the default one
    supplemental_groups_policy: bool = False
    image_volumes: bool = False

    def of(self, handler: str) -> HandlerFeatures:
        return self.handlers.get(handler) or HandlerFeatures()


@dataclass(frozen=True, slots=True)
class RuntimeInfo:
    name: str
    version: str
    ready: bool
    network_ready: bool
    message: str = ""  # why one of the two is not
    features: RuntimeFeatures = field(default_factory=RuntimeFeatures)


@dataclass(frozen=True, slots=True)
class Image:
    id: str
    tags: tuple[str, ...]
    digests: tuple[str, ...]
    size_bytes: int
    uid: int | None = None  # the user that the image itself names
    username: str = ""
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Credentials:
    username: str = ""
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)
    registry_token: str = field(default="", repr=False)

    @property
    def is_something(self) -> bool:
        return self != Credentials()


@dataclass(frozen=True, slots=True)
class ExecResult:
    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class Layer:
    """Of a container's file system, what is not the image's."""

    used_bytes: int = 0
    inodes: int = 0


class Runtime(Protocol):
    @property
    def local_streams(self) -> LocalStreams | None:
        """Where it has no streaming server to lead clients to: then no `…_url` is asked for."""

    async def info(self) -> RuntimeInfo: ...

    async def pods(self) -> Sequence[ObservedPod]:
        """Everything this node has, in a few calls: the safety net, and the start."""

    async def pod(self, uid: str) -> ObservedPod | None:
        """One pod, with full container statuses."""

    async def run_sandbox(self, spec: SandboxSpec) -> str: ...

    async def stop_sandbox(self, sandbox_id: str) -> None: ...

    async def remove_sandbox(self, sandbox_id: str) -> None: ...

    async def create_container(
        self, sandbox_id: str, container: ContainerSpec, sandbox: SandboxSpec
    ) -> str: ...

    async def start_container(self, container_id: str) -> None: ...

    async def stop_container(self, container_id: str, grace_seconds: float) -> None:
        """SIGTERM (or the image's stop signal), SIGKILL after the grace; returns when it ended."""

    async def signal_container(self, container_id: str, signal: str, seconds: float) -> bool:
        """Send a signal (SIGUSR1, SIGRTMIN+3, …) to its first process and wait, `seconds` at most,
        for the container's end; did it end? One that does not run has."""

    async def update_container(self, container_id: str, resources: LinuxResources) -> None:
        """Other limits from now on, without a restart. Raises RuntimeFailure where it cannot be."""

    async def remove_container(self, container_id: str) -> None: ...

    async def image(self, reference: str) -> Image | None: ...

    async def images(self) -> Sequence[Image]: ...

    async def pull_image(self, reference: str, credentials: Credentials | None) -> str:
        """The id of the pulled image. Raises ImageNotFound or RuntimeFailure."""

    async def remove_image(self, reference: str) -> None: ...

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_seconds: float
    ) -> ExecResult:
        """Raises CommandTimedOut when the command does not end in time."""

    async def exec_url(self, container_id: str, streams: StreamOptions) -> str:
        """Where the runtime's own streaming server takes the connection over."""

    async def attach_url(self, container_id: str, streams: StreamOptions) -> str: ...

    async def port_forward_url(self, sandbox_id: str) -> str: ...

    async def reopen_log(self, container_id: str) -> None: ...

    async def layers(self) -> Mapping[str, Layer]:
        """What every container has written outside of its volumes, by the container's id."""

    async def checkpoint(self, container_id: str, path: str, seconds: float) -> None:
        """Write the container's state into a file. Raises RuntimeFailure where it cannot be."""

    async def layer_bytes(self, container_id: str) -> int:
        """What the container has written outside of its volumes, as last measured (some seconds
        ago); 0 where that is not known yet."""

    def events(self) -> AsyncIterator[RuntimeEvent]:
        """Wake-ups, for as long as the connection lasts; after a reconnect look at everything. A
        container whose end was told of here is never shown as running afterwards."""

    async def close(self) -> None: ...


def newest_sandbox(observed: ObservedPod | None) -> SandboxStatus | None:
    return observed.sandboxes[0] if observed and observed.sandboxes else None


def ready_sandbox(observed: ObservedPod | None) -> SandboxStatus | None:
    sandbox = newest_sandbox(observed)
    return sandbox if sandbox and sandbox.ready else None


def address_of(observed: ObservedPod) -> str:
    """Where the pod can be reached; empty in the node's own network."""
    sandbox = ready_sandbox(observed)
    return sandbox.ips[0] if sandbox is not None and sandbox.ips else ""
