"""Why an Ingress leads nowhere.

Job: an Ingress, the IngressClasses and the Services of its namespace → what to look at, in words.
    Pure.
"""

from collections.abc import Iterator, Mapping, Sequence

from sampan.api.objects import Obj, annotations_of, name_of, namespace_of

_OLD_CLASS = "kubernetes.io/ingress.class"
_DEFAULT = "ingressclass.kubernetes.io/is-default-class"


def ingress_lines(
    ingress: Obj, classes: Sequence[Obj], services: Mapping[str, Obj], ready: Mapping[str, int]
) -> list[str]:
    """`services` and `ready` (how many endpoints each has) by the Service's name."""
    title = f"ingress {namespace_of(ingress)}/{name_of(ingress)}"
    return [
        *_class_lines(title, ingress, classes),
        *_address_lines(ingress),
        *_backend_lines(ingress, services, ready),
    ]


def _class_lines(title: str, ingress: Obj, classes: Sequence[Obj]) -> list[str]:
    wanted = (ingress.get("spec") or {}).get("ingressClassName")
    old = annotations_of(ingress).get(_OLD_CLASS)
    found = next((item for item in classes if name_of(item) == wanted), None)
    if found is not None:
        controller = (found.get("spec") or {}).get("controller")
        return [f"{title} is of the class {wanted}, which the controller {controller} serves."]
    if wanted:
        lines = [f"{title} is of the class {wanted}, and there is no such IngressClass."]
    elif old:
        return [f"{title} is for whoever goes by the annotation {_OLD_CLASS}: {old}."]
    else:
        lines = [f"{title} has no class: no controller takes it for its own."]
    lines.append("Nobody serves it: start with `sampan up --ingress`, or install a controller.")
    return lines + _known_classes(classes)


def _known_classes(classes: Sequence[Obj]) -> list[str]:
    if not classes:
        return []
    names = ", ".join(sorted(name_of(item) for item in classes))
    lines = [f"There is the IngressClass {names}: set spec.ingressClassName."]
    if not any(annotations_of(item).get(_DEFAULT) == "true" for item in classes):
        lines.append(f"With the annotation {_DEFAULT}: true it would be that of new ones.")
    return lines


def _address_lines(ingress: Obj) -> list[str]:
    entries = ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    places = [str(entry.get("ip") or entry.get("hostname")) for entry in entries]
    if places:
        return [f"It is served at {', '.join(places)}."]
    return ["Its status has no address: no controller has taken it up."]


def _backend_lines(
    ingress: Obj, services: Mapping[str, Obj], ready: Mapping[str, int]
) -> list[str]:
    lines = []
    for name, port in dict.fromkeys(_backends(ingress)):
        if name not in services:
            lines.append(f"There is no Service {name}, to which a rule leads.")
        elif not _has_port(services[name], port):
            lines.append(f"The Service {name} has no port {port}, to which a rule leads.")
        elif not ready.get(name):
            lines.append(f"The Service {name} has no ready endpoint: `sampan why service/{name}`.")
    return lines


def _backends(ingress: Obj) -> Iterator[tuple[str, str]]:
    spec = ingress.get("spec") or {}
    rules = [path for rule in spec.get("rules") or ()
             for path in (rule.get("http") or {}).get("paths") or ()]  # fmt: skip
    for backend in (
        spec.get("defaultBackend") or {},
        *(rule.get("backend") or {} for rule in rules),
    ):
        service = backend.get("service")
        if service:
            port = service.get("port") or {}
            yield str(service.get("name")), str(port.get("name") or port.get("number"))


def _has_port(service: Obj, port: str) -> bool:
    ports = (service.get("spec") or {}).get("ports") or ()
    return any(port in (str(item.get("port")), item.get("name")) for item in ports)
