"""An Ingress that nobody serves is not accepted in silence [W7, X6]."""

from sampan.api.schema.published import Schema
from tests.support import virtual_time
from tests.support.generators.api_requests import api_server

INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
CLASSES = "/apis/networking.k8s.io/v1/ingressclasses"


def ingress(name, class_name=None, **meta):
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    spec = {"defaultBackend": backend}
    if class_name:
        spec["ingressClassName"] = class_name
    return {
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": spec,
        "metadata": {"name": name, **meta},
    }  # fmt: skip


def ingress_class(name, **annotations):
    return {
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"controller": "example.com/controller"},
    }  # fmt: skip


def warned(reply):
    assert reply.status < 300, reply.body
    return "nobody serves this Ingress" in reply.headers.get("warning", "")


def test_whoever_writes_an_ingress_is_told_that_nobody_serves_it_until_somebody_does():
    async def main():
        async with api_server(Schema.load()) as api:
            assert warned(await api.post(INGRESSES, ingress("none")))
            made = await api.post(INGRESSES, ingress("later", "mine"))
            assert warned(made)
            assert 'IngressClass \\"mine\\"' in made.headers["warning"]
            old = {"kubernetes.io/ingress.class": "old"}
            assert not warned(await api.post(INGRESSES, ingress("old", annotations=old)))
            await api.made(CLASSES, ingress_class("mine"))
            assert not warned(await api.post(INGRESSES, ingress("served", "mine")))
            assert warned(await api.post(INGRESSES, ingress("still-none")))
            default = {"ingressclass.kubernetes.io/is-default-class": "true"}
            await api.made(CLASSES, ingress_class("default", **default))
            assert not warned(await api.post(INGRESSES, ingress("by-default")))
            # An update is told of where it goes somewhere else, and not of each label.
            path = f"{INGRESSES}/served"
            label = {"metadata": {"labels": {"a": "b"}}}
            gone = {"spec": {"ingressClassName": "gone"}}
            assert not warned(await api.patch(path, label))
            assert warned(await api.patch(path, gone))
            assert not warned(await api.patch(path, label))

    virtual_time.run(main())
