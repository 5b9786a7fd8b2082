import base64
import tracemalloc

import pytest

from sampan.kubelet.container_spec.environment import Surroundings
from sampan.kubelet.contracts.volumes_hook import VolumeFailure
from sampan.kubelet.volumes.payload import File, Sources, payload_of, payload_room

OBJECTS = {
    ("ConfigMap", "c"): {
        "data": {"word": "hello", "other": "x"},
        "binaryData": {"raw": base64.b64encode(b"\xff\x00").decode()},
    },
    ("Secret", "s"): {"data": {"password": base64.b64encode(b"pass\n").decode()}},
    ("ConfigMap", "gone"): None,
    ("Secret", "gone"): None,
}
POD = {
    "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1500m"}}}]},
}


def files(source, pod=POD):
    around, room = Surroundings("node-1"), payload_room()
    sources = Sources(pod, OBJECTS, around, lambda projection: "token!", room)
    return payload_of({"name": "v", **source}, sources)


def test_a_config_map_gives_one_file_for_each_key():
    """[N15]"""
    assert files({"configMap": {"name": "c", "defaultMode": 0o600}}) == {
        "word": File(b"hello", 0o600),
        "other": File(b"x", 0o600),
        "raw": File(b"\xff\x00", 0o600),
    }


def test_items_choose_keys_paths_and_modes():
    """[N15]"""
    items = [{"key": "word", "path": "deep/er", "mode": 0o400}, {"key": "raw", "path": "raw"}]
    assert files({"configMap": {"name": "c", "items": items}}) == {
        "deep/er": File(b"hello", 0o400),
        "raw": File(b"\xff\x00", 0o644),
    }


def test_a_secret_is_decoded():
    assert files({"secret": {"secretName": "s"}}) == {"password": File(b"pass\n", 0o644)}


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"configMap": {"name": "gone"}}, 'configmap "gone" not found'),
        ({"secret": {"secretName": "gone"}}, 'secret "gone" not found'),
        (
            {"configMap": {"name": "c", "items": [{"key": "no", "path": "x"}]}},
            "configmap references non-existent config key: no",
        ),
        (
            {"secret": {"secretName": "s", "items": [{"key": "no", "path": "x"}]}},
            "references non-existent secret key: no",
        ),
        (
            {
                "projected": {
                    "sources": [{"secret": {"name": "gone"}}, {"configMap": {"name": "gone"}}]
                }
            },
            '[secret "gone" not found, configmap "gone" not found]',
        ),
        (
            {"projected": {"sources": [{"fromTheFuture": {"name": "b", "path": "x"}}]}},
            "projected sources of type fromTheFuture are not supported by this node yet",
        ),
    ],
)
def test_what_is_missing_is_said_in_the_original_s_words(source, why):
    """[N15] bad input: missing objects and keys"""
    with pytest.raises(VolumeFailure) as caught:
        files(source)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    "source",
    [
        {"configMap": {"name": "gone", "optional": True}},
        {"secret": {"secretName": "gone", "optional": True}},
        {"configMap": {"name": "c", "optional": True, "items": [{"key": "no", "path": "x"}]}},
        {"projected": {"sources": [{"secret": {"name": "gone", "optional": True}}]}},
    ],
)
def test_what_is_optional_may_be_missing(source):
    """[N15]"""
    assert files(source) == {}


def test_the_downward_api_shows_fields_and_resources():
    items = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "where", "fieldRef": {"fieldPath": "metadata.namespace"}, "mode": 0o440},
        {"path": "cpu", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}},
    ]
    assert files({"downwardAPI": {"items": items}}) == {
        "labels": File(b'app="web"', 0o644),
        "where": File(b"shop", 0o440),
        "cpu": File(b"2", 0o644),
    }
    unknown = {"path": "x", "resourceFieldRef": {"containerName": "no", "resource": "limits.cpu"}}
    with pytest.raises(VolumeFailure, match="container no not found"):
        files({"downwardAPI": {"items": [unknown]}})


@pytest.mark.parametrize(
    ("context", "containers", "mode", "owner"),
    [
        ({}, [{}], 0o644, None),
        ({"fsGroup": 5}, [{}], 0o600, None),
        ({"runAsUser": 7}, [{}, {}], 0o600, 7),
        ({"runAsUser": 7}, [{}, {"runAsUser": 8}], 0o644, None),
    ],
)
def test_a_token_is_for_its_user_only_where_one_is_known(context, containers, mode, owner):
    """[N15] as upstream: 0600 and the one user, or the group, else the default mode"""
    pod = {
        "spec": {
            "securityContext": context,
            "containers": [
                {"name": f"c{at}", "securityContext": one} for at, one in enumerate(containers)
            ],
        }
    }
    token = {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    assert files(token, pod) == {"t": File(b"token!", mode, owner)}


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "..x", "", "a\0b"])
def test_no_path_leaves_the_volume(path):
    """[N15] bad input: the API refuses these; so does the node"""
    with pytest.raises(VolumeFailure, match="must stay inside of its volume"):
        files({"configMap": {"name": "c", "items": [{"key": "word", "path": path}]}})


ONE_MEGABYTE = {"metadata": {"name": "m"}, "data": {"a": "x" * 1_000_000}}


def planned(*volumes, annotations=None):
    metadata = {"name": "web", "namespace": "shop", "uid": "u1", "annotations": annotations or {}}
    pod = {"metadata": metadata, "spec": {"volumes": volumes}}
    objects = {("ConfigMap", "m"): ONE_MEGABYTE}
    room, around = payload_room(), Surroundings("node-1")
    sources = Sources(pod, objects, around, lambda projection: "", room)
    return [payload_of(volume, sources) for volume in volumes]


def items(count, **more):
    return [{"path": f"p{number}", **more} for number in range(count)]


@pytest.mark.parametrize(
    "volumes",
    [
        [{"name": "v", "configMap": {"name": "m", "items": items(10_000, key="a")}}],
        [{"name": f"v{number}", "configMap": {"name": "m"}} for number in range(8_000)],
        [{"name": "v", "projected": {"sources": [{"configMap": {"name": "m"}}] * 10_000}}],
        [{"name": "v", "downwardAPI": {
            "items": items(10_000, fieldRef={"fieldPath": "metadata.annotations"})}}],
    ],
    ids=["items", "volumes", "sources", "fields"],
)  # fmt: skip
def test_what_volumes_show_is_bounded_in_sum(volumes):
    tracemalloc.start()
    try:
        with pytest.raises(VolumeFailure) as caught:
            planned(*volumes, annotations={"a": "\n" + "x" * 200_000})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    why = "files of API objects in the volumes of the pod have more than 67108864 bytes"
    assert str(caught.value) == why
    assert peak < 2 * 67108864


def test_thousands_of_items_may_show_the_same():
    (shown,) = planned({"name": "v", "configMap": {"name": "m", "items": items(60, key="a")}})
    assert len(shown) == 60
    assert len({id(file.data) for file in shown.values()}) == 1
