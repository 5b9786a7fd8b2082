"""The pod security standards: every check of baseline and restricted, in every version. Pure.

Job: a pod's metadata and spec, a level and a version → what it violates, in upstream's words.
To add a check: a function that yields (reason, details), and a row in the table.
"""

from collections.abc import Callable, Iterator

from sampan.api.objects import Obj
from sampan.apiserver.admission.settings import BASELINE, PRIVILEGED, RESTRICTED, Version
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Pod:
    """What the checks look at: of a pod, or of a template."""

    meta: Obj
    spec: Obj

    def containers(self) -> Iterator[Obj]:
        for field in ("initContainers", "containers", "ephemeralContainers"):
            yield from self.spec.get(field) or ()

    @property
    def context(self) -> Obj:
        found: Obj = self.spec.get("securityContext") or {}
        return found

    @property
    def is_windows(self) -> bool:
        return bool((self.spec.get("os") or {}).get("name") == "windows")


Found = tuple[str, str] | None  # (forbidden reason, detail); None: nothing wrong
Check = Callable[[Pod, Version], Found]


def violations(pod: Pod, level: str, version: Version) -> list[str]:
    """In the order of upstream's ids; `reason (detail)` each."""
    found = []
    for check_level, since, until, check in _CHECKS:
        if level == PRIVILEGED or (level == BASELINE and check_level == RESTRICTED):
            continue
        # A restricted check replaces the baseline one of the same field.
        if level == RESTRICTED and check in _REPLACED and version >= _REPLACED[check]:
            continue
        if since <= version < until:
            result = check(pod, version)
            if result is not None:
                reason, detail = result
                found.append(f"{reason} ({detail})" if detail else reason)
    return found


def _own(container: Obj) -> Obj:
    found: Obj = container.get("securityContext") or {}
    return found


def _quote(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _plural(names: list[str], word: str = "container") -> str:
    return f"{word}s" if len(names) > 1 else word


def _bad(names: list[str], rest: str) -> str:
    return f"{_plural(names)} {_quote(names)} {rest}"


def _setters(pod: Pod, is_bad: Callable[[Obj], object]) -> str:
    """`pod and containers "a", "b"`: whose security context is bad; empty: nobody's."""
    who = ["pod"] if is_bad(pod.context) else []
    names = [container["name"] for container in pod.containers() if is_bad(_own(container))]
    if names:
        who.append(f"{_plural(names)} {_quote(names)}")
    return " and ".join(who)


def _has_own_users(pod: Pod, version: Version) -> bool:
    """Root in a user namespace is nobody on the node."""
    return version >= (1, 35) and pod.spec.get("hostUsers") is False


def _privileged_containers(pod: Pod, _: Version) -> Found:
    names = [
        container["name"] for container in pod.containers() if _own(container).get("privileged")
    ]
    if not names:
        return None
    return "privileged", _bad(names, "must not set securityContext.privileged=true")


def _host_namespaces(pod: Pod, _: Version) -> Found:
    used = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC")
            if pod.spec.get(field)]  # fmt: skip
    return ("host namespaces", ", ".join(used)) if used else None


def _host_paths(pod: Pod, _: Version) -> Found:
    names = [volume["name"] for volume in pod.spec.get("volumes") or () if volume.get("hostPath")]
    return ("hostPath volumes", f"{_plural(names, 'volume')} {_quote(names)}") if names else None


def _host_ports(pod: Pod, _: Version) -> Found:
    names, ports = [], []
    for container in pod.containers():
        own = [port["hostPort"] for port in container.get("ports") or () if port.get("hostPort")]
        if own:
            names.append(container["name"])
            ports += own
    if not names:
        return None
    distinct = ", ".join(str(item) for item in sorted(set(ports)))
    word = "hostPorts" if len(set(ports)) > 1 else "hostPort"
    verb = "use" if len(names) > 1 else "uses"
    return "hostPort", f"{_plural(names)} {_quote(names)} {verb} {word} {distinct}"


_BASELINE_CAPABILITIES = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
    "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip


def _capabilities(pod: Pod, _: Version) -> Found:
    names, extra = [], set()
    for container in pod.containers():
        added = (_own(container).get("capabilities") or {}).get("add") or ()
        more = [item for item in added if item not in _BASELINE_CAPABILITIES]
        if more:
            names.append(container["name"])
            extra |= set(more)
    if not names:
        return None
    listed = _quote(sorted(extra))
    return "non-default capabilities", _bad(
        names, f"must not include {listed} in securityContext.capabilities.add"
    )


_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def _apparmor(pod: Pod, _: Version) -> Found:
    bad = []
    for key, value in sorted((pod.meta.get("annotations") or {}).items()):
        allowed = value in ("", "runtime/default") or value.startswith("localhost/")
        if key.startswith(_APPARMOR) and not allowed:
            bad.append(f'annotation {key}="{value}"')
    who = _setters(
        pod, lambda item: (item.get("appArmorProfile") or {}).get("type") == "Unconfined"
    )
    if who:
        bad.insert(0, f'{who} must not set AppArmor profile type to "Unconfined"')
    return (_plural(bad, "forbidden AppArmor profile"), ", ".join(bad)) if bad else None


def _contexts(pod: Pod) -> Iterator[Obj]:
    yield pod.context
    for container in pod.containers():
        yield _own(container)


_SELINUX_TYPES = ("", "container_t", "container_init_t", "container_kvm_t")
_SELINUX_ENGINE = "container_engine_t"  # allowed since 1.31


def _selinux(pod: Pod, version: Version) -> Found:
    allowed = (*_SELINUX_TYPES, _SELINUX_ENGINE) if version >= (1, 31) else _SELINUX_TYPES

    def wrong(context: Obj) -> bool:
        options = context.get("seLinuxOptions") or {}
        return (
            (options.get("type") or "") not in allowed
            or bool(options.get("user"))
            or bool(options.get("role"))
        )

    who = _setters(pod, wrong)
    if not who:
        return None
    every = [context.get("seLinuxOptions") or {} for context in _contexts(pod)]
    types = sorted({item["type"] for item in every if (item.get("type") or "") not in allowed})
    said = [f"{_plural(types, 'type')} {_quote(types)}"] if types else []
    said += ["user may not be set"] if any(item.get("user") for item in every) else []
    said += ["role may not be set"] if any(item.get("role") for item in every) else []
    return (
        "seLinuxOptions",
        f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(said)}",
    )


def _proc_mount(pod: Pod, version: Version) -> Found:
    return None if _has_own_users(pod, version) else _proc_mount_restricted(pod, version)


def _proc_mount_restricted(pod: Pod, _: Version) -> Found:
    bad = [
        container
        for container in pod.containers()
        if _own(container).get("procMount") not in (None, "Default")
    ]
    if not bad:
        return None
    kinds = sorted({_own(item)["procMount"] for item in bad})
    names = [item["name"] for item in bad]
    return "procMount", _bad(names, f"must not set securityContext.procMount to {_quote(kinds)}")


_SYSCTLS = {
    (1, 0): ("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
             "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"),
    (1, 27): ("net.ipv4.ip_local_reserved_ports",),
    (1, 29): ("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout",
              "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes"),
    (1, 32): ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
}  # fmt: skip


def _sysctls(pod: Pod, version: Version) -> Found:
    allowed = {name for since, names in _SYSCTLS.items() if version >= since for name in names}
    bad = [
        sysctl["name"]
        for sysctl in pod.context.get("sysctls") or ()
        if sysctl["name"] not in allowed
    ]
    return ("forbidden sysctls", ", ".join(bad)) if bad else None


def _seccomp_baseline(pod: Pod, version: Version) -> Found:
    bad = []
    if version < (1, 19):
        for key, value in sorted((pod.meta.get("annotations") or {}).items()):
            about = key == "seccomp.security.alpha.kubernetes.io/pod" or key.startswith(
                "container.seccomp.security.alpha.kubernetes.io/"
            )
            if about and value == "unconfined":
                bad.append(f'{key}="{value}"')
        return ("seccompProfile", f"forbidden annotation {', '.join(bad)}") if bad else None
    who = _setters(pod, lambda item: (item.get("seccompProfile") or {}).get("type") == "Unconfined")
    if not who:
        return None
    return "seccompProfile", (
        f'{who} must not set securityContext.seccompProfile.type to "Unconfined"'
    )


def _windows_host_process(pod: Pod, _: Version) -> Found:
    who = _setters(pod, lambda item: (item.get("windowsOptions") or {}).get("hostProcess"))
    if not who:
        return None
    return "hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true"


def _host_probes(pod: Pod, _: Version) -> Found:
    """Since 1.34: probes and hooks may not name a host."""
    names: set[str] = set()
    hosts: set[str] = set()
    for container in pod.containers():
        handlers = [container.get(item) or {} for item in ("livenessProbe", "readinessProbe",
                                                         "startupProbe")]  # fmt: skip
        lifecycle = container.get("lifecycle") or {}
        handlers += [lifecycle.get(item) or {} for item in ("postStart", "preStop")]
        asked = ((handler.get(kind) or {}).get("host") for handler in handlers
                 for kind in ("httpGet", "tcpSocket"))  # fmt: skip
        named = {str(host) for host in asked if host}
        if named:
            names.add(container["name"])
            hosts |= named
    if not names:
        return None
    verb = "use" if len(names) > 1 else "uses"
    what = _plural(sorted(hosts), "probe or lifecycle host")
    return "probe or lifecycle host", _bad(sorted(names), f"{verb} {what} {_quote(sorted(hosts))}")


_RESTRICTED_VOLUMES = frozenset({
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image",
    "persistentVolumeClaim", "projected", "secret",
})  # fmt: skip


def _volumes(pod: Pod, _: Version) -> Found:
    names, kinds = [], set()
    for volume in pod.spec.get("volumes") or ():
        used = [key for key, value in volume.items() if key != "name" and value is not None]
        bad = [item for item in used if item not in _RESTRICTED_VOLUMES]
        if bad:
            names.append(volume["name"])
            kinds |= set(bad)
    if not names:
        return None
    word = "types" if len(kinds) > 1 else "type"
    verb = "use" if len(names) > 1 else "uses"
    return "restricted volume types", (
        f"{_plural(names, 'volume')} {_quote(names)} {verb} restricted volume {word} "
        f"{_quote(sorted(kinds))}"
    )


def _escalation(pod: Pod, version: Version) -> Found:
    if version >= (1, 25) and pod.is_windows:
        return None
    names = [container["name"] for container in pod.containers()
             if _own(container).get("allowPrivilegeEscalation") is not False]  # fmt: skip
    if not names:
        return None
    return "allowPrivilegeEscalation != false", _bad(
        names, "must set securityContext.allowPrivilegeEscalation=false"
    )


def _capabilities_restricted(pod: Pod, version: Version) -> Found:
    if version >= (1, 25) and pod.is_windows:
        return None
    keep, extra, added = [], [], set()
    for container in pod.containers():
        capabilities = _own(container).get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or ()):
            keep.append(container["name"])
        more = {item for item in capabilities.get("add") or () if item != "NET_BIND_SERVICE"}
        if more:
            extra.append(container["name"])
            added |= more
    said = []
    if keep:
        said.append(_bad(keep, 'must set securityContext.capabilities.drop=["ALL"]'))
    if extra:
        listed = _quote(sorted(added))
        said.append(_bad(extra, f"must not include {listed} in securityContext.capabilities.add"))
    return ("unrestricted capabilities", "; ".join(said)) if said else None


def _run_as_non_root(pod: Pod, version: Version) -> Found:
    if _has_own_users(pod, version):
        return None
    whole = pod.context.get("runAsNonRoot")
    explicit = [
        container["name"]
        for container in pod.containers()
        if _own(container).get("runAsNonRoot") is False
    ]
    if explicit or whole is False:
        who = ["pod"] if whole is False else []
        if explicit:
            who.append(f"{_plural(explicit)} {_quote(explicit)}")
        return "runAsNonRoot != true", (
            f"{' and '.join(who)} must not set securityContext.runAsNonRoot=false"
        )
    missing = [
        container["name"]
        for container in pod.containers()
        if _own(container).get("runAsNonRoot") is None
    ]
    if whole or not missing:
        return None
    return "runAsNonRoot != true", (
        f"pod or {_plural(missing)} {_quote(missing)} must set securityContext.runAsNonRoot=true"
    )


def _run_as_user(pod: Pod, version: Version) -> Found:
    if _has_own_users(pod, version):
        return None
    names = [
        container["name"] for container in pod.containers() if _own(container).get("runAsUser") == 0
    ]
    who = ["pod"] if pod.context.get("runAsUser") == 0 else []
    if names:
        who.append(f"{_plural(names)} {_quote(names)}")
    return ("runAsUser=0", f"{' and '.join(who)} must not set runAsUser=0") if who else None


def _seccomp_restricted(pod: Pod, version: Version) -> Found:
    if version >= (1, 25) and pod.is_windows:
        return None
    whole = _profile_type(pod.context)
    own = {container["name"]: _profile_type(_own(container)) for container in pod.containers()}
    forbidden = [name for name, kind in own.items() if kind not in _SECCOMP_ALLOWED]
    who = [] if whole in _SECCOMP_ALLOWED else ["pod"]
    if forbidden:
        who.append(f"{_plural(forbidden)} {_quote(forbidden)}")
    if who:
        kinds = {kind for kind in (whole, *own.values()) if kind not in _SECCOMP_ALLOWED}
        return "seccompProfile", (
            f"{' and '.join(who)} must not set securityContext.seccompProfile.type to "
            f"{_quote(sorted(str(kind) for kind in kinds))}"
        )
    missing = [name for name, kind in own.items() if kind is None]
    if whole or not missing:
        return None
    return "seccompProfile", (
        f"pod or {_plural(missing)} {_quote(missing)} must set "
        'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    )


_SECCOMP_ALLOWED = (None, "RuntimeDefault", "Localhost")


def _profile_type(context: Obj) -> str | None:
    return (context.get("seccompProfile") or {}).get("type")


_ALWAYS: Version = (9, 0)
# (level, since, until, check), in the order of upstream's ids.
_CHECKS: tuple[tuple[str, Version, Version, Check], ...] = (
    (RESTRICTED, (1, 8), _ALWAYS, _escalation),
    (BASELINE, (1, 0), _ALWAYS, _apparmor),
    (BASELINE, (1, 0), _ALWAYS, _capabilities),
    (RESTRICTED, (1, 22), _ALWAYS, _capabilities_restricted),
    (BASELINE, (1, 0), _ALWAYS, _host_namespaces),
    (BASELINE, (1, 0), _ALWAYS, _host_paths),
    (BASELINE, (1, 0), _ALWAYS, _host_ports),
    (BASELINE, (1, 34), _ALWAYS, _host_probes),
    (BASELINE, (1, 0), _ALWAYS, _privileged_containers),
    (BASELINE, (1, 0), _ALWAYS, _proc_mount),
    (RESTRICTED, (1, 35), _ALWAYS, _proc_mount_restricted),
    (RESTRICTED, (1, 0), _ALWAYS, _volumes),
    (RESTRICTED, (1, 0), _ALWAYS, _run_as_non_root),
    (RESTRICTED, (1, 23), _ALWAYS, _run_as_user),
    (BASELINE, (1, 0), _ALWAYS, _selinux),
    (BASELINE, (1, 0), _ALWAYS, _seccomp_baseline),
    (RESTRICTED, (1, 19), _ALWAYS, _seccomp_restricted),
    (BASELINE, (1, 0), _ALWAYS, _sysctls),
    (BASELINE, (1, 0), _ALWAYS, _windows_host_process),
)
_REPLACED: dict[Check, Version] = {
    _capabilities: (1, 22),
    _seccomp_baseline: (1, 19),
    _host_paths: (1, 0),
    _proc_mount: (1, 35),
}
