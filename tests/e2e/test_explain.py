"""kubectl explain of whole kinds, compared with the published definitions field by field [A5, C6].

kubectl draws the tree from the OpenAPI documents that the server publishes; the expected one is
walked here from the definitions themselves.
"""

import os
import re
import subprocess

import pytest

from sampan.api.resources import RESOURCES
from sampan.api.schema.published import Schema
from tests.support.parts.served_api import served_api

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]

KINDS = (
    "pods", "deployments.apps", "cronjobs.batch", "services", "ingresses.networking.k8s.io",
    "persistentvolumes", "horizontalpodautoscalers.autoscaling", "endpointslices.discovery.k8s.io",
    "clusterroles.rbac.authorization.k8s.io", "flowschemas.flowcontrol.apiserver.k8s.io",
    "resourceclaims.resource.k8s.io", "certificatesigningrequests.certificates.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io", "poddisruptionbudgets.policy",
)  # fmt: skip
FIELD = re.compile(r"^((?:  )+)(\S+)\t<(\S+)>")


@pytest.fixture(scope="module")
def schema():
    return Schema.load()


@pytest.fixture(scope="module")
def explain(schema, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with served_api(schema, tmp_path_factory.mktemp("served")) as api:
        known = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(api.admin)}

        def explained(kind):
            command = ["kubectl", "explain", kind, "--recursive"]
            done = subprocess.run(command, env=known, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            return done.stdout

        yield explained


def resource_named(name):
    plural, _, group = name.partition(".")
    found = [one for one in RESOURCES if (one.plural, one.group) == (plural, group)]
    return max(found, key=lambda one: one.version)  # of two versions, v2 is the preferred one


def tree(schema, name, before=()):
    """Every field below a type, in the order in which kubectl shows them; not into itself."""
    for key, kind in sorted(schema.fields_of(name).items()):
        yield (*before, key)
        inner = kind
        while inner.element is not None:
            inner = inner.element
        if inner.shape == "object" and inner.name:
            yield from tree(schema, inner.name, (*before, key))


def shown(text):
    way = []
    for line in text.partition("FIELDS:")[2].splitlines():
        found = FIELD.match(line)
        if found is not None:
            way[len(found[1]) // 2 - 1 :] = [found[2]]
            yield tuple(way)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_shown_where_it_belongs(explain, schema, kind):
    resource = resource_named(kind)
    said = explain(kind)
    assert re.search(rf"(?m)^KIND: +{resource.kind}$", said)
    expected = list(tree(schema, schema.name_of(resource.api_version, resource.kind)))
    assert len(expected) > 30
    assert list(shown(said)) == expected
