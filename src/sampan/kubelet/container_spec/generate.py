"""A pod as SandboxSpec and ContainerSpec for the runtime. Pure.

Job: everything that a container needs, resolved: no references and no expansion left.
Invariant: the same pod, objects and node give the same specs.
Invariant: what cannot be kept is a ConfigError, never left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from sampan.api.objects import (
    Obj,
    annotations_of,
    labels_of,
    meta_of,
    name_of,
    namespace_of,
    spec_of,
    uid_of,
)
from sampan.api.rules.pods import is_host_network
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.cgroups.limits import pod_cgroup
from sampan.kubelet.cgroups.names import CGROUPFS, CPU_PERIOD, folder
from sampan.kubelet.container_spec.env_files import EnvFile, EnvText
from sampan.kubelet.container_spec.environment import (
    ConfigError,
    Objects,
    Surroundings,
    environment,
    expand,
    program_room,
)
from sampan.kubelet.container_spec.linux_resources import NodeResources, Swap, linux_resources
from sampan.kubelet.container_spec.name_resolution import Dns, dns, hosts_file, kernel_hostname
from sampan.kubelet.container_spec.security_context import (
    SeccompProfiles,
    check_user_namespaces,
    container_security,
    mounts_recursively,
    sandbox_security,
)
from sampan.kubelet.contracts.paths import pod_directory, termination_log
from sampan.kubelet.contracts.resources_hook import NO_GRANTS, Grants
from sampan.kubelet.contracts.room import Room
from sampan.kubelet.contracts.runtime import (
    ContainerSpec,
    Device,
    HostFile,
    IdRange,
    Image,
    Mount,
    PortMapping,
    RuntimeFeatures,
    SandboxSpec,
)
from sampan.kubelet.contracts.spec import (
    HASH_ANNOTATION,
    RESOURCES_ANNOTATION,
    container_hash,
    resources_of,
    role_of,
    with_roles,
)
from sampan.kubelet.contracts.volumes_hook import MountedVolume

__all__ = [
    "ConfigError",
    "Dns",
    "NodeFacts",
    "Reference",
    "container_spec",
    "references",
    "sandbox_spec",
]

_ETC_HOSTS = "/etc/hosts"
_NO_FEATURES = RuntimeFeatures()


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What the node tells its containers, and where it keeps their things."""

    node_name: str
    root_dir: str
    log_root: str
    node_ips: tuple[str, ...] = ()
    hostname: str = ""
    cluster_domain: str = "cluster.local"
    cluster_dns: tuple[str, ...] = ()
    node_dns: Dns = field(default_factory=Dns)
    hosts_file: str = ""  # the content of the node's own, for pods in its network
    memory_bytes: int = 0
    allocatable: Mapping[str, str] = field(default_factory=dict)
    default_seccomp: str = "Unconfined"
    cgroup_root: str = ""  # pods' cgroups are made below it; empty: the runtime chooses
    cgroup_driver: str = CGROUPFS
    page_sizes: tuple[str, ...] = ()  # of huge pages, as the kernel spells them: 2MB
    swap: Swap | None = None  # None: nobody can be kept from it here
    pretends: bool = False  # nothing of it is real: a simulated node
    cpu_quota: bool = True  # limits of cpu are kept
    oom_group: bool = False  # a container that is out of memory goes whole
    cpu_period: int = CPU_PERIOD  # of the quota
    selinux: bool = False  # it is on

    @property
    def resources(self) -> NodeResources:
        return NodeResources(
            self.memory_bytes,
            self.page_sizes,
            self.swap,
            self.cpu_quota,
            self.oom_group,
            self.cpu_period,
        )


@dataclass(frozen=True, slots=True)
class Reference:
    kind: str  # ConfigMap | Secret
    name: str


def sandbox_spec(
    pod: Obj,
    *,
    attempt: int,
    node: NodeFacts,
    runtime_handler: str = "",
    features: RuntimeFeatures = _NO_FEATURES,
    users: IdRange | None = None,
) -> SandboxSpec:
    """`users`: for a pod that wants its own. Raises ConfigError."""
    check_user_namespaces(pod, features, runtime_handler)
    spec = spec_of(pod)
    host_network = is_host_network(pod)
    resolver = dns(pod, node.node_dns, node.cluster_dns, node.cluster_domain)
    sysctls = (spec.get("securityContext") or {}).get("sysctls") or ()
    return SandboxSpec(
        name=name_of(pod),
        namespace=namespace_of(pod),
        uid=uid_of(pod),
        attempt=attempt,
        hostname="" if host_network else kernel_hostname(pod, node.cluster_domain),
        log_directory=log_directory(pod, node),
        labels=labels_of(pod) | pod_labels(pod),
        annotations=annotations_of(pod),
        dns_servers=resolver.servers,
        dns_searches=resolver.searches,
        dns_options=resolver.options,
        port_mappings=() if host_network else tuple(_port_mappings(pod)),
        cgroup_parent=folder(pod_cgroup(pod, node.cgroup_root), node.cgroup_driver),
        sysctls={sysctl["name"]: sysctl["value"] for sysctl in sysctls},
        security=sandbox_security(pod, users),
        runtime_handler=runtime_handler,
    )


def references(pod: Obj) -> tuple[Reference, ...]:
    """The config maps and secrets in the environments of all containers, each once."""
    found: dict[Reference, None] = {}
    for _, container in with_roles(pod):
        for source in container.get("envFrom") or ():
            for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
                if source.get(key):
                    found[Reference(kind, source[key].get("name", ""))] = None
        for entry in container.get("env") or ():
            source = entry.get("valueFrom") or {}
            for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
                if source.get(key):
                    found[Reference(kind, source[key].get("name", ""))] = None
    return tuple(found)


@dataclass(frozen=True, slots=True)
class ContainerContext:
    """What a container is made with, beside what its pod says."""

    attempt: int
    image_id: str
    image: Image
    objects: Objects
    pod_ips: Sequence[str]
    node: NodeFacts
    mounts: Mapping[str, MountedVolume] = field(default_factory=dict)  # by the volume's name
    files: Mapping[EnvFile, EnvText] = field(default_factory=dict)
    service_variables: Mapping[str, str] = field(default_factory=dict)
    features: RuntimeFeatures = _NO_FEATURES
    runtime_handler: str = ""
    users: IdRange | None = None
    grants: Grants = NO_GRANTS


def container_spec(pod: Obj, container: Obj, given: ContainerContext) -> ContainerSpec:
    """Raises ConfigError."""
    node, attempt, features = given.node, given.attempt, given.features
    around = Surroundings(
        node_name=node.node_name,
        node_ips=node.node_ips,
        pod_ips=node.node_ips if is_host_network(pod) else tuple(given.pod_ips),
        allocatable=node.allocatable,
        service_variables=given.service_variables,
        files=given.files,
        pretends=node.pretends,
    )
    room = program_room()
    variables = environment(pod, container, given.objects, around, room)
    files, file_mounts = _managed_files(pod, container, attempt, around.pod_ips, node)
    return ContainerSpec(
        name=container["name"],
        attempt=attempt,
        image=given.image_id,
        user_image=container.get("image", ""),
        command=tuple(expand(item, room, variables.get) for item in container.get("command") or ()),
        args=tuple(expand(item, room, variables.get) for item in container.get("args") or ()),
        working_dir=container.get("workingDir") or "",
        # As upstream: what the pod itself says comes last, and wins.
        env=tuple({**dict(given.grants.env), **variables}.items()),
        mounts=(
            *given.grants.mounts,
            *_volume_mounts(container, given, (variables, room)),
            *file_mounts,
        ),
        devices=(*given.grants.devices, *_block_devices(container, given.mounts)),
        cdi_devices=given.grants.cdi_devices,
        log_path=f"{container['name']}/{attempt}.log",
        labels={**pod_labels(pod), "io.kubernetes.container.name": container["name"]},
        annotations={
            **given.grants.annotations,
            **container_annotations(pod, container, attempt),
        },
        stdin=bool(container.get("stdin")),
        stdin_once=bool(container.get("stdinOnce")),
        tty=bool(container.get("tty")),
        resources=linux_resources(pod, container, node.resources, given.grants),
        security=container_security(
            pod,
            container,
            given.image,
            seccomp=SeccompProfiles(node.default_seccomp, f"{node.root_dir}/seccomp"),
            features=features,
            users=given.users,
        ),
        host_files=files,
        role=role_of(pod, container["name"]),
    )


def log_directory(pod: Obj, node: NodeFacts) -> str:
    return f"{node.log_root}/{namespace_of(pod)}_{name_of(pod)}_{uid_of(pod)}"


def _managed_files(
    pod: Obj, container: Obj, attempt: int, pod_ips: Sequence[str], node: NodeFacts
) -> tuple[tuple[HostFile, ...], tuple[Mount, ...]]:
    files: list[HostFile] = []
    mounts: list[Mount] = []
    wanted = {mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    if _ETC_HOSTS not in wanted:
        path = f"{pod_directory(uid_of(pod), node.root_dir)}/etc-hosts"
        text = hosts_file(pod, pod_ips, node.cluster_domain, node.hosts_file)
        files.append(HostFile(path, text, 0o644))
        mounts.append(Mount(_ETC_HOSTS, path, relabel=node.selinux))
    message_path = container.get("terminationMessagePath") or ""
    if message_path:
        path = termination_log(pod, container["name"], attempt=attempt, root_dir=node.root_dir)
        # Whoever the container runs as may write it.
        files.append(HostFile(path, "", 0o666))
        mounts.append(Mount(message_path, path, relabel=node.selinux))
    return tuple(files), tuple(mounts)


def _volume_mounts(
    container: Obj, given: ContainerContext, expansion: tuple[Mapping[str, str], Room]
) -> Iterator[Mount]:
    volumes, features = given.mounts, given.features.of(given.runtime_handler)
    propagations = {"HostToContainer": "host_to_container", "Bidirectional": "bidirectional"}
    for mount in container.get("volumeMounts") or ():
        name = mount.get("name", "")
        if name not in volumes:
            raise ConfigError(
                f'cannot find volume "{name}" to mount into container "{container["name"]}"'
            )
        path = mount["mountPath"]
        sub_path, image = _sub_path(mount, *expansion), volumes[name].image
        yield Mount(
            container_path=path if path.startswith("/") else f"/{path}",
            host_path=volumes[name].host_path,
            read_only=bool(mount.get("readOnly")) or volumes[name].read_only,
            recursive_read_only=mounts_recursively(mount, features),
            propagation=propagations.get(mount.get("mountPropagation") or "", "private"),
            volume=name,
            sub_path="" if image else sub_path,
            relabel=volumes[name].relabel and given.node.selinux,
            image=image,
            image_sub_path=sub_path if image else "",
        )


def _block_devices(container: Obj, volumes: Mapping[str, MountedVolume]) -> Iterator[Device]:
    """Of volumes that are devices."""
    for wanted in container.get("volumeDevices") or ():
        name = wanted.get("name", "")
        found = volumes.get(name)
        if found is None or not found.device:
            raise ConfigError(
                f'cannot find volume "{name}" to pass into container "{container["name"]}"'
            )
        yield Device(wanted["devicePath"], found.device, "r" if found.read_only else "mrw")


def _sub_path(mount: Obj, variables: Mapping[str, str], room: Room) -> str:
    path: str = mount.get("subPath") or ""
    if mount.get("subPathExpr"):
        path = _expanded_sub_path(mount["subPathExpr"], variables, room)
    if path.startswith("/"):
        raise ConfigError(f"error SubPath `{path}` must not be an absolute path")
    if ".." in path.split("/"):
        raise ConfigError(f"unable to provision SubPath `{path}`: must not contain '..'")
    return path


def _expanded_sub_path(text: str, variables: Mapping[str, str], room: Room) -> str:
    missing: set[str] = set()

    def find(name: str) -> str | None:
        """As upstream: a variable that is not set, or empty, is an error and no empty name."""
        if not variables.get(name):
            missing.add(name)
        return variables.get(name)

    path = expand(text, room, find)
    if missing:
        raise ConfigError(f"missing value for {', '.join(sorted(missing))}")
    return path


def _port_mappings(pod: Obj) -> Iterator[PortMapping]:
    for _, container in with_roles(pod):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield PortMapping(
                    container_port=port["containerPort"],
                    host_port=port["hostPort"],
                    protocol=port.get("protocol") or "TCP",
                    host_ip=port.get("hostIP") or "",
                )


def pod_labels(pod: Obj) -> dict[str, str]:
    return {
        "io.kubernetes.pod.name": name_of(pod),
        "io.kubernetes.pod.namespace": namespace_of(pod),
        "io.kubernetes.pod.uid": uid_of(pod),
    }


def container_annotations(pod: Obj, container: Obj, attempt: int) -> dict[str, str]:
    """As upstream's kubelet: enough to go on after a restart of the node agent."""
    annotations = {
        HASH_ANNOTATION: container_hash(container),
        "io.kubernetes.container.restartCount": str(attempt),
        "io.kubernetes.container.terminationMessagePath": container.get("terminationMessagePath")
        or "",
        "io.kubernetes.container.terminationMessagePolicy": container.get(
            "terminationMessagePolicy"
        )
        or "",
    }
    for key, value in (
        ("io.kubernetes.pod.deletionGracePeriod", meta_of(pod).get("deletionGracePeriodSeconds")),
        (
            "io.kubernetes.pod.terminationGracePeriod",
            spec_of(pod).get("terminationGracePeriodSeconds"),
        ),
    ):
        if value is not None:
            annotations[key] = str(value)
    pre_stop = (container.get("lifecycle") or {}).get("preStop")
    if pre_stop:
        annotations["io.kubernetes.container.preStopHandler"] = json.dumps(pre_stop)
    resources = resources_of(container)
    if resources:
        annotations[RESOURCES_ANNOTATION] = json.dumps(resources)
    if container.get("ports"):
        annotations["io.kubernetes.container.ports"] = json.dumps(container["ports"])
    return annotations
