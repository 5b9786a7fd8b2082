"""Profiles of `debug`: what a debugging container may do, and what a copied pod keeps.

Job: change a pod that is about to be sent, as kubectl's profile of that name does.
"""

from collections.abc import Callable
from typing import Literal

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.flags import Values

Style = Literal["node", "copy", "ephemeral"]
PROFILES = ("legacy", "general", "baseline", "netadmin", "restricted", "sysadmin")
KINDS = ("containers", "initContainers", "ephemeralContainers")


def check(profile: str) -> None:
    if profile not in PROFILES:
        raise CliError(f"unknown profile: {profile}")


def apply(profile: str, pod: Obj, name: str, style: Style, values: Values) -> None:
    """`name` is the debugging container's."""
    spec = pod["spec"]
    if profile == "legacy":
        if style == "node":
            _mount_root(spec, name)
            _use_host_namespaces(spec)
        elif style == "copy":
            pod["metadata"].pop("labels", None)
        return
    _CONTAINERS[profile](container_of(spec, name), style)
    if style == "node":
        if profile in ("general", "sysadmin"):
            _mount_root(spec, name)
        if profile in ("general", "netadmin", "sysadmin"):
            _use_host_namespaces(spec)
    elif style == "copy":
        _lighten(pod, values)
        spec.setdefault("shareProcessNamespace", True)


def container_of(spec: Obj, name: str) -> Obj:
    for kind in KINDS:
        for container in spec.get(kind) or []:
            if container.get("name") == name:
                found: Obj = container
                return found
    raise CliError(f"no container {name}")


def _general(container: Obj, style: Style) -> None:
    if style == "node":
        container.pop("securityContext", None)
    else:
        _add_capabilities(container, "SYS_PTRACE")


def _baseline(container: Obj, style: Style) -> None:
    container.pop("securityContext", None)


def _restricted(container: Obj, style: Style) -> None:
    container["securityContext"] = {
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "allowPrivilegeEscalation": False,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _netadmin(container: Obj, style: Style) -> None:
    _add_capabilities(container, "NET_ADMIN", "NET_RAW")


def _sysadmin(container: Obj, style: Style) -> None:
    container["securityContext"] = {**(container.get("securityContext") or {}), "privileged": True}


_CONTAINERS: dict[str, Callable[[Obj, Style], None]] = {
    "general": _general, "baseline": _baseline, "restricted": _restricted,
    "netadmin": _netadmin, "sysadmin": _sysadmin,
}  # fmt: skip


def _add_capabilities(container: Obj, *names: str) -> None:
    security = dict(container.get("securityContext") or {})
    capabilities = dict(security.get("capabilities") or {})
    capabilities["add"] = [*(capabilities.get("add") or []), *names]
    container["securityContext"] = {**security, "capabilities": capabilities}


def _mount_root(spec: Obj, name: str) -> None:
    volume = {"name": "host-root", "hostPath": {"path": "/"}}
    spec["volumes"] = [*(spec.get("volumes") or []), volume]
    container = container_of(spec, name)
    mount = {"name": "host-root", "mountPath": "/host"}
    container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]


def _use_host_namespaces(spec: Obj) -> None:
    spec |= {"hostNetwork": True, "hostPID": True, "hostIPC": True}


def _lighten(pod: Obj, values: Values) -> None:
    """A copy is looked at, not served from: what it was known and probed by goes, unless it is to
    be kept."""
    for field in ("labels", "annotations"):
        if not values[f"keep-{field}"]:
            pod["metadata"].pop(field, None)
    if not values["keep-init-containers"]:
        pod["spec"].pop("initContainers", None)
    for container in pod["spec"].get("containers") or []:
        for kind in ("liveness", "readiness", "startup"):
            if not values[f"keep-{kind}"]:
                container.pop(f"{kind}Probe", None)
