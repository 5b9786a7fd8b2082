"""What a server says of itself.

`python -m tests.support.api_sampling.surface --out FILE.json.gz 1.35=KUBECONFIG 1.36=KUBECONFIG …`

Job: discovery, OpenAPI, tables' columns and the objects that are there from the beginning, by
    section and name; and, as a program, those of originals: the first whole, the others as what
    they say otherwise.
Invariant: what is long is told by its digest; what another start changes is left out.
"""

import argparse
import asyncio
import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj
from tests.support.api_sampling.servers import Server, server_at

Surface = dict[str, dict[str, Any]]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
SHORT = 300  # bytes that are told as they are
_METHODS = {"get", "put", "post", "delete", "options", "head", "patch"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
FIRST_OBJECTS = (
    f"{RBAC}/clusterroles",
    f"{RBAC}/clusterrolebindings",
    f"{RBAC}/roles",
    f"{RBAC}/rolebindings",
    f"{FLOW}/flowschemas",
    f"{FLOW}/prioritylevelconfigurations",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/apis/networking.k8s.io/v1/servicecidrs",
    "/api/v1/namespaces",
    "/api/v1/services",
)


async def surface_of(server: Server) -> Surface:
    found: Surface = {"legacy": {}, "resources": {}, "aggregated": {}, "columns": {}}
    found["version"] = _version(await _get(server, "/version"))
    found["paths"] = dict.fromkeys((await _get(server, "/"))["paths"], "")
    found["legacy"]["/api"] = (await _get(server, "/api"))["versions"]
    for group in (await _get(server, "/apis"))["groups"]:
        found["legacy"][group["name"]] = group
    for path in ("/api", "/apis"):
        for group in (await _get(server, path, AGGREGATED))["items"]:
            found["aggregated"] |= _aggregated(group)
    for base in _bases(found["legacy"]):
        rows = (await _get(server, base))["resources"]
        found["resources"] |= {f"{base}/{row['name']}": row for row in rows}
        for row in rows:
            if "list" in row["verbs"]:
                path = f"{base}/{row['name']}"
                table = await _get(server, f"{path}?limit=1", TABLE)
                found["columns"][path] = _columns(table)
    found |= await _openapi(server)
    found["objects"] = {}
    for path in FIRST_OBJECTS:
        for item in (await _get(server, path))["items"]:
            found["objects"][f"{path} {_title(item)}"] = _made_alike(item)
    return found


async def _get(server: Server, target: str, accept: str = "application/json") -> Obj:
    answer = await server.send("GET", target, {"accept": accept}, b"")
    assert answer.code == 200, (target, answer)
    found: Obj = json.loads(answer.body)
    return found


def _version(told: Obj) -> Obj:
    """Numbers; whose build it is is another matter."""
    return {key: told[key] if key.lower().endswith(("major", "minor")) else "" for key in told}


def _columns(table: Obj) -> list[list[Any]]:
    """Without their descriptions."""
    found = table.get("columnDefinitions") or ()
    return [[column[key] for key in ("name", "type", "format", "priority")] for column in found]


def _aggregated(group: Obj) -> Iterator[tuple[str, Any]]:
    name = group["metadata"].get("name", "")
    for version in group["versions"]:
        base = f"{name}/{version['version']}"
        yield base, [version.get("freshness"), [row["resource"] for row in version["resources"]]]
        for row in version["resources"]:
            yield f"{base}/{row['resource']}", row


def _bases(legacy: Mapping[str, Any]) -> Iterator[str]:
    yield "/api/v1"
    for name, group in legacy.items():
        if not name.startswith("/"):
            yield from (f"/apis/{version['groupVersion']}" for version in group["versions"])


async def _openapi(server: Server) -> Surface:
    """Which operations there are on which path, and which fields in which type."""
    found: Surface = {"operations": {}, "types": {}}
    for name in (await _get(server, "/openapi/v3"))["paths"]:
        document = await _get(server, f"/openapi/v3/{name}")
        for path, item in document["paths"].items():
            found["operations"][path] = sorted(item.keys() & _METHODS)
        schemas = document.get("components", {}).get("schemas", {})
        found["types"] |= {
            name: sorted(item.get("properties") or ()) for name, item in schemas.items()
        }
    return found


def _title(item: Obj) -> str:
    meta = item["metadata"]
    return "/".join(filter(None, (meta.get("namespace"), meta["name"])))


def _made_alike(item: Obj) -> Any:
    if "rules" in item:
        return sorted({right for rule in item["rules"] or () for right in _rights(rule)})
    meta = item["metadata"]
    kept = {key: meta[key] for key in ("labels", "annotations") if key in meta}
    kept |= {key: item[key] for key in item if key not in ("metadata", "status")}
    for port in (kept.get("spec") or {}).get("ports") or ():
        port["targetPort"] = "*"
    return kept


def _rights(rule: Obj) -> Iterator[str]:
    names = ",".join(rule.get("resourceNames") or ())
    places = [
        f"{group}/{name}"
        for group in rule.get("apiGroups") or ()
        for name in rule.get("resources") or ()
    ]
    for place in (*places, *(rule.get("nonResourceURLs") or ())):
        yield from (f"{verb} {place} {names}".strip() for verb in rule["verbs"])


def compact(surface: Surface) -> Surface:
    """Rights stay whole: a server may give more of them."""
    return {
        name: {key: item if "roles " in key else _short(item) for key, item in rows.items()}
        for name, rows in surface.items()
    }


def _short(value: Any) -> Any:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    if len(text) <= SHORT:
        return value
    return "#" + hashlib.sha256(text.encode()).hexdigest()[:10]


def changes_from(base: Surface, other: Surface) -> Surface:
    """What `changed` makes `other` of; null: it is not there."""
    found: Surface = {}
    for name in base.keys() | other.keys():
        rows, others = base.get(name, {}), other.get(name, {})
        row = {key: others.get(key) for key in rows.keys() | others.keys()}
        found[name] = {key: row[key] for key in sorted(row) if row[key] != rows.get(key)}
    return {name: found[name] for name in sorted(found)}


def changed(base: Surface, changes: Surface) -> Surface:
    both = {
        name: base.get(name, {}) | changes.get(name, {}) for name in base.keys() | changes.keys()
    }
    return {
        name: {key: item for key, item in rows.items() if item is not None}
        for name, rows in both.items()
    }


def recorded(path: Path, minor: str) -> Surface:
    told: dict[str, Surface] = json.loads(gzip.decompress(path.read_bytes()))
    first = next(iter(told))
    return told[first] if minor == first else changed(told[first], told[minor])


async def _main(pairs: Iterable[str], out: Path) -> None:
    told: dict[str, Surface] = {}
    for pair in pairs:
        minor, _, kubeconfig = pair.partition("=")
        async with server_at(kubeconfig) as server:
            found = compact(await surface_of(server))
        told[minor] = found if not told else changes_from(next(iter(told.values())), found)
    out.write_bytes(gzip.compress(json.dumps(told, sort_keys=False).encode(), mtime=0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("pairs", nargs="+")
    options = parser.parse_args()
    asyncio.run(_main(options.pairs, options.out))
