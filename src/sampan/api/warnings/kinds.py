"""The warnings of the kinds that have any.

Job: from a group and kind to the function that gives its warnings. Pure.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator

from sampan.api import features
from sampan.api.custom import formats
from sampan.api.custom.structural import parts_of
from sampan.api.objects import Obj, annotations_of, name_of
from sampan.api.resources import QUESTIONS
from sampan.api.warnings.fields import (
    fraction,
    name_in_pods,
    node_term,
    odd_address,
    odd_network,
    old_annotation,
    old_label,
)
from sampan.api.warnings.pods import OLD_VOLUMES, pod_warnings, template_warnings

Give = Callable[[Obj, Obj | None], Iterable[str]]
_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
_OLD_STORAGE_CLASS = 'deprecated since v1.8; use "storageClassName" attribute instead'
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"
_INGRESS_CLASS = "kubernetes.io/ingress.class"
_HINTS = "service.kubernetes.io/topology-aware-hints"
_HISTORY = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; "
    "a value >= 0 is recommended"
)


def _spec(obj: Obj) -> Obj:
    found: Obj = obj.get("spec") or {}
    return found


def _is_changed(new: Obj, old: Obj | None) -> bool:
    """A controller's template is looked at again when anything of the spec has changed."""
    return old is None or _spec(new) != _spec(old)


def _with_template(*, named: bool) -> Give:
    """Of a kind that makes pods from a template; `named`: its name becomes part of theirs."""

    def give(new: Obj, old: Obj | None) -> Iterator[str]:
        if named and old is None:
            yield from name_in_pods(name_of(new))
        if _is_changed(new, old):
            yield from template_warnings(_spec(new).get("template") or {}, "spec.template")

    return give


def _stateful_set(new: Obj, old: Obj | None) -> Iterator[str]:
    if not _is_changed(new, old):
        return
    yield from template_warnings(_spec(new).get("template") or {}, "spec.template")
    for index, claim in enumerate(_spec(new).get("volumeClaimTemplates") or ()):
        requests = (_spec(claim).get("resources") or {}).get("requests")
        path = f"spec.volumeClaimTemplates[{index}].resources.requests"
        yield from fraction(requests, "storage", path)
    if (_spec(new).get("revisionHistoryLimit") or 0) < 0:
        yield _HISTORY


def _job(new: Obj, old: Obj | None) -> Iterator[str]:
    yield from _with_template(named=True)(new, old)
    spec = _spec(new)
    if (
        spec.get("completionMode") == "Indexed"
        and (spec.get("completions") or 0) > 100_000
        and (spec.get("parallelism") or 0) > 10_000
    ):
        yield (
            "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism "
            "higher than 10^4, Kubernetes might not be able to track completedIndexes when a big "
            "number of indexes fail"
        )


def _cron_job(new: Obj, old: Obj | None) -> Iterator[str]:
    if old is None:
        yield from name_in_pods(name_of(new))
    spec = _spec(new)
    if "TZ" in (spec.get("schedule") or ""):
        yield (
            "CRON_TZ or TZ used in spec.schedule is not officially supported, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )
    if _is_changed(new, old):
        template = _spec(spec.get("jobTemplate") or {}).get("template") or {}
        yield from template_warnings(template, "spec.jobTemplate.spec.template")


def _template_object(new: Obj, old: Obj | None) -> Iterator[str]:
    yield from template_warnings(new.get("template") or {}, "template")


def _service(new: Obj, old: Obj | None) -> Iterator[str]:
    spec = _spec(new)
    kind, headless = spec.get("type"), spec.get("clusterIP") == "None"
    if _HINTS in annotations_of(new):
        mode = "service.kubernetes.io/topology-mode"
        yield f"annotation {_HINTS} is deprecated, please use {mode} instead"
    if headless and kind == "ClusterIP":
        yield from _ignored_of_headless(spec)
    yield from _service_addresses(spec, not headless and kind != "ExternalName")
    if kind == "ExternalName" and spec.get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if kind != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'


def _ignored_of_headless(spec: Obj) -> Iterator[str]:
    for field in ("loadBalancerIP", "externalIPs"):
        if spec.get(field):
            yield f"spec.{field} is ignored for headless services"
    if spec.get("sessionAffinity") != "None":
        yield "spec.SessionAffinity is ignored for headless services"


def _service_addresses(spec: Obj, has_cluster_ips: bool) -> Iterator[str]:
    if has_cluster_ips:
        for index, address in enumerate(spec.get("clusterIPs") or ()):
            yield from odd_address(address, f"spec.clusterIPs[{index}]")
    for index, address in enumerate(spec.get("externalIPs") or ()):
        yield from odd_address(address, f"spec.externalIPs[{index}]")
    if has_cluster_ips and spec.get("externalIPs") and features.changed("ExternalIPsWarning"):
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if spec.get("loadBalancerIP"):
        yield from odd_address(spec["loadBalancerIP"], "spec.loadBalancerIP")
    for index, network in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from odd_network(network, f"spec.loadBalancerSourceRanges[{index}]")


def _endpoints(new: Obj, old: Obj | None) -> Iterator[str]:
    for index, subset in enumerate(new.get("subsets") or ()):
        for kind in ("addresses", "notReadyAddresses"):
            for number, item in enumerate(subset.get(kind) or ()):
                yield from odd_address(
                    item.get("ip") or "", f"subsets[{index}].{kind}[{number}].ip"
                )


def _endpoint_slice(new: Obj, old: Obj | None) -> Iterator[str]:
    if new.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
        return
    for index, endpoint in enumerate(new.get("endpoints") or ()):
        for number, address in enumerate(endpoint.get("addresses") or ()):
            yield from odd_address(address, f"spec.endpoints[{index}].addresses[{number}]")


def _volume(new: Obj, old: Obj | None) -> Iterator[str]:
    spec = _spec(new)
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead,"
            " the recommended approach is to use dynamic provisioning."
        )
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
        path = f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]"
        yield from node_term(term, path)
    yield from old_annotation(new, "", _STORAGE_CLASS, _OLD_STORAGE_CLASS)
    told = 'deprecated since v1.31; use "mountOptions" attribute instead'
    yield from old_annotation(new, "", _MOUNT_OPTIONS, told)
    for kind, why in OLD_VOLUMES.items():
        if spec.get(kind) is not None and kind != "gitRepo":
            yield f"spec.{'storageOS' if kind == 'storageos' else kind}: {why}"


def _claim(new: Obj, old: Obj | None) -> Iterator[str]:
    yield from old_annotation(new, "", _STORAGE_CLASS, _OLD_STORAGE_CLASS)
    requests = (_spec(new).get("resources") or {}).get("requests")
    yield from fraction(requests, "storage", "spec.resources.requests")


def _storage_class(new: Obj, old: Obj | None) -> Iterator[str]:
    for index, term in enumerate(new.get("allowedTopologies") or ()):
        for number, expression in enumerate(term.get("matchLabelExpressions") or ()):
            told = old_label(expression.get("key") or "")
            if told:
                path = f"allowedTopologies[{index}].matchLabelExpressions[{number}].key"
                yield f"{path}: {expression['key']} is {told}"


def _runtime_class(new: Obj, old: Obj | None) -> Iterator[str]:
    for key in sorted((new.get("scheduling") or {}).get("nodeSelector") or {}):
        told = old_label(key)
        if told:
            yield f"scheduling.nodeSelector: {key} is {told}"


def _node(new: Obj, old: Obj | None) -> Iterator[str]:
    if _spec(new).get("configSource") is not None:
        yield "spec.configSource: the feature is no longer supported"
    if _spec(new).get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def _ingress(new: Obj, old: Obj | None) -> Iterator[str]:
    if old is None and _INGRESS_CLASS in ((new.get("metadata") or {}).get("annotations") or {}):
        yield (
            f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' "
            "instead"
        )


def _network_policy(new: Obj, old: Obj | None) -> Iterator[str]:
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(_spec(new).get(direction) or ()):
            for number, peer in enumerate(rule.get(peers) or ()):
                block = peer.get("ipBlock") or {}
                path = f"spec.{direction}[{index}].{peers}[{number}].ipBlock"
                yield from odd_network(block.get("cidr") or "", f"{path}.cidr")
                for at, other in enumerate(block.get("except") or ()):
                    yield from odd_network(other, f"{path}.except[{at}]")


def _service_account(new: Obj, old: Obj | None) -> Iterator[str]:
    told = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    yield from old_annotation(new, "", _MOUNTABLE, told)


def _secret(new: Obj, old: Obj | None) -> Iterator[str]:
    """As Go's X509KeyPair, as far as can be seen without reading keys."""
    if new.get("type") != "kubernetes.io/tls":
        return
    data = new.get("data") or {}
    for key, word in (("tls.crt", "certificate"), ("tls.key", "key")):
        try:
            text = base64.b64decode(data.get(key) or "")
        except (binascii.Error, ValueError):
            text = b""
        if b"-----BEGIN " not in text:
            yield f"tls: failed to find any PEM data in {word} input"
            return


def _definition(new: Obj, _old: Obj | None) -> Iterator[str]:
    """Formats that nobody knows are not checked, and members of some sets not compared."""
    found: dict[str, None] = {}
    sets: set[str] = set()
    for version in _spec(new).get("versions") or ():
        waiting = [(version.get("schema") or {}).get("openAPIV3Schema") or {}]
        while waiting:
            part = waiting.pop()
            given = part.get("format")
            if given and not formats.is_known(given):
                found[given] = None
            items = part.get("items")
            if part.get("x-kubernetes-list-type") == "set" and isinstance(items, dict):
                sets.add(items.get("type") or "")
            waiting.extend(parts_of(part))
    yield from (f'unrecognized format "{given}"' for given in found)
    if features.changed("SetsOfObjectsWarning"):
        for kind in sorted(sets & {"array", "object"}):
            yield (
                f'x-kubernetes-list-type: set for items of type "{kind}" is not supported by '
                "server-side apply or CEL validation rules"
            )


def _csi_driver(new: Obj, old: Obj | None) -> Iterator[str]:
    if not features.enabled("CSIServiceAccountTokenSecrets"):
        return
    asked, before = _spec(new).get("tokenRequests"), _spec(old or {}).get("tokenRequests")
    if asked and asked != before and _spec(new).get("serviceAccountTokenInSecrets") is None:
        yield (
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to "
            "true to prevent possible logging of tokens in volume attributes"
        )


def _webhooks(new: Obj, _old: Obj | None) -> Iterator[str]:
    """Rules that name what no webhook is asked about."""
    if not features.enabled("ExcludeAdmissionWebhookVirtualResources"):
        return
    for number, hook in enumerate(new.get("webhooks") or ()):
        for index, rule in enumerate(hook.get("rules") or ()):
            groups, plurals = rule.get("apiGroups") or (), rule.get("resources") or ()
            named = dict.fromkeys((group, plural) for group in groups for plural in plurals)
            if "*" in groups or "*" in plurals:
                continue
            for group, plural in named:
                if (group, plural) in QUESTIONS:
                    yield (
                        f"webhooks[{number}].rules[{index}]: {plural}.{group} is excluded from "
                        "admission webhooks; this rule will have no effect"
                    )


TABLE: dict[tuple[str, str], Give] = {
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _webhooks,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _webhooks,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("", "Endpoints"): _endpoints,
    ("", "Node"): _node,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): pod_warnings,
    ("", "PodTemplate"): _template_object,
    ("", "ReplicationController"): _with_template(named=True),
    ("", "Secret"): _secret,
    ("", "Service"): _service,
    ("", "ServiceAccount"): _service_account,
    ("apps", "DaemonSet"): _with_template(named=False),
    ("apps", "Deployment"): _with_template(named=True),
    ("apps", "ReplicaSet"): _with_template(named=True),
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    ("discovery.k8s.io", "EndpointSlice"): _endpoint_slice,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    ("node.k8s.io", "RuntimeClass"): _runtime_class,
    ("storage.k8s.io", "CSIDriver"): _csi_driver,
    ("storage.k8s.io", "StorageClass"): _storage_class,
}
