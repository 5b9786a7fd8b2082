import pytest

from sampan.api import features
from sampan.api.features import Release
from sampan.cmd.verbs.versions.version_answers import answers_of, as_created

BOATS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.sampan.example"},
    "spec": {
        "group": "sampan.example",
        "scope": "Namespaced",
        "names": {"plural": "boats", "kind": "Boat"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}


def obj(kind, name, namespace="", api_version="v1", **rest):
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}


@pytest.mark.slow
def test_manifests_find_their_namespaces_and_definitions_whatever_the_order():
    """[V4]"""
    pod = {"containers": [{"name": "c", "image": "x"}], "priorityClassName": "not-here"}
    manifests = [
        obj("Boat", "b", "fleet", "sampan.example/v1"),
        obj("Pod", "p", "fleet", spec=pod),
        obj("Namespace", "fleet"),
        BOATS,
        obj("Namespace", "default"),
        obj("Thing", "t", api_version="nobody.example/v1"),
        obj("ConfigMap", "Bad Name", "fleet"),
        obj("ConfigMap", "c", unknown=1),
    ]
    answers = answers_of(Release("1.36"), manifests)
    assert [answer.code for answer in answers] == [201, 201, 201, 201, 200, 404, 422, 400]
    assert answers[1].obj["spec"]["restartPolicy"] == "Always"
    assert 'unknown field "unknown"' in answers[-1].message
    assert features.release() == Release(), "it was for a while"


def test_what_a_cluster_has_put_in_is_taken_out():
    stored = obj("ConfigMap", "c", "n", status={}, data={})
    stored["metadata"] |= {"uid": "1", "resourceVersion": "3", "labels": {}}
    assert as_created(stored) == {
        **obj("ConfigMap", "c", "n", data={}),
        "metadata": {"name": "c", "namespace": "n", "labels": {}},
    }
