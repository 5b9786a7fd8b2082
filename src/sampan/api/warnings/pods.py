"""Warnings about pods and pod templates.

Job: what is deprecated, doubled or without effect in a pod. Pure.
"""

from collections.abc import Callable, Iterator, Sequence

from sampan.api.objects import Obj, name_of, spec_of
from sampan.api.warnings.fields import fraction, name_in_pods, node_term, odd_address, old_label

_OLD_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
    "security.alpha.kubernetes.io/unsafe-sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
}
OLD_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_OLD_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_OLD_APP_ARMOR = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_MOST_ALIKE = 16  # ports that another is compared with: of 20 000 equal ones all pairs have no end
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod_warnings(new: Obj, old: Obj | None) -> Iterator[str]:
    if old is None:
        yield from name_warnings(new)
    yield from template_warnings(new, "")


def name_warnings(pod: Obj) -> Iterator[str]:
    """Of a new pod: all that does not come from its template."""
    return name_in_pods(name_of(pod), hostname=True)


def template_warnings(template: Obj, path: str) -> Iterator[str]:
    """`path` is that of a template, empty for a pod itself."""
    path = f"{path}." if path else ""
    spec = template.get("spec") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    yield from _field_warnings(_PLACEMENT, spec, f"{path}spec")
    if annotations:
        yield from _old_annotations(annotations, path)
    yield from _field_warnings(_CONTENTS, spec, f"{path}spec")
    if annotations:
        profile = (spec.get("securityContext") or {}).get("seccompProfile")
        if profile is None and _SECCOMP_POD in annotations:
            yield f"{path}metadata.annotations[{_SECCOMP_POD}]: {_OLD_SECCOMP}"
    yield from _container_warnings(spec, annotations, path)
    yield from _field_warnings(_ENDS, spec, f"{path}spec")


def _field_warnings(checks: "Checks", spec: Obj, path: str) -> Iterator[str]:
    """Every create of a pod comes by here: most have none of the fields that are looked at."""
    for fields, check in checks:
        if not fields.isdisjoint(spec):
            yield from check(spec, path)


def _old_annotations(annotations: Obj, path: str) -> Iterator[str]:
    for key, told in _OLD_ANNOTATIONS.items():
        if key in annotations:
            yield f"{path}metadata.annotations[{key}]: {told}"


def _overhead(spec: Obj, path: str) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        yield from fraction(spec["overhead"], name, f"{path}.overhead")


def _grace_period(spec: Obj, path: str) -> Iterator[str]:
    seconds = spec["terminationGracePeriodSeconds"]
    if seconds is not None and seconds < 0:
        yield (
            f"{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid "
            "and will be treated as 1"
        )


def _container_warnings(spec: Obj, annotations: Obj, path: str) -> Iterator[str]:
    has_ports = False
    for container, here in _containers(spec, f"{path}spec"):
        if annotations:
            yield from _profiles(container, spec, annotations, path)
        if container.get("resources") or "env" in container:
            yield from _container(container, here)
        has_ports = has_ports or "ports" in container
    if has_ports:
        yield from _ports(spec, f"{path}spec")


def _placement(spec: Obj, path: str) -> Iterator[str]:
    for key in sorted(spec.get("nodeSelector") or {}):
        told = old_label(key)
        if told:
            yield f"{path}.nodeSelector[{key}]: {told}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    yield from _node_affinity(affinity, f"{path}.affinity.nodeAffinity")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        here = f"{path}.topologySpreadConstraints[{index}]"
        told = old_label(constraint.get("topologyKey") or "")
        if told:
            yield f"{here}.topologyKey: {constraint['topologyKey']} is {told}"
        if constraint.get("labelSelector") is None:
            yield f"{here}.labelSelector: {_NO_SELECTOR}"


def _node_affinity(affinity: Obj, path: str) -> Iterator[str]:
    for index, term in enumerate((affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from node_term(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        yield from node_term(
            term.get("preference") or {}, f"{path}.{_PREFERRED}[{index}].preference"
        )


def _pod_affinity(spec: Obj, path: str) -> Iterator[str]:
    affinity, path = spec.get("affinity") or {}, f"{path}.affinity"
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for index, term in enumerate(terms.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{path}.{kind}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
        for index, weighted in enumerate(terms.get(_PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                here = f"{path}.{kind}.{_PREFERRED}[{index}].podAffinityTerm"
                yield f"{here}.labelSelector: {_NO_SELECTOR}"


def _volumes(spec: Obj, path: str) -> Iterator[str]:
    volumes = spec.get("volumes") or ()
    for index, volume in enumerate(volumes):
        here = f"{path}.volumes[{index}]"
        for kind, told in OLD_VOLUMES.items():
            if volume.get(kind) is not None:
                yield f"{here}.{'storageOS' if kind == 'storageos' else kind}: {told}"
        claim = spec_of((volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {})
        requests = (claim.get("resources") or {}).get("requests")
        claim_path = f"{here}.ephemeral.volumeClaimTemplate.spec.resources.requests"
        yield from fraction(requests, "storage", claim_path)
    sources = [
        (index, source) for index, volume in enumerate(volumes) for source in _sources(volume)
    ]
    tokens = {
        source["serviceAccountToken"].get("path")
        for _, source in sources
        if source.get("serviceAccountToken")
    }
    for index, source in sources if tokens else ():
        yield from _taken_paths(source, tokens, f"{path}.volumes[{index}].projected.sources")


def _sources(volume: Obj) -> Sequence[Obj]:
    found: Sequence[Obj] = (volume.get("projected") or {}).get("sources") or ()
    return found


def _taken_paths(source: Obj, tokens: set[str | None], path: str) -> Iterator[str]:
    shown = {"configMap": "configMap", "secret": "secrets", "downwardAPI": "downwardAPI"}
    for kind, word in shown.items():
        for index, item in enumerate((source.get(kind) or {}).get("items") or ()):
            if item.get("path") in tokens:
                yield (
                    f"{path}.{word}[{index}]: has duplicated path with ServiceAccountToken "
                    f'"{item["path"]}"'
                )


def _doubles(spec: Obj, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        ip = alias.get("ip") or ""
        if ip in seen:
            yield f'{path}.hostAliases[{index}].ip: duplicate ip "{ip}"'
        seen.add(ip)
        yield from odd_address(ip, f"{path}.hostAliases[{index}].ip")
    seen = set()
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        name = secret.get("name") or ""
        if name in seen:
            yield f'{path}.imagePullSecrets[{index}].name: duplicate name "{name}"'
        seen.add(name)
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _containers(spec: Obj, path: str) -> Iterator[tuple[Obj, str]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield container, f"{path}.{kind}[{index}]"


def _profiles(container: Obj, spec: Obj, annotations: Obj, path: str) -> Iterator[str]:
    context, name = container.get("securityContext") or {}, container.get("name") or ""
    if context.get("seccompProfile") is None and _SECCOMP + name in annotations:
        yield f"{path}metadata.annotations[{_SECCOMP}{name}]: {_OLD_SECCOMP}"
    shared = (spec.get("securityContext") or {}).get("appArmorProfile")
    has_field = shared is not None or context.get("appArmorProfile") is not None
    if not has_field and _APP_ARMOR + name in annotations:
        yield f"{path}metadata.annotations[{_APP_ARMOR}{name}]: {_OLD_APP_ARMOR}"


def _container(container: Obj, path: str) -> Iterator[str]:
    resources = container.get("resources") or {}
    for name in ("memory", "ephemeral-storage"):
        for kind in ("limits", "requests"):
            yield from fraction(resources.get(kind), name, f"{path}.resources.{kind}")
    seen: set[str] = set()
    for index, variable in enumerate(container.get("env") or ()):
        name = variable.get("name") or ""
        value, reference = variable.get("value") or "", f"$({name})"
        extends = reference in value and value != reference and not variable.get("valueFrom")
        if name in seen and not extends:
            yield (
                f'{path}.env[{index}]: hides previous definition of "{name}", which may be dropped '
                "when using apply"
            )
        seen.add(name)


def _ports(spec: Obj, path: str) -> Iterator[str]:
    known: dict[tuple[int, str], list[tuple[Obj, str]]] = {}
    for container, here in _containers(spec, path):
        for index, port in enumerate(container.get("ports") or ()):
            field = f"{here}.ports[{index}]"
            if port.get("hostIP") and not port.get("hostPort"):
                yield f"{field}: hostIP set without hostPort: {_port_text(port)}"
            key = (port.get("containerPort") or 0, port.get("protocol") or "")
            for other, other_field in known.get(key, ()):
                yield from _port_clash(port, other, field, other_field)
            alike = known.setdefault(key, [])
            if len(alike) < _MOST_ALIKE:
                alike.append((port, field))


def _port_clash(port: Obj, other: Obj, field: str, other_field: str) -> Iterator[str]:
    ip, host = port.get("hostIP") or "", port.get("hostPort") or 0
    other_ip, other_host = other.get("hostIP") or "", other.get("hostPort") or 0
    if (ip, host) == (other_ip, other_host):
        yield f"{field}: duplicate port definition with {other_field}"
    elif not host or not other_host:
        yield f"{field}: overlapping port definition with {other_field}"
    elif host == other_host and (not ip or not other_ip):
        yield f"{field}: dangerously ambiguous port definition with {other_field}"


def _port_text(port: Obj) -> str:
    return (
        f"{{Name:{port.get('name') or ''} HostPort:{port.get('hostPort') or 0} "
        f"ContainerPort:{port.get('containerPort') or 0} Protocol:{port.get('protocol') or ''} "
        f"HostIP:{port.get('hostIP') or ''}}}"
    )


Checks = tuple[tuple[frozenset[str], Callable[[Obj, str], Iterator[str]]], ...]
# In the order in which they are told, each with the fields of a pod's spec that it looks at.
_PLACEMENT: Checks = (
    (frozenset({"nodeSelector", "affinity", "topologySpreadConstraints"}), _placement),
)
_CONTENTS: Checks = (
    (frozenset({"volumes"}), _volumes),
    (frozenset({"hostAliases", "imagePullSecrets"}), _doubles),
    (frozenset({"overhead"}), _overhead),
)
_ENDS: Checks = (
    (frozenset({"terminationGracePeriodSeconds"}), _grace_period),
    (frozenset({"affinity"}), _pod_affinity),
)
