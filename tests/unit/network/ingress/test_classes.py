from sampan.network.ingress.classes import CONTROLLER, ingress_class, is_ours, our_classes


def test_the_class_is_the_default_unless_another_is():
    own = ingress_class([])
    assert own["metadata"]["annotations"] == {"ingressclass.kubernetes.io/is-default-class": "true"}
    assert own["spec"] == {"controller": CONTROLLER}
    assert "annotations" not in ingress_class([own])["metadata"]


def test_an_ingress_is_ours_by_its_class_or_by_the_old_annotation():
    other = {"metadata": {"name": "nginx"}, "spec": {"controller": "k8s.io/ingress-nginx"}}
    second = {"metadata": {"name": "mine"}, "spec": {"controller": CONTROLLER}}
    ours = our_classes([ingress_class([]), second, other])
    assert ours == {"sampan", "mine"}

    def owned(name=None, old=None):
        annotations = {"kubernetes.io/ingress.class": old} if old else {}
        spec = {"ingressClassName": name} if name else {}
        return is_ours({"metadata": {"annotations": annotations}, "spec": spec}, ours)

    assert owned("sampan")
    assert owned("mine")
    assert owned(old="sampan")
    assert not owned("nginx")
    assert not owned("nginx", old="sampan")
    assert not owned()
