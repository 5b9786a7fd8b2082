from sampan.kubelet.container_spec.generate import Reference
from sampan.kubelet.volumes.references import claims_of, kind_of, volume_references


def test_every_object_is_named_once():
    sources = [
        {"configMap": {"name": "c"}},
        {"secret": {"name": "p"}},
        {"serviceAccountToken": {"path": "token"}},
    ]
    volumes = [
        {"name": "a", "configMap": {"name": "c"}},
        {"name": "b", "secret": {"secretName": "s"}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "d"}},
        {"name": "e", "projected": {"sources": sources}},
        {"name": "f", "emptyDir": {}},
    ]
    assert volume_references({"spec": {"volumes": volumes}}) == (
        Reference("ConfigMap", "c"),
        Reference("Secret", "s"),
        Reference("Secret", "p"),
    )
    assert volume_references({"spec": {}}) == ()
    assert list(claims_of({"spec": {"volumes": volumes}})) == [("c", "d")]


def test_the_kind_is_the_field_beside_the_name():
    assert kind_of({"name": "a", "emptyDir": {}}) == "emptyDir"
    assert kind_of({"name": "a", "emptyDir": None, "nfs": {}}) == "nfs"
