"""`set env`: variables of containers, listed, set, removed, or taken from config maps and secrets.

Job: words and references become a change of each container's env.
"""

import re

from sampan.api.objects import Obj
from sampan.cli.create.keys import ENV_RULE
from sampan.cli.errors import CliError
from sampan.cli.flags import Values
from sampan.cli.objects import changing
from sampan.cli.objects.infos import Info
from sampan.cli.session import Session

_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*$")


def run(session: Session, values: Values) -> None:
    resources, wanted, gone = _parse(session, values)
    if set(wanted) & set(gone):
        raise CliError(
            "can not both modify and remove the same environment variable in the same command"
        )
    entries = [_entry(name, value) for name, value in wanted.items()]
    if values["from"]:
        entries = [*_refer(session, values), *entries]
    if values["list"]:
        _list(session, values, resources)
        return

    def change(info: Info, obj: Obj, spec: Obj) -> None:
        chosen = _choose(values, spec)
        if not chosen:
            session.warn(
                f"{info.resource.kind}/{info.name} does not have any containers matching "
                f'"{values["containers"]}"'
            )
        for container in chosen:
            _change_container(values, info, container, entries, gone)

    changing.change_pod_specs(session, values, resources, change, "env updated")


def _parse(session: Session, values: Values) -> tuple[list[str], dict[str, str], list[str]]:
    resources: list[str] = []
    wanted: dict[str, str] = {}
    gone: list[str] = []
    words = [*values.arguments, *values["env"]]
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            if not _NAME.match(name):
                raise CliError(f'"{name}" is not a valid key name: {ENV_RULE}')
            wanted[name] = value
        elif word == "-":
            wanted |= _from_stdin(session)
        elif word.endswith("-"):
            gone.append(word[:-1])
        else:
            resources.append(word)
    return resources, wanted, gone


def _from_stdin(session: Session) -> dict[str, str]:
    found = {}
    for line in session.io.stdin.read().decode(errors="replace").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found[name] = value
    return found


def _entry(name: str, value: str) -> Obj:
    return {"name": name, **({"value": value} if value else {})}


def _refer(session: Session, values: Values) -> list[Obj]:
    kind, slash, name = values.text("from").partition("/")
    resource = session.discovery.find(kind)
    if resource.kind not in ("ConfigMap", "Secret"):
        raise CliError("unsupported resource specified in --from")
    source = session.api.json("GET", resource.path(session.namespace, name if slash else ""))
    field = "configMapKeyRef" if resource.kind == "ConfigMap" else "secretKeyRef"
    entries = []
    for key in sorted(source.get("data") or {}):
        if values["keys"] and key not in values["keys"]:
            continue
        upper = re.sub(r"[^A-Za-z0-9_]", "_", key).upper()
        if upper != key:
            session.warn(f"key {key} transferred to {upper}")
        reference = {"name": name, "key": key}
        entries.append({"name": f"{values['prefix']}{upper}", "valueFrom": {field: reference}})
    return entries


def _choose(values: Values, spec: Obj) -> list[Obj]:
    from fnmatch import fnmatchcase

    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    pattern = values.text("containers")
    return [
        container for container in containers if fnmatchcase(str(container.get("name")), pattern)
    ]


def _change_container(
    values: Values, info: Info, container: Obj, entries: list[Obj], gone: list[str]
) -> None:
    env = list(container.get("env") or [])
    for entry in entries:
        at = next((i for i, own in enumerate(env) if own["name"] == entry["name"]), None)
        if at is None:
            env.append(entry)
            continue
        before = env[at].get("value", "")
        if not values["overwrite"] and before != entry.get("value", ""):
            raise CliError(
                f"{info.resource.plural}/{info.name} '{entry['name']}' already has a value "
                f"({before}), and --overwrite is false"
            )
        env[at] = entry
    env = [entry for entry in env if entry["name"] not in gone]
    if env:
        container["env"] = env
    else:
        container.pop("env", None)


def _list(session: Session, values: Values, resources: list[str]) -> None:
    for found in changing.select(session, values, resources):
        if isinstance(found, Exception):
            raise found
        spec = changing.pod_spec(found.obj) or {}
        for container in _choose(values, spec):
            kind = found.resource.kind
            session.print(f"# {kind} {found.name}, container {container['name']}")
            for entry in container.get("env") or []:
                session.print(_line(session, values, entry))


def _line(session: Session, values: Values, entry: Obj) -> str:
    source = entry.get("valueFrom")
    if not source:
        return f"{entry['name']}={entry.get('value', '')}"
    for field, kind, plural in (
        ("configMapKeyRef", "configmap", "configmaps"),
        ("secretKeyRef", "secret", "secrets"),
    ):
        reference = source.get(field)
        if not reference:
            continue
        if values["resolve"]:
            path = f"/api/v1/namespaces/{session.namespace}/{plural}/{reference['name']}"
            data = session.api.json("GET", path).get("data") or {}
            value = data.get(reference["key"], "")
            if kind == "secret":
                import base64

                value = base64.b64decode(value).decode(errors="replace")
            return f"{entry['name']}={value}"
        return f"# {entry['name']} from {kind} {reference['name']}, key {reference['key']}"
    if source.get("fieldRef"):
        return f"# {entry['name']} from field path {source['fieldRef']['fieldPath']}"
    if source.get("resourceFieldRef"):
        return f"# {entry['name']} from resource field {source['resourceFieldRef']['resource']}"
    return f"# {entry['name']} from {next(iter(source))}"
