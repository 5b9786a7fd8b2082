"""Security contexts of pod and container: user, capabilities, privileges. Pure.

Job: the effective security context, and the refusal of what cannot be kept.
Invariant: what a runtime would ignore in silence is refused with a ConfigError.
"""

import os.path
from typing import Any

from sampan.api.objects import Obj, name_of, namespace_of, spec_of, uid_of
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.container_spec.environment import ConfigError
from sampan.kubelet.contracts.runtime import (
    HandlerFeatures,
    IdRange,
    Image,
    RuntimeFeatures,
    SecurityContext,
)
from sampan.kubelet.contracts.spec import is_recursive_read_only

_INHERITED = (
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "seLinuxOptions",
    "seccompProfile",
    "appArmorProfile",
)
_LARGEST_ID = 2**31 - 1


def sandbox_security(pod: Obj, users: IdRange | None = None) -> SecurityContext:
    """`users`: for a pod that does not share the node's."""
    own: Obj = spec_of(pod).get("securityContext") or {}
    everybody = [
        *(spec_of(pod).get("initContainers") or ()),
        *(spec_of(pod).get("containers") or ()),
        *(spec_of(pod).get("ephemeralContainers") or ()),
    ]
    return SecurityContext(
        run_as_user=own.get("runAsUser"),
        # Only beside a user: the runtime refuses a group alone.
        run_as_group=own.get("runAsGroup") if own.get("runAsUser") is not None else None,
        supplemental_groups=_groups(own),
        privileged=any((item.get("securityContext") or {}).get("privileged") for item in everybody),
        selinux=_selinux(own),
        # Upstream gives the pause process the runtime's default profile. Ours makes four system
        # calls and takes no input; the filter would cost each pod some milliseconds.
        seccomp="Unconfined",
        only_given_groups=own.get("supplementalGroupsPolicy") == "Strict",
        users=users,
        **_namespaces(pod),
    )


def wants_own_users(pod: Obj) -> bool:
    return spec_of(pod).get("hostUsers") is False


def check_user_namespaces(pod: Obj, features: RuntimeFeatures, handler: str) -> None:
    """As upstream words it. Raises ConfigError."""
    if wants_own_users(pod) and not features.of(handler).user_namespaces:
        who = f'RuntimeClass handler "{handler}"' if handler else "runtime"
        raise ConfigError(
            f"can't set `spec.hostUsers: false`, {who} does not support user namespaces"
        )


@dataclass(frozen=True, slots=True)
class SeccompProfiles:
    """The node's: which one is used where none is named, and where its own are."""

    default: str
    directory: str


def container_security(
    pod: Obj,
    container: Obj,
    image: Image,
    *,
    seccomp: SeccompProfiles,
    features: RuntimeFeatures,
    users: IdRange | None = None,
) -> SecurityContext:
    _refuse_the_unsupported(pod, features)
    context = effective(pod, container)
    whole: Obj = spec_of(pod).get("securityContext") or {}
    # As upstream: an image that names no user runs as root.
    image_uid = 0 if image.uid is None and not image.username else image.uid
    _check_non_root(pod, container, context, image_uid, image.username)
    user = context.get("runAsUser")
    username = ""
    if user is None:
        user, username = image_uid, image.username if image_uid is None else ""
    capabilities = context.get("capabilities") or {}
    return SecurityContext(
        run_as_user=user,
        run_as_username=username,
        asks_for_user=_asks_for_user(context),
        run_as_group=context.get("runAsGroup"),
        supplemental_groups=_groups(whole),
        only_given_groups=whole.get("supplementalGroupsPolicy") == "Strict",
        users=users,
        privileged=bool(context.get("privileged")),
        read_only_root=bool(context.get("readOnlyRootFilesystem")),
        add_capabilities=tuple(capabilities.get("add") or ()),
        drop_capabilities=tuple(capabilities.get("drop") or ()),
        no_new_privileges=context.get("allowPrivilegeEscalation") is False,
        seccomp=_seccomp(context.get("seccompProfile"), seccomp.default, seccomp.directory),
        apparmor=_apparmor(context.get("appArmorProfile")),
        selinux=_selinux(context),
        unmasked_proc=context.get("procMount") == "Unmasked",
        **_namespaces(pod),
    )


def _asks_for_user(context: Obj) -> bool:
    given = (context.get("runAsUser"), context.get("runAsGroup"))
    return given != (None, None) or bool(context.get("runAsNonRoot"))


def effective(pod: Obj, container: Obj) -> Obj:
    """The container's own context, over what the pod's says for all."""
    whole: Obj = spec_of(pod).get("securityContext") or {}
    inherited = {key: whole[key] for key in _INHERITED if whole.get(key) is not None}
    own: Obj = container.get("securityContext") or {}
    return inherited | {key: value for key, value in own.items() if value is not None}


def _check_non_root(
    pod: Obj, container: Obj, context: Obj, image_uid: int | None, image_user: str
) -> None:
    """As upstream's verifyRunAsNonRoot."""
    if not context.get("runAsNonRoot"):
        return
    where = (
        f'(pod: "{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})", '
        f"container: {container.get('name')})"
    )
    user = context.get("runAsUser")
    if user is not None:
        if user == 0:
            raise ConfigError(f"container's runAsUser breaks non-root policy {where}")
        return
    if image_uid is None:
        raise ConfigError(
            f"container has runAsNonRoot and image has non-numeric user ({image_user}), "
            f"cannot verify user is non-root {where}"
        )
    if image_uid == 0:
        raise ConfigError(f"container has runAsNonRoot and image will run as root {where}")
    if not 0 < image_uid <= _LARGEST_ID:
        raise ConfigError(
            f"container has runAsNonRoot and image has an invalid user id ({image_uid}). "
            f"(Must be 1-({_LARGEST_ID})): must be between 0 and {_LARGEST_ID}, inclusive {where}"
        )


def _refuse_the_unsupported(pod: Obj, features: RuntimeFeatures) -> None:
    whole = spec_of(pod).get("securityContext") or {}
    strict = whole.get("supplementalGroupsPolicy") == "Strict"
    if strict and not features.supplemental_groups_policy:
        raise ConfigError("SupplementalGroupsPolicy=Strict is not supported in this node")


def mounts_recursively(mount: Obj, features: HandlerFeatures) -> bool:
    """Read-only all the way down? As upstream's resolveRecursiveReadOnly. Raises ConfigError."""
    if mount.get("recursiveReadOnly") == "Enabled" and not features.recursive_read_only:
        raise ConfigError(
            f'volume "{mount.get("name")}" requested recursive read-only mount, but it is not '
            "supported by the runtime"
        )
    return is_recursive_read_only(mount, possible=features.recursive_read_only)


def _groups(context: Obj) -> tuple[int, ...]:
    groups = list(context.get("supplementalGroups") or ())
    if context.get("fsGroup") is not None:
        groups.append(context["fsGroup"])
    return tuple(groups)


def _namespaces(pod: Obj) -> dict[str, Any]:
    spec = spec_of(pod)
    return {
        "host_network": bool(spec.get("hostNetwork")),
        "host_pid": bool(spec.get("hostPID")),
        "host_ipc": bool(spec.get("hostIPC")),
        "share_process_namespace": bool(spec.get("shareProcessNamespace")),
    }


def _seccomp(profile: Obj | None, default: str, profile_dir: str) -> str:
    kind = (profile or {}).get("type") or default
    if kind != "Localhost":
        return str(kind)
    name = (profile or {}).get("localhostProfile")
    if not name:
        raise ConfigError("localhostProfile must be set if seccompProfile type is Localhost.")
    path = os.path.normpath(os.path.join(profile_dir, name))
    if not path.startswith(f"{profile_dir}/"):
        raise ConfigError(f"seccomp profile {name} is outside of the node's profiles")
    return f"localhost/{path}"


def _apparmor(profile: Obj | None) -> str:
    kind = (profile or {}).get("type") or ""
    if kind != "Localhost":
        return str(kind)
    return f"localhost/{(profile or {}).get('localhostProfile') or ''}"


def _selinux(context: Obj) -> tuple[str, str, str, str] | None:
    options = context.get("seLinuxOptions")
    if not options:
        return None
    return (
        options.get("user") or "",
        options.get("role") or "",
        options.get("type") or "",
        options.get("level") or "",
    )
