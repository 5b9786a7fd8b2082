"""Requests that nobody should send, made from the published definitions: for fuzzing the API.

Job: from a seeded Random, one request after the other: mostly well formed, often a little wrong,
    sometimes noise.
Invariant: the same seed makes the same requests.
"""

import random
from collections.abc import Sequence
from typing import Any

import orjson
import yaml

from sampan.api.objects import Obj, copy_of
from sampan.api.resources import RESOURCES, Resource
from sampan.api.schema.field_kinds import Type
from sampan.api.schema.published import Schema
from sampan.core.http.messages import Request

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
NAMES = ("a", "b", "web", "kube-root-ca.crt", "default", "kubernetes", "ünï", "A_B", "x" * 300)
NAMESPACES = (*["default"] * 8, "kube-system", "nosuch")
TEXTS = ("", "a", "0", "\x00", "ü", "\U0001f600", "퟿", "a/b", "a" * 5000, "-1", "100m", "1e999",
         "2026-01-01T00:00:00Z", "10.0.0.1", "::1", "80%", "{}", "null", "metadata.name", "../..",
         "\n", "%00", "9" * 400, "a,b", "Always", "ClusterIP", "*", "true")  # fmt: skip
NUMBERS = (0, 1, -1, 80, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 2**64 - 1, 1.5, 1e308, -0.0, 65536)
PATCHES = ("application/json-patch+json", "application/merge-patch+json",
           "application/strategic-merge-patch+json", "application/apply-patch+yaml")  # fmt: skip
BODIES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "a/b/c",
          "text/plain", "", "application/json; charset=latin-1")  # fmt: skip
ACCEPTS = ("", "*/*", "application/json", "application/yaml", "text/html", "nonsense", "a/b;q=x",
           "application/json;as=Table;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf",
           "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
           "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
           "application/json;as=Table;v=v9;g=meta.k8s.io",
           "application/json;stream=watch")  # fmt: skip
PARAMETERS = ("watch", "limit", "continue", "resourceVersion", "resourceVersionMatch", "dryRun",
              "labelSelector", "fieldSelector", "timeoutSeconds", "allowWatchBookmarks", "pretty",
              "sendInitialEvents", "fieldManager", "fieldValidation", "force", "includeObject",
              "gracePeriodSeconds", "propagationPolicy", "orphanDependents", "nosuch")  # fmt: skip
VALUES = ("", "0", "1", "-1", "true", "false", "All", "Strict", "Ignore", "Warn", "Exact", "%00",
          "NotOlderThan", "Orphan", "Foreground", "a%3Db", "a+in+(", "!a", "metadata.name%3Da",
          "spec.nodeName%3Dx", "999999999999", "%FF%FE", "eyJ2IjoibWV0YSJ9", "1.5", "9" * 300,
          "judge", "%F0%9F%98%80", "a,,b", "metadata.name%21%3Da", "x" * 2000)  # fmt: skip
DEEP = 5_000


class OddRequests:
    """`seeds` are good objects: most of what is sent is one of them with a few places spoilt."""

    def __init__(
        self, schema: Schema, rng: random.Random, certificate: bytes, seeds: Sequence[Obj] = ()
    ) -> None:
        self._schema, self._rng, self._certificate = schema, rng, certificate
        self._seeds: dict[tuple[str, str], list[Obj]] = {}
        for seed in seeds:
            self._seeds.setdefault((seed["apiVersion"], seed["kind"]), []).append(seed)

    def next(self) -> Request:
        rng = self._rng
        resource = rng.choice(RESOURCES)
        method = rng.choices(METHODS, (2, 4, 3, 4, 1))[0]
        collection = method == "POST" or (method in ("GET", "DELETE") and rng.random() < 0.4)
        path = self._path(resource, collection or rng.random() < 0.02)
        headers = {"accept": rng.choice(ACCEPTS) if rng.random() < 0.15 else "application/json"}
        body = b""
        if method == "PATCH":
            headers["content-type"] = rng.choice(PATCHES)
            body = self._patch(resource, headers["content-type"])
        elif method in ("POST", "PUT") or rng.random() < 0.1:
            headers["content-type"] = BODIES[0] if rng.random() < 0.9 else rng.choice(BODIES)
            body = self._encode(self._object(resource), headers["content-type"])
        if rng.random() < 0.02:
            headers["content-type"] = rng.choice(BODIES + PATCHES)
        if rng.random() < 0.03:
            body = self._noise(body)
        if method == "DELETE" and rng.random() < 0.5:
            body = self._delete_options()
        # Stored, these would send later requests out into the world.
        query = "dryRun=All" if resource.plural in _CALLING_OUT else self._query()
        return Request(
            method, path, query, headers, body,
            peer_certificate=self._certificate, remote="127.0.0.1",
        )  # fmt: skip

    def _path(self, resource: Resource, collection: bool) -> str:
        rng = self._rng
        if rng.random() < 0.03:
            return self._odd_path()
        root = f"/apis/{resource.group}" if resource.group else "/api"
        path = f"{root}/{resource.version}"
        if resource.namespaced and rng.random() < 0.95:
            path += f"/namespaces/{rng.choice(NAMESPACES)}"
        path += f"/{resource.plural}"
        if collection:
            return path
        path += f"/{self._name()}"
        # What a node answers needs a node.
        offered = [
            subresource.name
            for subresource in resource.subresources
            if subresource.name not in _CONNECTED
        ]
        if offered and rng.random() < 0.4:
            path += f"/{rng.choice(offered)}"
        return path

    def _name(self) -> str:
        """Few names, so that requests meet each other's objects."""
        if self._rng.random() < 0.03:
            return self._rng.choice(NAMES)
        return self._rng.choices(NAMES[:6], (8, 4, 2, 1, 1, 1))[0]

    def _odd_path(self) -> str:
        parts = ("api", "apis", "v1", "..", "", ".", "namespaces", "pods", "%2F", "%00", "apps",
                 "nosuch", "openapi", "v3", "%zz", "ü", "version", "readyz", "metrics")  # fmt: skip
        return "/" + "/".join(self._rng.choices(parts, k=self._rng.randint(0, 7)))

    def _query(self) -> str:
        rng = self._rng
        if rng.random() < 0.5:
            return ""
        pairs = [f"{rng.choice(PARAMETERS)}={rng.choice(VALUES)}" for _ in range(rng.randint(1, 4))]
        return rng.choice(("&", "&", "&", ";", "&&")).join(pairs)

    def _object(self, resource: Resource) -> Any:
        rng = self._rng
        seeds = self._seeds.get((resource.api_version, resource.kind))
        if seeds and rng.random() < 0.8:
            made = copy_of(rng.choice(seeds))
            made.setdefault("metadata", {})["name"] = self._name()
            made["metadata"].pop("namespace", None)
            for _ in range(rng.choice((0, 0, 1, 1, 2, 5))):
                self._spoil(made)
            return made
        return self._invent(resource)

    def _spoil(self, obj: Obj) -> None:
        """Somewhere in it: something odd, something less, or something twice."""
        rng = self._rng
        holder: Any = obj
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                return
            key = rng.choice(keys)
            inner = holder[key]
            if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
                holder = inner
                continue
            break
        match rng.randint(0, 3):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.append(copy_of(inner))
            case 2 if isinstance(holder, dict):
                holder[rng.choice(TEXTS)] = inner
            case _:
                holder[key] = self._odd_value()

    def _invent(self, resource: Resource) -> Any:
        rng = self._rng
        kind = self._schema.type_of(resource.api_version, resource.kind)
        made = {} if kind is None else self._value(kind, 0)
        if not isinstance(made, dict):
            return made
        made["apiVersion"], made["kind"] = resource.api_version, resource.kind
        if rng.random() < 0.9:
            meta: Obj = {"name": self._name()}
            if rng.random() < 0.3:
                meta["labels"] = {rng.choice(TEXTS): rng.choice(TEXTS)}
            if rng.random() < 0.2:
                meta |= self._some_metadata()
            made["metadata"] = meta
        if rng.random() < 0.03:
            made[rng.choice(list(made))] = self._odd_value()
        return made

    def _some_metadata(self) -> Obj:
        kind = Type("object", name="io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        made = self._value(kind, 1)
        return made if isinstance(made, dict) else {}

    def _value(self, kind: Type, depth: int) -> Any:
        """Of this type, now and then of another."""
        rng = self._rng
        if rng.random() < 0.02:
            return self._odd_value()
        match kind.shape:
            case "object":
                fields = self._schema.fields_of(kind.name)
                share = 0.6 if depth < 2 else 0.25 if depth < 5 else 0.1
                picked = [key for key in fields if rng.random() < share]
                return {key: self._value(fields[key], depth + 1) for key in picked}
            case "list" if kind.element is not None:
                return [self._value(kind.element, depth + 1) for _ in range(rng.randint(0, 2))]
            case "map" if kind.element is not None:
                return {
                    rng.choice(TEXTS): self._value(kind.element, depth + 1)
                    for _ in range(rng.randint(0, 2))
                }
            case "string":
                return rng.choice(TEXTS)
            case "integer" | "number":
                return rng.choice(NUMBERS)
            case "boolean":
                return rng.random() < 0.5
        return rng.choice((rng.choice(TEXTS), rng.choice(NUMBERS), {}))

    def _odd_value(self) -> Any:
        rng = self._rng
        return rng.choice(
            (None, True, [], {}, [None], {"": None}, rng.choice(TEXTS), rng.choice(NUMBERS),
             [[]], {"$patch": "delete"}, {"$patch": "nosuch"}, {"a": [{"a": [1]}]}, [{}, {}])
        )  # fmt: skip

    def _patch(self, resource: Resource, kind: str) -> bytes:
        rng = self._rng
        if kind != PATCHES[0]:
            return self._encode(self._object(resource), "application/json")
        paths = ("/metadata/labels/a", "/spec", "", "/", "/spec/containers/0", "/spec/containers/-",
                 "/metadata/name", "/data/~0~1", "/~2", "/kind", "/status", "no")  # fmt: skip
        operations = [
            {
                "op": rng.choice(("add", "remove", "replace", "move", "copy", "test", "odd")),
                "path": rng.choice(paths),
                "from": rng.choice(paths),
                "value": self._odd_value(),
            }
            for _ in range(rng.randint(0, 3))
        ]
        return orjson.dumps(operations if rng.random() < 0.95 else self._odd_value())

    def _delete_options(self) -> bytes:
        kind = Type("object", name="io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")
        made = self._value(kind, 0)
        if isinstance(made, dict):
            made.pop("apiVersion", None)
            made["kind"] = "DeleteOptions"
        return self._encode(made, "application/json")

    def _encode(self, value: Any, media: str) -> bytes:
        if media == "application/yaml" and self._rng.random() < 0.8:
            return bytes(yaml.safe_dump(value, allow_unicode=True).encode())
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)

    def _noise(self, body: bytes) -> bytes:
        rng = self._rng
        return rng.choice(
            (
                b"", b"{", b"\xff\xfe", b"k8s\x00", b"k8s\x00" + rng.randbytes(40), b"null", b"[]",
                b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"[" * DEEP + b"]" * DEEP, b"9" * 5000,
                b'{"apiVersion":"v1","kind":"Pod","spec":' + b'{"a":' * 500 + b"1" + b"}" * 501,
                b'{"a":1,"a":2}', b"a: &a [*a]", b"a: &x 1\nb: *x\n--- \nc: 1",
                b"\t- :", b"1e99999",
                body[: len(body) // 2], body + b"x", rng.randbytes(200), b'{"a":"\\ud800"}',
            )
        )  # fmt: skip


_CONNECTED = frozenset({"attach", "exec", "log", "portforward", "proxy"})
_CALLING_OUT = frozenset({"mutatingwebhookconfigurations", "validatingwebhookconfigurations"})
