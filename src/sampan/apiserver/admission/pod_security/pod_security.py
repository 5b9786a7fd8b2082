"""PodSecurity: the namespace's labels say which pod security standard its pods must meet.

Job: enforce refuses pods; audit notes and warn tells, of pods and of what makes pods.
Invariant: a label that cannot be read counts as restricted, and is refused when it is written.
"""

from sampan.api.calls import Item
from sampan.api.errors import FieldError, forbidden, invalid, invalid_value
from sampan.api.objects import Obj, labels_of, meta_of, name_of
from sampan.api.resources import NAMESPACES, PODS
from sampan.apiserver.admission.chain import UPDATE, Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.admission.settings import (
    LATEST,
    LEVELS,
    PRIVILEGED,
    RESTRICTED,
    PodSecuritySettings,
    Standard,
    Version,
)
from sampan.apiserver.registry.generic import Registry
from sampan.core.bounded import Bounded
from sampan.core.patterns import lazy_pattern

_LABEL = "pod-security.kubernetes.io/"
_MODES = ("enforce", "audit", "warn")
_ENFORCED, _PLAIN = f"{_LABEL}enforce-policy", "privileged:latest"
_VERSION = lazy_pattern(r"v1\.([0-9]|[1-9][0-9]*)")
MOST_NAMESPACES = 4096  # whose labels are remembered
MOST_PODS = 3000  # looked at when a namespace's label changes, as upstream
# Where the pod template of a kind that makes pods lies.
TEMPLATES = {
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("batch", "Job"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}


def plugin(initializer: PluginInitializer) -> Steps:
    registry, settings = initializer.registry, initializer.settings.pod_security
    namespaces = _Namespaces(registry, settings)

    def validate(attributes: Attributes) -> None:
        obj, resource = attributes.obj, attributes.resource
        if obj is None:
            return
        if resource is NAMESPACES and not attributes.subresource:
            _namespace(attributes, obj, registry, settings)
        elif resource is PODS:
            if attributes.subresource in ("", "ephemeralcontainers", "resize"):
                _pod(attributes, obj, namespaces.standards(attributes.namespace), settings)
        elif not attributes.subresource and (resource.group, resource.kind) in TEMPLATES:
            _template(attributes, obj, namespaces.standards(attributes.namespace), settings)

    return Steps(validate=validate)


class _Namespaces:
    """What each namespace's labels ask for; read again when the namespace is another one."""

    def __init__(self, registry: Registry, settings: PodSecuritySettings) -> None:
        self._kind, self._settings = registry.kind(NAMESPACES), settings
        self._known: Bounded[str, tuple[Item | None, dict[str, Standard] | None]] = Bounded(
            MOST_NAMESPACES
        )

    def standards(self, name: str) -> dict[str, Standard] | None:
        """None: nothing is asked of pods here, as in most namespaces."""
        item = self._kind.items.get(name)
        known = self._known.get(name)
        if known is None or known[0] is not item:
            wanted = _standards_of(item.obj if item is not None else {}, self._settings)
            known = self._known[name] = (item, wanted)
        return known[1]


def standards(labels: dict[str, str], settings: PodSecuritySettings) -> dict[str, Standard]:
    """Per mode; what cannot be read is restricted:latest."""
    found = {}
    for mode in _MODES:
        default = settings.defaults.get(mode, Standard())
        level = labels.get(f"{_LABEL}{mode}")
        version = labels.get(f"{_LABEL}{mode}-version")
        if level is None and version is None:
            found[mode] = default
            continue
        numbers = _version(version) if version is not None else None
        if (level is not None and level not in LEVELS) or (version is not None and numbers is None):
            found[mode] = Standard(RESTRICTED if mode == "enforce" else level or RESTRICTED)
            continue
        is_latest = version in (None, "latest")
        found[mode] = Standard(level or default.level, numbers or LATEST, is_latest)
    return found


def _standards_of(namespace: Obj, settings: PodSecuritySettings) -> dict[str, Standard] | None:
    labels = labels_of(namespace)
    if not settings.defaults and not any(key.startswith(_LABEL) for key in labels):
        return None
    return standards(labels, settings)


def _version(text: str) -> Version | None:
    if text == "latest":
        return LATEST
    matched = _VERSION.fullmatch(text)
    return (1, int(matched.group(1))) if matched else None


def _is_exempt(attributes: Attributes, spec: Obj, settings: PodSecuritySettings) -> bool:
    return (
        attributes.user.name in settings.exempt_users
        or attributes.namespace in settings.exempt_namespaces
        or (spec.get("runtimeClassName") or "") in settings.exempt_runtime_classes
    )


def _pod(
    attributes: Attributes,
    pod: Obj,
    wanted: dict[str, Standard] | None,
    settings: PodSecuritySettings,
) -> None:
    spec = pod.get("spec") or {}
    if attributes.operation == UPDATE and not attributes.subresource:
        old = attributes.old or {}
        if _as_seen(pod) == _as_seen(old):
            return  # nothing that a standard looks at has changed
    if _is_exempt(attributes, spec, settings):
        return
    if wanted is None:
        attributes.audit[_ENFORCED] = _PLAIN
        return
    # The checks are loaded by the first namespace that asks for a standard.
    from sampan.apiserver.admission.pod_security.checks import Pod, violations

    seen = Pod(meta_of(pod), spec)
    enforced = wanted["enforce"]
    wrong = violations(seen, enforced.level, min(enforced.version, LATEST))
    attributes.audit[_ENFORCED] = str(enforced)
    _tell(attributes, meta_of(pod), spec, wanted, without=("warn",) if wrong else ())
    if wrong:
        raise forbidden(
            "pods", "", attributes.called,
            f'violates PodSecurity "{enforced}": {", ".join(wrong)}',
        )  # fmt: skip


def _as_seen(pod: Obj) -> tuple[Obj, Obj]:
    notes = meta_of(pod).get("annotations") or {}
    return pod.get("spec") or {}, {key: notes[key] for key in notes if "security" in key}


def _template(
    attributes: Attributes,
    obj: Obj,
    wanted: dict[str, Standard] | None,
    settings: PodSecuritySettings,
) -> None:
    """What makes pods is never refused: only its pods would be."""
    if wanted is None:
        return
    found: Obj = obj
    for step in TEMPLATES[attributes.resource.group, attributes.resource.kind]:
        found = found.get(step) or {}
    spec = found.get("spec") or {}
    if spec and not _is_exempt(attributes, spec, settings):
        _tell(attributes, meta_of(found), spec, wanted, without=())


def _tell(
    attributes: Attributes,
    meta: Obj,
    spec: Obj,
    wanted: dict[str, Standard],
    without: tuple[str, ...],
) -> None:
    from sampan.apiserver.admission.pod_security.checks import Pod, violations

    pod = Pod(meta, spec)
    for mode in ("audit", "warn"):
        standard = wanted[mode]
        if mode in without or standard.level == PRIVILEGED:
            continue
        wrong = violations(pod, standard.level, min(standard.version, LATEST))
        if not wrong:
            continue
        text = f'would violate PodSecurity "{standard}": {", ".join(wrong)}'
        if mode == "warn":
            attributes.warnings.append(text)
        else:
            attributes.audit["pod-security.kubernetes.io/audit-violations"] = text


def _namespace(
    attributes: Attributes, namespace: Obj, registry: Registry, settings: PodSecuritySettings
) -> None:
    errors = _label_errors(labels_of(namespace))
    if errors and (attributes.old is None or labels_of(namespace) != labels_of(attributes.old)):
        raise invalid("Namespace", "", name_of(namespace), errors)
    if attributes.operation != UPDATE or name_of(namespace) in settings.exempt_namespaces:
        return
    new = standards(labels_of(namespace), settings)["enforce"]
    old = standards(labels_of(attributes.old or {}), settings)["enforce"]
    if new == old or new.level == PRIVILEGED:
        return
    _warn_of_existing(attributes, namespace, new, registry)


def _warn_of_existing(
    attributes: Attributes, namespace: Obj, standard: Standard, registry: Registry
) -> None:
    from sampan.apiserver.admission.pod_security.checks import Pod, violations

    kind = registry.kind(PODS)
    found: dict[str, list[str]] = {}
    name = name_of(namespace)
    for key in kind.keys(name)[:MOST_PODS]:
        pod = kind.items[key].obj
        wrong = violations(
            Pod(meta_of(pod), pod.get("spec") or {}), standard.level, min(standard.version, LATEST)
        )
        if wrong:
            reasons = ", ".join(item.partition(" (")[0] for item in wrong)
            found.setdefault(reasons, []).append(name_of(pod))
    if not found:
        return
    attributes.warnings.append(
        f'existing pods in namespace "{name}" violate the new PodSecurity enforce level '
        f'"{standard}"'
    )
    for reasons, names in found.items():
        others = f" (and {len(names) - 1} other pods)" if len(names) > 2 else ""
        others = " (and 1 other pod)" if len(names) == 2 else others
        attributes.warnings.append(f"{sorted(names)[0]}{others}: {reasons}")


def _label_errors(labels: dict[str, str]) -> list[FieldError]:
    errors = []
    for mode in _MODES:
        key, of_version = f"{_LABEL}{mode}", f"{_LABEL}{mode}-version"
        if key in labels and labels[key] not in LEVELS:
            why = f"must be one of {', '.join(LEVELS)}"
            errors.append(invalid_value(f"metadata.labels[{key}]", labels[key], why))
        if of_version in labels and _version(labels[of_version]) is None:
            why = 'must be "latest" or "v1.x"'
            errors.append(invalid_value(f"metadata.labels[{of_version}]", labels[of_version], why))
    return errors
