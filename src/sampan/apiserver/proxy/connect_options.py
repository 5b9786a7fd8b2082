"""What a connection asks for, as an object: PodExecOptions and its like. Pure.

Job: query and path of exec, attach, portforward and proxy → the object that admission sees, and
    back.
Invariant: what admission leaves as it was goes on exactly as the caller wrote it.
"""

from collections.abc import Sequence
from urllib.parse import parse_qs, quote, urlencode

from sampan.api.objects import Obj
from sampan.api.resources import Resource
from sampan.core.digits import is_digits

_STREAMS = ("stdin", "stdout", "stderr", "tty")
_TRUE = ("1", "t", "T", "true", "TRUE", "True")


def options_of(resource: Resource, subresource: str, query: str, rest: str) -> Obj:
    """`rest` is what follows `proxy`, with its slash."""
    row = resource.subresource(subresource)
    assert row is not None, subresource
    made: Obj = {"kind": row.kind, "apiVersion": "v1"}
    asked = parse_qs(query, keep_blank_values=True)
    if subresource == "proxy":
        return made | ({"path": rest} if rest else {})
    if subresource == "portforward":
        ports = [int(part) for text in asked.get("ports", ()) for part in text.split(",")
                 if is_digits(part)]  # fmt: skip
        return made | ({"ports": ports} if ports else {})
    made |= {name: True for name in _STREAMS if _first(asked, name) in _TRUE}
    if _first(asked, "container"):
        made["container"] = _first(asked, "container")
    if subresource == "exec" and asked.get("command"):
        made["command"] = asked["command"]
    return made


def query_of(options: Obj) -> str:
    """Of exec, attach and portforward, after admission has changed what was asked."""
    pairs: list[tuple[str, str]] = [("command", str(item)) for item in options.get("command") or ()]
    if options.get("container"):
        pairs.append(("container", str(options["container"])))
    pairs += [(name, "true") for name in _STREAMS if options.get(name) is True]
    ports: Sequence[int] = options.get("ports") or ()
    pairs += [("ports", str(port)) for port in ports]
    return urlencode(pairs)


def path_of(options: Obj) -> str:
    """Of proxy, after admission has changed what was asked."""
    path = quote(str(options.get("path") or ""), safe="/%:@!$&'()*+,;=~-._")
    return path if not path or path.startswith("/") else f"/{path}"


def _first(asked: dict[str, list[str]], name: str) -> str:
    return asked.get(name, [""])[0]
