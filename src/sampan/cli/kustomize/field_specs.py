"""Which fields a kustomization changes in which kinds, unless it says more.

Job: the specs of kustomize v5.7.1, and what a file of `configurations` adds to them.
Invariant: a section that is not known is refused by name.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from sampan.api.objects import Obj
from sampan.cli.errors import CliError
from sampan.cli.kustomize.field_paths import FieldSpec
from sampan.cli.kustomize.resource import Gvk, gvk_of
from sampan.core.fast_dataclass import dataclass

_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
_TEMPLATES = ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job")
# Kind → where its pods are described.
_PODS = {
    "Pod": "spec", "PodTemplate": "template/spec", "CronJob": "spec/jobTemplate/spec/template/spec",
    **dict.fromkeys(_TEMPLATES, "spec/template/spec"),
}  # fmt: skip
_FEWER_PODS = {
    **{kind: path for kind, path in _PODS.items() if kind not in ("PodTemplate", "ReplicaSet")},
    "ReplicationController": "spec/template/spec",
}
_ENV = ("containers/env/valueFrom/{0}KeyRef/name", "initContainers/env/valueFrom/{0}KeyRef/name",
        "containers/envFrom/{0}Ref/name", "initContainers/envFrom/{0}Ref/name")  # fmt: skip
_IN_RULES = (("rules/resourceNames", "Role"), ("rules/resourceNames", "ClusterRole"))
_NGINX = "metadata/annotations/nginx.ingress.kubernetes.io\\/"
SECTIONS = ("namePrefix", "nameSuffix", "namespace", "commonLabels", "templateLabels", "labels",
            "commonAnnotations", "images", "replicas", "varReference")  # fmt: skip


@dataclass(slots=True)
class NameReference:
    """Objects of this kind are named by those fields."""

    gvk: Gvk
    referrers: list[FieldSpec]


@dataclass(slots=True)
class FieldSpecs:
    sections: dict[str, list[FieldSpec]] = field(default_factory=dict)
    name_references: list[NameReference] = field(default_factory=list)

    def of(self, section: str) -> Sequence[FieldSpec]:
        return self.sections.get(section, ())

    def add(self, written: Obj, path: str) -> None:
        """What a file of `configurations` says. Raises CliError."""
        for section, entries in written.items():
            if section == "nameReference":
                for entry in entries or []:
                    self._add_reference(gvk_of(entry), _specs(entry.get("fieldSpecs")))
            elif section in SECTIONS:
                own = self.sections.setdefault(section, [])
                own += [spec for spec in _specs(entries) if spec not in own]
            else:
                raise CliError(f"{path}: configuration not supported: {section}")

    def add_all(self, other: "FieldSpecs") -> None:
        for section, specs in other.sections.items():
            own = self.sections.setdefault(section, [])
            own += [spec for spec in specs if spec not in own]
        for reference in other.name_references:
            self._add_reference(reference.gvk, reference.referrers)

    def _add_reference(self, gvk: Gvk, referrers: Iterable[FieldSpec]) -> None:
        own = next((each for each in self.name_references if each.gvk == gvk), None)
        if own is None:
            own = NameReference(gvk, [])
            self.name_references.append(own)
        own.referrers += [spec for spec in referrers if spec not in own.referrers]


def _specs(written: Iterable[Obj] | None) -> list[FieldSpec]:
    return [spec_of(entry) for entry in written or ()]


def spec_of(entry: Obj) -> FieldSpec:
    return FieldSpec(str(entry.get("path") or ""), gvk_of(entry), bool(entry.get("create")))


def defaults() -> FieldSpecs:
    every = [FieldSpec("metadata/name")]
    labels = [FieldSpec("metadata/labels", create=True), *_in_templates("labels")]
    return FieldSpecs(
        {
            "namePrefix": list(every), "nameSuffix": list(every), "labels": [],
            "namespace": list(_namespaces()), "templateLabels": list(labels),
            "commonLabels": [*labels, *_selectors()],
            "commonAnnotations": [
                FieldSpec("metadata/annotations", create=True), *_in_templates("annotations"),
            ],
            "images": list(_images()),
            "replicas": [
                FieldSpec("spec/replicas", Gvk(kind=kind), create=True)
                for kind in ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
            ],
            "varReference": list(_variables()),
        },
        list(_name_references()),
    )  # fmt: skip


def _variables() -> Iterator[FieldSpec]:
    """Where $(NAME) is looked for."""
    for kind in ("CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "StatefulSet"):
        pod, gvk = _PODS[kind], Gvk(kind=kind)
        for containers in ("containers", "initContainers"):
            for path in ("args", "command", "env/value", "volumeMounts/mountPath"):
                yield FieldSpec(f"{pod}/{containers}/{path}", gvk)
    # As upstream has it, where it looks wrong, too.
    nfs = {
        "CronJob": "spec/jobTemplate/spec/template/volumes",
        "StatefulSet": "spec/volumeClaimTemplates/spec", "PersistentVolume": "spec",
        "Pod": "spec/volumes",
        **dict.fromkeys(("DaemonSet", "Deployment", "Job", "ReplicaSet"), "spec/template/spec/volumes"),
    }  # fmt: skip
    yield from (FieldSpec(f"{path}/nfs/server", Gvk(kind=kind)) for kind, path in nfs.items())
    yield FieldSpec("spec/template/metadata/annotations", Gvk(kind="Deployment"))
    for path in ("spec/rules/host", "spec/tls/hosts", "spec/tls/secretName"):
        yield FieldSpec(path, Gvk(kind="Ingress"))
    for path in ("spec/ports/port", "spec/ports/targetPort"):
        yield FieldSpec(path, Gvk(kind="Service"))
    yield from (FieldSpec("metadata/labels"), FieldSpec("metadata/annotations"))


def _namespaces() -> Iterator[FieldSpec]:
    yield FieldSpec("metadata/name", Gvk(kind="Namespace"), create=True)
    services = Gvk("apiregistration.k8s.io", "", "APIService")
    yield FieldSpec("spec/service/namespace", services, create=True)
    definitions = Gvk("apiextensions.k8s.io", "", "CustomResourceDefinition")
    yield FieldSpec("spec/conversion/webhook/clientConfig/service/namespace", definitions)


def _images() -> Iterator[FieldSpec]:
    for pod in ("spec", "spec/template/spec"):
        for path in ("containers[]/image", "initContainers[]/image", "volumes[]/image/reference"):
            yield FieldSpec(f"{pod}/{path}", create=True)


def _in_templates(what: str) -> Iterator[FieldSpec]:
    yield FieldSpec(
        f"spec/template/metadata/{what}", Gvk("", "v1", "ReplicationController"), create=True
    )
    groups = {"Job": "batch", "StatefulSet": "apps" if what == "labels" else ""}
    for kind in _TEMPLATES:
        gvk = Gvk(groups.get(kind, ""), "", kind)
        yield FieldSpec(f"spec/template/metadata/{what}", gvk, create=True)
    if what == "labels":
        claims = "spec/volumeClaimTemplates[]/metadata/labels"
        yield FieldSpec(claims, Gvk("apps", "", "StatefulSet"), create=True)
    for path in ("spec/jobTemplate/metadata", "spec/jobTemplate/spec/template/metadata"):
        yield FieldSpec(f"{path}/{what}", Gvk("batch", "", "CronJob"), create=True)


def _selectors() -> Iterator[FieldSpec]:
    for kind in ("Service", "ReplicationController"):
        yield FieldSpec("spec/selector", Gvk("", "v1", kind), create=True)
    for group, kind in (("", "Deployment"), ("", "ReplicaSet"), ("", "DaemonSet"),
                        ("apps", "StatefulSet")):  # fmt: skip
        yield FieldSpec("spec/selector/matchLabels", Gvk(group, "", kind), create=True)
    term = "podAffinityTerm/labelSelector/matchLabels"
    during = "DuringSchedulingIgnoredDuringExecution"
    for group, kind in (("", "Deployment"), ("apps", "StatefulSet")):
        gvk = Gvk(group, "", kind)
        for affinity in ("podAffinity", "podAntiAffinity"):
            at = f"spec/template/spec/affinity/{affinity}"
            yield FieldSpec(f"{at}/preferred{during}/{term}", gvk)
            yield FieldSpec(f"{at}/required{during}/labelSelector/matchLabels", gvk)
        spread = "spec/template/spec/topologySpreadConstraints/labelSelector/matchLabels"
        yield FieldSpec(spread, gvk)
    yield FieldSpec("spec/selector/matchLabels", Gvk("batch", "", "Job"))
    yield FieldSpec("spec/jobTemplate/spec/selector/matchLabels", Gvk("batch", "", "CronJob"))
    yield FieldSpec("spec/selector/matchLabels", Gvk("policy", "", "PodDisruptionBudget"))
    policies = Gvk("networking.k8s.io", "", "NetworkPolicy")
    for place in ("spec", "spec/ingress/from", "spec/egress/to"):
        yield FieldSpec(f"{place}/podSelector/matchLabels", policies)


def _name_references() -> Iterator[NameReference]:
    scaled = [FieldSpec("spec/scaleTargetRef/name", Gvk(kind="HorizontalPodAutoscaler"))]
    for kind in ("Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"):
        yield NameReference(Gvk(kind=kind), list(scaled))
    yield NameReference(Gvk("", "v1", "ConfigMap"), [
        *_of_pods("volumes/configMap/name", *(path.format("configMap") for path in _ENV),
                  "volumes/projected/sources/configMap/name"),
        *_plain(("spec/configSource/configMap", "Node"), *_IN_RULES,
                (f"{_NGINX}fastcgi-params-configmap", "Ingress")),
    ])  # fmt: skip
    yield NameReference(Gvk("", "v1", "Secret"), [
        *_of_pods("volumes/secret/secretName", *(path.format("secret") for path in _ENV),
                  "imagePullSecrets/name", "volumes/projected/sources/secret/name"),
        *_plain(("spec/tls/secretName", "Ingress"),
                ("metadata/annotations/ingress.kubernetes.io\\/auth-secret", "Ingress"),
                (f"{_NGINX}auth-secret", "Ingress"), (f"{_NGINX}auth-tls-secret", "Ingress"),
                ("imagePullSecrets/name", "ServiceAccount"),
                *((f"parameters/{name}", "StorageClass") for name in
                  ("secretName", "adminSecretName", "userSecretName", "secretRef")),
                *_IN_RULES, ("spec/azureFile/secretName", "PersistentVolume")),
        FieldSpec("spec/template/spec/containers/env/valueFrom/secretKeyRef/name",
                  Gvk("serving.knative.dev", "v1", "Service")),
    ])  # fmt: skip
    yield NameReference(Gvk("", "v1", "Service"), [
        FieldSpec("spec/serviceName", Gvk("apps", "", "StatefulSet")),
        *_plain(*((f"spec/{path}", "Ingress") for path in
                  ("rules/http/paths/backend/serviceName", "backend/serviceName",
                   "rules/http/paths/backend/service/name", "defaultBackend/service/name"))),
        FieldSpec("spec/service/name", Gvk("apiregistration.k8s.io", "", "APIService")),
        *(FieldSpec("webhooks/clientConfig/service", Gvk(_ADMISSION, "", f"{kind}Configuration"))
          for kind in ("ValidatingWebhook", "MutatingWebhook")),
    ])  # fmt: skip
    bindings = [FieldSpec("roleRef/name", Gvk(_RBAC, "", "RoleBinding"))]
    yield NameReference(Gvk(_RBAC, "", "Role"), list(bindings))
    all_bindings = [*bindings, FieldSpec("roleRef/name", Gvk(_RBAC, "", "ClusterRoleBinding"))]
    yield NameReference(Gvk(_RBAC, "", "ClusterRole"), all_bindings)
    yield NameReference(Gvk("", "v1", "ServiceAccount"), [
        *(FieldSpec("subjects", spec.gvk) for spec in all_bindings),
        *_of_pods("serviceAccountName", kinds=_FEWER_PODS),
    ])  # fmt: skip
    claims = _of_pods("volumes/persistentVolumeClaim/claimName", kinds=_FEWER_PODS)
    yield NameReference(Gvk("", "v1", "PersistentVolumeClaim"), list(claims))
    volumes = (("spec/volumeName", "PersistentVolumeClaim"), ("rules/resourceNames", "ClusterRole"))
    yield NameReference(Gvk("", "v1", "PersistentVolume"), list(_plain(*volumes)))
    yield NameReference(Gvk("storage.k8s.io", "v1", "StorageClass"), list(_plain(
        ("spec/storageClassName", "PersistentVolume"),
        ("spec/storageClassName", "PersistentVolumeClaim"),
        ("spec/volumeClaimTemplates/spec/storageClassName", "StatefulSet"),
    )))  # fmt: skip
    priorities = _of_pods("priorityClassName", kinds=_FEWER_PODS)
    yield NameReference(Gvk("scheduling.k8s.io", "v1", "PriorityClass"), list(priorities))
    policies = Gvk(_ADMISSION, "", "ValidatingAdmissionPolicyBinding")
    yield NameReference(
        Gvk(_ADMISSION, "", "ValidatingAdmissionPolicy"), [FieldSpec("spec/policyName", policies)]
    )


def _plain(*fields: tuple[str, str]) -> Iterator[FieldSpec]:
    return (FieldSpec(path, Gvk(kind=kind)) for path, kind in fields)


def _of_pods(*paths: str, kinds: dict[str, str] = _PODS) -> Iterator[FieldSpec]:
    for kind, place in kinds.items():
        for path in paths:
            yield FieldSpec(f"{place}/{path}", Gvk(kind=kind))
