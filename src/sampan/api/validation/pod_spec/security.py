"""Security contexts of pods and containers, host namespaces, and what an operating system allows.

Job: everything under securityContext, hostUsers and os → causes.
Invariant: a container that may not gain privileges is not given them either.
"""

from collections.abc import Iterator
from typing import Any

from sampan.api import features
from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    invalid_value,
    not_supported,
    required_value,
)
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.validation.fields import (
    validate_descending_path,
    validate_optional_choice,
    validate_with,
)
from sampan.api.validation.internal_form import internal_form
from sampan.api.validation.pod_spec.windows import (
    validate_host_process,
    validate_windows_options,
)
from sampan.core.patterns import lazy_pattern

Errors = list[FieldError]
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_SYSCTL_FORM = lazy_pattern(_SYSCTL)
_NOT_ON_WINDOWS = "cannot be set for a windows pod"
_WINDOWS_POD = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy",
    "sysctls", "runAsUser", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)  # fmt: skip
_WINDOWS_CONTAINER = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities",
    "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser",
    "runAsGroup",
)  # fmt: skip


def validate_pod_security(spec: Obj, path: str, errors: Errors) -> None:
    context = spec.get("securityContext")
    here = f"{path}.securityContext"
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        at = path if features.changed("ProcessNamespacePath") else here
        errors.append(invalid_value(f"{at}.shareProcessNamespace", True, why))
    if context:
        _validate_ids(context, ("fsGroup", "runAsUser", "runAsGroup"), here, errors)
        for index, group in enumerate(context.get("supplementalGroups") or ()):
            validate_with(names.user_id, group, f"{here}.supplementalGroups[{index}]", errors)
        if context.get("sysctls"):
            _validate_sysctls(context["sysctls"], spec, f"{here}.sysctls", errors)
        for key, choices in _POD_CHOICES.items():
            validate_optional_choice(context.get(key), choices, f"{here}.{key}", errors)
        _validate_profiles(context, here, errors)
        validate_windows_options(context.get("windowsOptions"), f"{here}.windowsOptions", errors)
    validate_host_process(spec, path, errors)


def validate_container_security(
    context: Obj, path: str, errors: Errors, *, host_users: bool
) -> None:
    _validate_ids(context, ("runAsUser", "runAsGroup"), path, errors)
    mount = context.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            errors.append(not_supported(f"{path}.procMount", mount, ("Default", "Unmasked")))
        elif host_users and mount == "Unmasked":
            why = "`hostUsers` must be false to use `Unmasked`"
            errors.append(invalid_value(f"{path}.procMount", mount, why))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid_value(path, internal_form("SecurityContext", context), why))
        added = (context.get("capabilities") or {}).get("add") or ()
        if "CAP_SYS_ADMIN" in added:
            why = (
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add`"
                " CAP_SYS_ADMIN"
            )
            errors.append(invalid_value(path, internal_form("SecurityContext", context), why))
    _validate_profiles(context, path, errors)
    validate_windows_options(context.get("windowsOptions"), f"{path}.windowsOptions", errors)


_POD_CHOICES = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("MountOption", "Recursive"),
}


def _validate_ids(context: Obj, keys: tuple[str, ...], path: str, errors: Errors) -> None:
    for key in keys:
        value = context.get(key)
        if value is not None:
            validate_with(names.user_id, value, f"{path}.{key}", errors)


def _validate_sysctls(sysctls: list[Obj], spec: Obj, path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        name, field = sysctl.get("name") or "", f"{path}[{index}].name"
        if not name:
            errors.append(required_value(field))
        elif len(name) > 253 or not _SYSCTL_FORM.fullmatch(name):
            why = f"must have at most 253 characters and match regex ^{_SYSCTL}$"
            errors.append(invalid_value(field, name, why))
        elif name in seen:
            errors.append(duplicate(field, name))
        _validate_sysctl_namespace(name.replace("/", "."), spec, field, errors)
        seen.add(name)


def _validate_sysctl_namespace(name: str, spec: Obj, path: str, errors: Errors) -> None:
    """A sysctl of a namespace that the pod shares with the host would change the host."""
    if spec.get("hostNetwork") and name.startswith("net."):
        errors.append(invalid_value(path, name, "may not be specified when 'hostNetwork' is true"))
    in_ipc = name.startswith(("kernel.shm", "kernel.msg", "fs.mqueue.")) or name == "kernel.sem"
    if spec.get("hostIPC") and in_ipc:
        errors.append(invalid_value(path, name, "may not be specified when 'hostIPC' is true"))


def _validate_profiles(context: Obj, path: str, errors: Errors) -> None:
    seccomp = context.get("seccompProfile")
    if seccomp is not None:
        _validate_profile(seccomp, "seccomp", f"{path}.seccompProfile", errors)
    armour = context.get("appArmorProfile")
    if armour is not None:
        _validate_profile(armour, "AppArmor", f"{path}.appArmorProfile", errors)


def _validate_profile(profile: Obj, what: str, path: str, errors: Errors) -> None:
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        field = path.rpartition(".")[2]
        errors.append(required_value(f"{path}.type", f"type is required when {field} is set"))
    elif kind not in _PROFILES:
        errors.append(not_supported(f"{path}.type", kind, _PROFILES))
    here = f"{path}.localhostProfile"
    if kind != "Localhost":
        if local is not None and (what == "seccomp" or kind in _PROFILES):
            shown: Any = internal_form("SeccompProfile", profile) if what == "seccomp" else local
            why = f"can only be set when {what} type is Localhost"
            errors.append(invalid_value(here, shown, why))
    elif local is None or (what == "AppArmor" and not local.strip()):
        errors.append(required_value(here, f"must be set when {what} type is Localhost"))
    elif what == "seccomp":
        validate_descending_path(local, here, errors)
    elif local != local.strip():
        errors.append(invalid_value(here, local, "must not be padded with whitespace"))


def validate_user_namespace(spec: Obj, path: str, errors: Errors) -> None:
    """Own users do not go together with the host's other namespaces."""
    if spec.get("hostUsers") is not False:
        return
    why = "when `hostUsers` is false"
    for key, shown in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if spec.get(key):
            errors.append(field_forbidden(f"{path}.{shown}", why))


def validate_os(spec: Obj, path: str, errors: Errors) -> None:
    name = spec["os"].get("name")
    if not name:
        errors.append(required_value(f"{path}.os.name"))
    elif name == "linux":
        _forbid_windows_options(spec, path, errors)
    elif name == "windows":
        _forbid_linux_options(spec, path, errors)
    else:
        errors.append(not_supported(f"{path}.os", name, ("linux", "windows")))


def _forbid_windows_options(spec: Obj, path: str, errors: Errors) -> None:
    why = "windows options cannot be set for a linux pod"
    if (spec.get("securityContext") or {}).get("windowsOptions") is not None:
        errors.append(field_forbidden(f"{path}.securityContext.windowsOptions", why))
    for here, context in _contexts(spec, path):
        if context.get("windowsOptions") is not None:
            errors.append(field_forbidden(f"{here}.windowsOptions", why))


def _forbid_linux_options(spec: Obj, path: str, errors: Errors) -> None:
    context = spec.get("securityContext") or {}
    for key in _WINDOWS_POD:
        if context.get(key) not in (None, []):
            errors.append(field_forbidden(f"{path}.securityContext.{key}", _NOT_ON_WINDOWS))
    for key in ("hostUsers", "shareProcessNamespace"):
        if spec.get(key) is not None:
            errors.append(field_forbidden(f"{path}.{key}", _NOT_ON_WINDOWS))
    for key in ("hostPID", "hostIPC"):
        if spec.get(key):
            errors.append(field_forbidden(f"{path}.{key}", _NOT_ON_WINDOWS))
    for here, own in _contexts(spec, path):
        for key in _WINDOWS_CONTAINER:
            if own.get(key) is not None:
                errors.append(field_forbidden(f"{here}.{key}", _NOT_ON_WINDOWS))


def _contexts(spec: Obj, path: str) -> Iterator[tuple[str, Obj]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            context = container.get("securityContext")
            if context is not None:
                yield f"{path}.{kind}[{index}].securityContext", context
