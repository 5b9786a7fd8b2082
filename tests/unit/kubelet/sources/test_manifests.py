"""[N1] From the bytes of a file or a URL to static pods."""

import orjson
import pytest

from sampan.kubelet.sources.manifests import FILE, HTTP, BadManifest, all_pods, one_pod
from tests.support.worlds.control_plane import published_schema

WEB = b"""
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers: [{name: main, image: app}]
"""


def decoded(data=WEB, place="/etc/m/web.yaml", node_name="node-1", source=FILE):
    return one_pod(data, published_schema(), source=source, place=place, node_name=node_name)


def test_a_static_pod_is_named_after_its_node_and_says_where_it_came_from():
    pod = decoded()
    meta = pod["metadata"]
    assert (meta["name"], meta["namespace"], meta["labels"]) == (
        "web-node-1",
        "default",
        {"app": "web"},
    )
    assert meta["annotations"] == {
        "kubernetes.io/config.hash": meta["uid"],
        "kubernetes.io/config.source": "file",
    }
    assert pod["spec"]["nodeName"] == "node-1"
    assert pod["status"] == {"phase": "Pending"}


def test_defaults_are_filled_in():
    pod = decoded()
    assert pod["spec"]["restartPolicy"] == "Always"
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == "Always"


def test_only_pods_of_files_tolerate_every_no_execute_taint():
    everything = {"operator": "Exists", "effect": "NoExecute"}
    assert everything in decoded()["spec"]["tolerations"]
    assert not decoded(source=HTTP)["spec"].get("tolerations")


def test_the_uid_depends_on_content_place_and_node():
    uid = decoded()["metadata"]["uid"]
    assert decoded()["metadata"]["uid"] == uid
    assert len(uid) == 32
    others = [
        decoded(WEB.replace(b"image: app", b"image: app:2")),
        decoded(place="/etc/m/other.yaml"),
        decoded(node_name="node-2"),
        decoded(source=HTTP),
    ]
    assert uid not in {one["metadata"]["uid"] for one in others}


def test_json_is_read_like_yaml():
    told = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "app"}]},
    }  # fmt: skip
    assert decoded(orjson.dumps(told)) == decoded()


def test_of_several_documents_the_first_counts_as_upstream():
    assert decoded(WEB + b"---" + WEB.replace(b"name: web", b"name: other")) == decoded()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b" \n", "it is empty"),
        (b"{", "couldn't parse as pod"),
        (b"a: [", "couldn't parse as pod"),
        (b"just text", "it is no Pod but str"),
        (b"kind: Service\napiVersion: v1", "it is no Pod but Service"),
        (b"kind: Pod\napiVersion: v2", "no Pod in version 'v2'"),
        (WEB.replace(b"[{name: main, image: app}]", b"7"), "couldn't parse as pod"),
        (WEB.replace(b"image: app", b"image: ''"), "spec.containers[0].image: Required value"),
        (WEB + b"  serviceAccountName: robot", "static pods may not reference serviceaccounts"),
        (
            WEB + b"  volumes: [{name: v, secret: {secretName: s}}]",
            "static pods may not reference secrets",
        ),
        (
            WEB + b"  volumes: [{name: v, configMap: {name: s}}]",
            "static pods may not reference configmaps",
        ),
    ],
)
def test_what_is_no_good_pod_is_refused_with_a_reason(data, why):
    with pytest.raises(BadManifest) as refused:
        decoded(data)
    assert why in str(refused.value)


def test_a_url_may_answer_with_a_pod_or_a_list():
    """items of a list have no kind of their own"""
    schema = published_schema()
    item = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    listed = {
        "apiVersion": "v1",
        "kind": "PodList",
        "items": [item, {**item, "metadata": {"name": "b"}}],
    }
    words = {"source": HTTP, "place": "http://x/", "node_name": "n"}
    assert [one["metadata"]["name"] for one in all_pods(orjson.dumps(listed), schema, **words)] == [
        "a-n", "b-n",
    ]  # fmt: skip
    assert [one["metadata"]["name"] for one in all_pods(WEB, schema, **words)] == ["web-n"]
    with pytest.raises(BadManifest):
        all_pods(b'{"kind": "PodList", "items": 7}', schema, **words)
