from sampan.api.resources import CLUSTER_TRUST_BUNDLES
from sampan.controllers.access.trust_bundle_publisher import SIGNER, bundle_name, plan
from sampan.controllers.actions import Create, Delete, Update


def bundle(name, text, signer=SIGNER):
    meta = {"name": name, "uid": name, "resourceVersion": "1"}
    return {"metadata": meta, "spec": {"signerName": signer, "trustBundle": text}}


def actions(bundles, ca="roots"):
    return plan(CLUSTER_TRUST_BUNDLES, bundles, ca).actions


def test_the_roots_are_published_once():
    [made] = actions([bundle("x", "roots", "example.com/x")])
    assert isinstance(made, Create)
    name = bundle_name("roots")
    assert made.obj["metadata"]["name"] == name
    assert name.startswith("kubernetes.io:kube-apiserver-serving:")
    assert actions([bundle(name, "roots")]) == []


def test_what_was_published_before_goes():
    old, changed = bundle("old", "old"), bundle(bundle_name("roots"), "changed by hand")
    restored, gone = actions([old, changed])
    assert isinstance(restored, Update)
    assert restored.obj["spec"]["trustBundle"] == "roots"
    assert isinstance(gone, Delete)
    assert gone.name == "old"
