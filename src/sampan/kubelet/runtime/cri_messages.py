"""Our words for sandboxes, containers and images ⇄ CRI's messages. Pure.

Job: the only place that knows how a SandboxSpec or a ContainerStatus looks on the wire.
"""

import json
import re
from typing import Any

from sampan.cri.gen import runtime_pb2 as cri
from sampan.kubelet.contracts.hidden_paths import READ_ONLY_PATHS, masked_paths
from sampan.kubelet.contracts.runtime import (
    ContainerSpec,
    ContainerState,
    ContainerStatus,
    ContainerUser,
    Credentials,
    HandlerFeatures,
    IdRange,
    Image,
    LinuxResources,
    Mount,
    RuntimeFeatures,
    RuntimeInfo,
    SandboxSpec,
    SandboxStatus,
    SecurityContext,
)

Message = Any

POD_UID = "io.kubernetes.pod.uid"

# containerd's and CRI-O's first releases with image volumes.
_IMAGE_VOLUMES_SINCE = {"containerd": (2, 1), "cri-o": (1, 31)}

_STATES = {
    cri.CONTAINER_CREATED: ContainerState.CREATED,
    cri.CONTAINER_RUNNING: ContainerState.RUNNING,
    cri.CONTAINER_EXITED: ContainerState.EXITED,
    cri.CONTAINER_UNKNOWN: ContainerState.UNKNOWN,
}

_PROPAGATIONS = {
    "private": cri.PROPAGATION_PRIVATE,
    "host_to_container": cri.PROPAGATION_HOST_TO_CONTAINER,
    "bidirectional": cri.PROPAGATION_BIDIRECTIONAL,
}


def sandbox_config(spec: SandboxSpec) -> Message:
    security = spec.security
    context = cri.LinuxSandboxSecurityContext(
        namespace_options=_namespaces(security),
        readonly_rootfs=security.read_only_root,
        supplemental_groups=security.supplemental_groups,
        supplemental_groups_policy=_groups_policy(security),
        privileged=security.privileged,
        seccomp=_profile(security.seccomp),
    )
    if security.run_as_user is not None:
        context.run_as_user.value = security.run_as_user
    if security.run_as_group is not None:
        context.run_as_group.value = security.run_as_group
    if security.selinux is not None:
        context.selinux_options.CopyFrom(_selinux(security.selinux))
    return cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(
            name=spec.name, namespace=spec.namespace, uid=spec.uid, attempt=spec.attempt
        ),
        hostname=spec.hostname,
        log_directory=spec.log_directory,
        dns_config=cri.DNSConfig(
            servers=spec.dns_servers, searches=spec.dns_searches, options=spec.dns_options
        ),
        port_mappings=[
            cri.PortMapping(
                protocol=cri.Protocol.Value(port.protocol),
                container_port=port.container_port,
                host_port=port.host_port,
                host_ip=port.host_ip,
            )
            for port in spec.port_mappings
        ],
        labels=dict(spec.labels),
        annotations=dict(spec.annotations),
        linux=cri.LinuxPodSandboxConfig(
            cgroup_parent=spec.cgroup_parent,
            security_context=context,
            sysctls=dict(spec.sysctls),
        ),
    )


def container_config(spec: ContainerSpec) -> Message:
    return cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name=spec.name, attempt=spec.attempt),
        image=cri.ImageSpec(image=spec.image, user_specified_image=spec.user_image),
        command=spec.command,
        args=spec.args,
        working_dir=spec.working_dir,
        envs=[
            cri.KeyValue(key=key, value=value.encode(errors="surrogateescape"))
            for key, value in spec.env
        ],
        mounts=[_mount(mount, spec.security.users) for mount in spec.mounts],
        devices=[
            cri.Device(
                container_path=device.container_path,
                host_path=device.host_path,
                permissions=device.permissions,
            )
            for device in spec.devices
        ],
        CDI_devices=[cri.CDIDevice(name=name) for name in spec.cdi_devices],
        labels=dict(spec.labels),
        annotations=dict(spec.annotations),
        log_path=spec.log_path,
        stdin=spec.stdin,
        stdin_once=spec.stdin_once,
        tty=spec.tty,
        linux=cri.LinuxContainerConfig(
            resources=resources(spec.resources), security_context=_container_security(spec.security)
        ),
    )


def resources(wanted: LinuxResources) -> Message:
    return cri.LinuxContainerResources(
        cpu_period=wanted.cpu_period,
        cpu_quota=wanted.cpu_quota,
        cpu_shares=wanted.cpu_shares,
        memory_limit_in_bytes=wanted.memory_limit_bytes,
        oom_score_adj=wanted.oom_score_adj,
        cpuset_cpus=wanted.cpus,
        cpuset_mems=wanted.memory_nodes,
        unified=wanted.unified,
        hugepage_limits=[
            cri.HugepageLimit(page_size=size, limit=limit)
            for size, limit in wanted.hugepages.items()
        ],
    )


def auth_config(credentials: Credentials) -> Message:
    return cri.AuthConfig(
        username=credentials.username,
        password=credentials.password,
        identity_token=credentials.identity_token,
        registry_token=credentials.registry_token,
    )


def runtime_info(version: Message, status: Message) -> RuntimeInfo:
    conditions = {condition.type: condition for condition in status.status.conditions}
    unmet = [
        one.message or one.reason
        for kind in ("RuntimeReady", "NetworkReady")
        if (one := conditions.get(kind)) is not None and not one.status
    ]
    return RuntimeInfo(
        name=version.runtime_name,
        version=version.runtime_version,
        ready=_is_met(conditions, "RuntimeReady"),
        network_ready=_is_met(conditions, "NetworkReady"),
        message="; ".join(unmet),
        features=RuntimeFeatures(
            handlers={
                handler.name: HandlerFeatures(
                    handler.features.recursive_read_only_mounts, handler.features.user_namespaces
                )
                for handler in status.runtime_handlers
            },
            supplemental_groups_policy=status.features.supplemental_groups_policy,
            image_volumes=_mounts_images(version.runtime_name, version.runtime_version),
        ),
    )


def _is_met(conditions: dict[str, Message], kind: str) -> bool:
    condition = conditions.get(kind)
    return condition is not None and bool(condition.status)


def _mounts_images(name: str, version: str) -> bool:
    """No runtime reports it: those that do not know the field make an empty mount of it."""
    least = _IMAGE_VOLUMES_SINCE.get(name)
    return least is not None and release(version) >= least


def release(version: str) -> tuple[int, int]:
    """1.6.20~ds1, v2.1.3, 1.31.0-dev → the first two numbers; (0, 0) where there are none."""
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def injects_cdi(name: str, version: str, status: Message) -> bool:
    """Does the runtime itself know what CDI devices stand for? `status`: its verbose one."""
    if name != "containerd":
        return name == "cri-o"
    if release(version) >= (2, 0):
        return True
    try:
        return bool(json.loads(status.info.get("config") or "{}").get("enableCDI"))
    except (ValueError, AttributeError):
        return False


def configured_driver(status: Message) -> str:
    """The cgroup driver that a containerd's own configuration names, as its verbose status shows
    it; empty where it does not say."""
    try:
        config = json.loads(status.info.get("config") or "{}")
        runtimes = config["containerd"]["runtimes"]
        default = config["containerd"].get("defaultRuntimeName") or "runc"
        options = runtimes[default].get("options") or {}
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    return "systemd" if options.get("SystemdCgroup") else "cgroupfs"


def listed_sandbox(item: Message) -> SandboxStatus:
    """From a list: no addresses."""
    return SandboxStatus(
        id=item.id,
        name=item.metadata.name,
        namespace=item.metadata.namespace,
        uid=item.metadata.uid,
        attempt=item.metadata.attempt,
        ready=item.state == cri.SANDBOX_READY,
        created_at=item.created_at / 1e9,
        labels=dict(item.labels),
        annotations=dict(item.annotations),
    )


def sandbox_status(status: Message) -> SandboxStatus:
    listed = listed_sandbox(status)
    network = status.network
    ips = (network.ip, *(item.ip for item in network.additional_ips))
    return SandboxStatus(
        id=listed.id,
        name=listed.name,
        namespace=listed.namespace,
        uid=listed.uid,
        attempt=listed.attempt,
        ready=listed.ready,
        created_at=listed.created_at,
        ips=tuple(ip for ip in ips if ip),
        host_network=status.linux.namespaces.options.network == cri.NODE,
        labels=listed.labels,
        annotations=listed.annotations,
    )


def listed_container(item: Message) -> ContainerStatus:
    """From a list: no times but that of creation, no exit code."""
    return ContainerStatus(
        id=item.id,
        sandbox_id=item.pod_sandbox_id,
        name=item.metadata.name,
        attempt=item.metadata.attempt,
        state=_STATES[item.state],
        image=item.image.user_specified_image or item.image.image,
        image_id=item.image_ref,
        created_at=item.created_at / 1e9,
        labels=dict(item.labels),
        annotations=dict(item.annotations),
    )


def container_status(status: Message, sandbox_id: str) -> ContainerStatus:
    return ContainerStatus(
        id=status.id,
        sandbox_id=sandbox_id,
        name=status.metadata.name,
        attempt=status.metadata.attempt,
        state=_STATES[status.state],
        image=status.image.image,
        image_id=status.image_ref,
        created_at=status.created_at / 1e9,
        started_at=status.started_at / 1e9,
        # A short life may end before the runtime has noted down its beginning.
        finished_at=max(status.finished_at, status.started_at) / 1e9 if status.finished_at else 0.0,
        exit_code=status.exit_code,
        reason=status.reason,
        message=status.message,
        log_path=status.log_path,
        user=_user(status),
        labels=dict(status.labels),
        annotations=dict(status.annotations),
    )


def _user(status: Message) -> ContainerUser | None:
    if not status.HasField("user") or not status.user.HasField("linux"):
        return None
    user = status.user.linux
    return ContainerUser(user.uid, user.gid, tuple(user.supplemental_groups))


def image(message: Message) -> Image:
    return Image(
        id=message.id,
        tags=tuple(message.repo_tags),
        digests=tuple(message.repo_digests),
        size_bytes=message.size,
        uid=message.uid.value if message.HasField("uid") else None,
        username=message.username,
        pinned=message.pinned,
    )


def _container_security(security: SecurityContext) -> Message:
    is_open = security.privileged or security.unmasked_proc
    context = cri.LinuxContainerSecurityContext(
        capabilities=cri.Capability(
            add_capabilities=security.add_capabilities,
            drop_capabilities=security.drop_capabilities,
        ),
        privileged=security.privileged,
        namespace_options=_namespaces(security),
        run_as_username=security.run_as_username,
        readonly_rootfs=security.read_only_root,
        supplemental_groups=security.supplemental_groups,
        supplemental_groups_policy=_groups_policy(security),
        no_new_privs=security.no_new_privileges,
        seccomp=_profile("Unconfined" if security.privileged else security.seccomp),
        masked_paths=() if is_open else masked_paths(),
        readonly_paths=() if is_open else READ_ONLY_PATHS,
    )
    if security.apparmor:
        context.apparmor.CopyFrom(_profile(security.apparmor))
    if security.selinux is not None:
        context.selinux_options.CopyFrom(_selinux(security.selinux))
    if security.run_as_user is not None:
        context.run_as_user.value = security.run_as_user
    if security.run_as_group is not None:
        context.run_as_group.value = security.run_as_group
    return context


def _namespaces(security: SecurityContext) -> Message:
    pid = cri.CONTAINER
    if security.host_pid:
        pid = cri.NODE
    elif security.share_process_namespace:
        pid = cri.POD
    if security.process_namespace_of:
        pid = cri.TARGET
    return cri.NamespaceOption(
        network=cri.NODE if security.host_network else cri.POD,
        pid=pid,
        target_id=security.process_namespace_of,
        ipc=cri.NODE if security.host_ipc else cri.POD,
        userns_options=_users(security.users),
    )


def _users(users: IdRange | None) -> Message:
    """None: a runtime that knows no user namespaces must not even hear of them."""
    if users is None:
        return None
    ids = _id_mappings(users)
    return cri.UserNamespace(mode=cri.POD, uids=ids, gids=ids)


def _id_mappings(users: IdRange) -> list[Message]:
    return [cri.IDMapping(host_id=users.first, container_id=0, length=users.length)]


def _groups_policy(security: SecurityContext) -> Message:
    return cri.Strict if security.only_given_groups else cri.Merge


def _profile(profile: str) -> Message:
    if profile == "RuntimeDefault":
        return cri.SecurityProfile(profile_type=cri.SecurityProfile.RuntimeDefault)
    if profile.startswith("localhost/"):
        return cri.SecurityProfile(
            profile_type=cri.SecurityProfile.Localhost,
            localhost_ref=profile.removeprefix("localhost/"),
        )
    assert profile == "Unconfined", profile
    return cri.SecurityProfile(profile_type=cri.SecurityProfile.Unconfined)


def _selinux(options: tuple[str, str, str, str]) -> Message:
    user, role, kind, level = options
    return cri.SELinuxOption(user=user, role=role, type=kind, level=level)


def _mount(mount: Mount, users: IdRange | None) -> Message:
    assert not mount.sub_path, "a path that nobody has checked"
    ids = None if users is None else _id_mappings(users)
    return cri.Mount(
        uidMappings=ids,
        gidMappings=ids,
        recursive_read_only=mount.recursive_read_only,
        image=cri.ImageSpec(image=mount.image) if mount.image else None,
        image_sub_path=mount.image_sub_path,
        container_path=mount.container_path,
        host_path=mount.host_path,
        readonly=mount.read_only,
        selinux_relabel=mount.relabel,
        propagation=_PROPAGATIONS[mount.propagation],
    )
