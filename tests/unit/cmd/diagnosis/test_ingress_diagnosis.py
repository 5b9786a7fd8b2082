"""cmd/diagnosis/ingress_diagnosis.py: why an Ingress leads nowhere."""

from sampan.cmd.diagnosis.ingress_diagnosis import ingress_lines


def ingress(class_name=None, backend="web", port=None, status=None, annotations=None):
    path = {"backend": {"service": {"name": backend, "port": port or {"number": 80}}}}
    spec = {"rules": [{"http": {"paths": [path]}}]}
    if class_name:
        spec["ingressClassName"] = class_name
    meta = {"name": "i", "namespace": "ns", "annotations": annotations or {}}
    return {"metadata": meta, "spec": spec, "status": {"loadBalancer": {"ingress": status or []}}}


def ingress_class(name, controller="k8s.io/ingress-nginx"):
    return {"metadata": {"name": name}, "spec": {"controller": controller}}


WEB = {"web": {"spec": {"ports": [{"port": 80, "name": "http"}]}}}


def lines(obj, classes=(), services=WEB, ready=1):
    return "\n".join(ingress_lines(obj, classes, services, {"web": ready}))


def test_an_ingress_that_is_served_has_its_controller_and_address():
    text = lines(ingress("nginx", status=[{"ip": "192.0.2.1"}]), [ingress_class("nginx")])
    assert text == (
        "ingress ns/i is of the class nginx, which the controller k8s.io/ingress-nginx serves.\n"
        "It is served at 192.0.2.1."
    )


def test_without_a_class_nobody_serves_it_and_the_one_that_there_is_is_named():
    text = lines(ingress(), [ingress_class("nginx")])
    assert "has no class" in text
    assert "start with `sampan up --ingress`" in text
    assert "There is the IngressClass nginx: set spec.ingressClassName." in text
    assert "is-default-class: true" in text
    assert "There is the IngressClass" not in lines(ingress())
    assert "there is no such IngressClass" in lines(ingress("nginx"))
    old = {"kubernetes.io/ingress.class": "nginx"}
    assert "whoever goes by the annotation" in lines(ingress(annotations=old))


def test_what_is_wrong_behind_it_is_said():
    classes = [ingress_class("nginx")]
    assert "There is no Service other" in lines(ingress("nginx", "other"), classes)
    assert "has no port 81" in lines(ingress("nginx", port={"number": 81}), classes)
    assert "has no port" not in lines(ingress("nginx", port={"name": "http"}), classes)
    assert "`sampan why service/web`" in lines(ingress("nginx"), classes, ready=0)
    assert "no controller has taken it up" in lines(ingress("nginx"), classes)
