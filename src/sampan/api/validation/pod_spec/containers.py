"""The containers of a pod: normal, init (with sidecars among them) and ephemeral ones.

Job: the three lists of containers → causes.
Invariant: a name is used once in a pod, whatever the sort of container.
"""

from collections.abc import Collection

from sampan.api import features
from sampan.api.errors import (
    FieldError,
    duplicate,
    field_forbidden,
    field_not_found,
    invalid_value,
    not_supported,
    required_value,
    too_many,
)
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.api.rules.node_agent.restart_rules import RESTART, RESTART_ALL
from sampan.api.rules.node_agent.restart_rules import is_on as restarts_all_is_on
from sampan.api.rules.pods import is_sidecar
from sampan.api.validation.fields import validate_choice, validate_optional_choice
from sampan.api.validation.pod_spec.env import validate_env, validate_env_from
from sampan.api.validation.pod_spec.mounts import validate_mounts
from sampan.api.validation.pod_spec.network import validate_host_ports, validate_ports
from sampan.api.validation.pod_spec.probes import forbid_probes, validate_probes
from sampan.api.validation.pod_spec.resources import validate_container_resources
from sampan.api.validation.pod_spec.security import validate_container_security
from sampan.api.validation.pod_spec.volumes import PULL_POLICIES
from sampan.core.fast_dataclass import dataclass

Errors = list[FieldError]
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_EPHEMERAL_FIELDS = frozenset((
    "name", "image", "command", "args", "workingDir", "envFrom", "env", "volumeMounts",
    "volumeDevices", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy",
    "securityContext", "stdin", "stdinOnce", "tty", "targetContainerName",
))  # fmt: skip
_SIGNALS = {
    "linux": tuple(sorted((
        "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP",
        "SIGILL", "SIGINT", "SIGIO", "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF",
        "SIGPWR", "SIGQUIT", "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP",
        "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH",
        "SIGXCPU", "SIGXFSZ", "SIGRTMIN", "SIGRTMAX",
        *(f"SIGRTMIN+{number}" for number in range(1, 16)),
        *(f"SIGRTMAX-{number}" for number in range(1, 15)),
    ))),
    "windows": ("SIGKILL", "SIGTERM"),
}  # fmt: skip
_NEEDS_POLICY = "must specify restartPolicy when restart rules are used"
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a container's rules need to know of its pod."""

    volumes: dict[str, Obj]
    claims: Collection[str]
    grace_seconds: int | None
    restart_policy: str
    host_users: bool
    is_pod: bool
    system: str  # linux, windows, or nothing said


def validate_containers(spec: Obj, around: Surroundings, path: str, errors: Errors) -> None:
    containers = spec.get("containers") or ()
    if not containers:
        errors.append(required_value(f"{path}.containers"))
    seen: set[str] = set()
    for index, container in enumerate(containers):
        here = f"{path}.containers[{index}]"
        _validate_common(container, around, here, errors)
        name = container.get("name") or ""
        if name in seen:
            errors.append(duplicate(f"{here}.name", name))
        seen.add(name)
        validate_probes(container, around.grace_seconds, here, errors)
        _validate_stop_signal(container, around.system, here, errors)
        _validate_restart_rules(container, _RESTART_POLICIES, here, errors)
    validate_host_ports(list(enumerate(containers)), f"{path}.containers", set(), errors)
    if spec.get("initContainers"):
        _validate_init(spec["initContainers"], around, seen, f"{path}.initContainers", errors)
    if spec.get("ephemeralContainers"):
        _validate_ephemeral(spec, around, seen, f"{path}.ephemeralContainers", errors)


def _validate_init(
    containers: list[Obj], around: Surroundings, taken: set[str], path: str, errors: Errors
) -> None:
    for index, container in enumerate(containers):
        here = f"{path}[{index}]"
        _validate_common(container, around, here, errors)
        name = container.get("name") or ""
        if name in taken:
            errors.append(duplicate(f"{here}.name", name))
        elif name:
            taken.add(name)
        # Init containers run one by one, so that only their own ports can clash.
        validate_host_ports([(0, container)], path, set(), errors)
        if is_sidecar(container):
            validate_probes(container, around.grace_seconds, here, errors)
            _validate_stop_signal(container, around.system, here, errors)
            _validate_sidecar_rules(container, here, errors)
        else:
            forbid_probes(container, here, errors)
            _validate_own_rules(container, here, errors)


def _validate_ephemeral(
    spec: Obj, around: Surroundings, taken: set[str], path: str, errors: Errors
) -> None:
    others = frozenset(taken)
    for index, container in enumerate(spec["ephemeralContainers"]):
        here = f"{path}[{index}]"
        _validate_common(container, around, here, errors)
        name, target = container.get("name") or "", container.get("targetContainerName")
        if name in taken:
            errors.append(duplicate(f"{here}.name", name))
        taken.add(name)
        if target and target not in others:
            errors.append(field_not_found(f"{here}.targetContainerName", target))
        for key, value in container.items():
            if key not in _EPHEMERAL_FIELDS and value not in (None, {}, []):
                errors.append(field_forbidden(f"{here}.{key}", _NOT_EPHEMERAL))
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for key in ("subPath", "subPathExpr"):
                if mount.get(key):
                    field = f"{here}.volumeMounts[{number}].{key}"
                    errors.append(field_forbidden(field, _NOT_EPHEMERAL))


def _validate_common(container: Obj, around: Surroundings, path: str, errors: Errors) -> None:
    name, image = container.get("name"), container.get("image")
    if not name:
        errors.append(required_value(f"{path}.name"))
    else:
        for wrong in names.dns_label(name):
            errors.append(invalid_value(f"{path}.name", name, wrong))
    if not image:
        errors.append(required_value(f"{path}.image"))
    elif around.is_pod and image != image.strip():
        why = "must not have leading or trailing whitespace"
        errors.append(invalid_value(f"{path}.image", image, why))
    message = container.get("terminationMessagePolicy")
    if message != "File":
        validate_choice(message, _MESSAGE_POLICIES, f"{path}.terminationMessagePolicy", errors)
    if container.get("ports"):
        validate_ports(container["ports"], f"{path}.ports", errors)
    if container.get("env"):
        validate_env(container["env"], around.volumes, f"{path}.env", errors)
    if container.get("envFrom"):
        validate_env_from(container["envFrom"], f"{path}.envFrom", errors)
    validate_mounts(container, around.volumes, path, errors)
    pull = container.get("imagePullPolicy")
    if pull not in PULL_POLICIES:
        validate_choice(pull, PULL_POLICIES, f"{path}.imagePullPolicy", errors)
    if container.get("resources"):
        validate_container_resources(
            container["resources"], around.claims, f"{path}.resources", errors
        )
    if container.get("resizePolicy"):
        _validate_resize(
            container["resizePolicy"], around.restart_policy, f"{path}.resizePolicy", errors
        )
    if container.get("securityContext"):
        validate_container_security(
            container["securityContext"],
            f"{path}.securityContext",
            errors,
            host_users=around.host_users,
        )


def _validate_resize(policies: list[Obj], restart: str, path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, action = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
        validate_choice(name, ("cpu", "memory"), path, errors)
        validate_choice(action, ("NotRequired", "RestartContainer"), path, errors)
        if restart == "Never" and action != "NotRequired":
            whose = "pod " if features.changed("ContainerResizePolicyText") else ""
            why = f"must be 'NotRequired' when {whose}`restartPolicy` is 'Never'"
            errors.append(invalid_value(path, action, why))


def _validate_stop_signal(container: Obj, system: str, path: str, errors: Errors) -> None:
    signal = (container.get("lifecycle") or {}).get("stopSignal")
    if signal is None:
        return
    field = f"{path}.lifecycle.stopSignal"
    known = _SIGNALS.get(system, ())
    if not system:
        why = "may not be set for containers with empty `spec.os.name`"
        errors.append(field_forbidden(field, why))
    elif known and signal not in known:
        errors.append(not_supported(field, signal, known))


def _validate_restart_rules(
    container: Obj, policies: tuple[str, ...], path: str, errors: Errors
) -> None:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is not None and policy not in policies:
        errors.append(not_supported(f"{path}.restartPolicy", policy, policies))
    if not rules:
        return
    if policy is None:
        errors.append(required_value(f"{path}.restartPolicy", _NEEDS_POLICY))
    if len(rules) > 20:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), 20))
    for index, rule in enumerate(rules):
        _validate_restart_rule(rule, f"{path}.restartPolicyRules[{index}]", errors)


def _validate_own_rules(container: Obj, path: str, errors: Errors) -> None:
    """Of an init container: without a policy nothing more is said of its rules."""
    if container.get("restartPolicy") is not None:
        _validate_restart_rules(container, _RESTART_POLICIES, path, errors)
    elif container.get("restartPolicyRules"):
        errors.append(required_value(f"{path}.restartPolicy", _NEEDS_POLICY))


def _validate_sidecar_rules(container: Obj, path: str, errors: Errors) -> None:
    """One that restarts at every end has no rules, but those that restart the others with it."""
    if not restarts_all_is_on():
        if container.get("restartPolicyRules"):
            why = (
                "restartPolicyRules are not allowed for init containers with restart policy Always"
            )
            errors.append(field_forbidden(f"{path}.restartPolicyRules", why))
        return
    _validate_restart_rules(container, _RESTART_POLICIES, path, errors)


def _validate_restart_rule(rule: Obj, path: str, errors: Errors) -> None:
    actions = (RESTART, RESTART_ALL) if restarts_all_is_on() else (RESTART,)
    validate_optional_choice(rule.get("action") or "", actions, f"{path}.action", errors)
    codes = rule.get("exitCodes")
    if codes is None:
        errors.append(required_value(f"{path}.exitCodes", "must be specified"))
        return
    operator, choices = codes.get("operator") or "", ("In", "NotIn")
    validate_optional_choice(operator, choices, f"{path}.exitCodes.operator", errors)
    values = codes.get("values") or ()
    if len(values) > 255:
        errors.append(too_many(f"{path}.exitCodes.values", len(values), 255))
