"""What a caller is warned about, kind by kind."""

import pytest

from sampan.api.resources import by_kind
from sampan.api.warnings import warnings_of

POD = {"containers": [{"name": "c", "image": "i"}]}
DOTTED = (
    "which can result in surprising behavior; a DNS label is recommended: [must not contain dots]"
)


def warned(api_version, kind, old=None, name="web", annotations=None, **parts):
    resource = by_kind(api_version, kind)
    meta = {"name": name, "annotations": annotations or {}}
    return warnings_of(resource, {"metadata": meta, **parts}, old)


def of_pod(annotations=None, **spec):
    return warned("v1", "Pod", annotations=annotations, spec={**POD, **spec})


def test_an_ordinary_pod_gives_none():
    """[A4]"""
    assert of_pod() == []


@pytest.mark.kubernetes("1.37")
@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
         'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os"'
         " instead"),
        ({"volumes": [{"name": "a", "rbd": {}}]},
         "spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+"),
        ({"terminationGracePeriodSeconds": -1},
         "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be"
         " treated as 1"),
        ({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
         'spec.imagePullSecrets[1].name: duplicate name "a"'),
        ({"topologySpreadConstraints": [{"topologyKey": "zone"}]},
         "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching"
         " no pod"),
        ({"hostAliases": [{"ip": "010.0.0.1"}]},
         'spec.hostAliases[0].ip: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"'),
    ],
)  # fmt: skip
def test_what_is_old_or_odd_in_a_pod(spec, told):
    """[A4]"""
    assert of_pod(**spec) == [told]


@pytest.mark.kubernetes("1.35")
def test_odd_addresses_were_once_to_become_invalid():
    assert of_pod(hostAliases=[{"ip": "010.0.0.1"}]) == [
        'spec.hostAliases[0].ip: non-standard IP address "010.0.0.1" will be considered invalid in'
        ' a future Kubernetes release: use "10.0.0.1"'
    ]


def test_old_annotations_of_a_pod():
    key = "container.apparmor.security.beta.kubernetes.io/c"
    told = 'deprecated since v1.30; use the "appArmorProfile" field instead'
    assert of_pod({key: "runtime/default"}) == [f"metadata.annotations[{key}]: {told}"]
    safe = {**POD["containers"][0], "securityContext": {"appArmorProfile": {"type": "Unconfined"}}}
    assert of_pod({key: "runtime/default"}, containers=[safe]) == []


def test_ports_and_variables_that_are_there_twice():
    ports = [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "TCP"}]
    env = [{"name": "A", "value": "a"}, {"name": "A", "value": "$(A):b"}, {"name": "A"}]
    told = of_pod(containers=[{"name": "c", "ports": ports, "env": env}])
    assert told == [
        'spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when'
        " using apply",
        "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
    ]


def test_a_template_is_looked_at_when_it_changes():
    spec = {"template": {"spec": {**POD, "volumes": [{"name": "g", "gitRepo": {}}]}}}
    told = [
        "spec.template.spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in"
        " v1.33+"
    ]
    assert warned("apps/v1", "Deployment", spec=spec) == told
    assert warned("apps/v1", "Deployment", old={"spec": spec}, spec=spec) == []
    assert warned("apps/v1", "Deployment", old={"spec": {}}, spec=spec) == told


def test_a_name_with_dots_ends_up_in_hostnames():
    spec = {"template": {"spec": POD}}
    in_names = f"metadata.name: this is used in Pod names and hostnames, {DOTTED}"
    assert warned("apps/v1", "Deployment", name="a.b", spec=spec) == [in_names]
    assert warned("apps/v1", "DaemonSet", name="a.b", spec=spec) == []
    in_hostname = f"metadata.name: this is used in the Pod's hostname, {DOTTED}"
    assert warned("v1", "Pod", name="a.b", spec=POD) == [in_hostname]


def test_other_kinds_have_their_own():
    headless = {"type": "ClusterIP", "clusterIP": "None", "externalIPs": ["1.2.3.4"]}
    assert warned("v1", "Service", spec={**headless, "sessionAffinity": "None"}) == [
        "spec.externalIPs is ignored for headless services"
    ]
    assert warned(
        "networking.k8s.io/v1", "Ingress", annotations={"kubernetes.io/ingress.class": "a"}
    ) == [
        'annotation "kubernetes.io/ingress.class" is deprecated, please use'
        " 'spec.ingressClassName' instead"
    ]
    assert warned("discovery.k8s.io/v1", "EndpointSlice", addressType="FQDN") == [
        "spec.addressType: FQDN endpoints are deprecated"
    ]
    assert warned(
        "v1", "PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "1m"}}}
    ) == [
        'spec.resources.requests[storage]: fractional byte value "1m" is invalid, must be an'
        " integer"
    ]
    assert warned("v1", "ConfigMap") == []
