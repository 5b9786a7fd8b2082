"""What an API server of some version answers to manifests.

Job: a server in this process, with a store of its own in memory; each manifest is a dry run.
Invariant: nobody outside hears of it; namespaces and definitions among the manifests are there for
    the others, and what needs other objects (accounts, classes, quotas, webhooks) is not asked for.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence

import orjson

from sampan.api import features
from sampan.api.features import Release
from sampan.api.objects import Obj, meta_of, name_of, namespace_of
from sampan.api.rules.conditions import is_true
from sampan.api.schema.published import Schema
from sampan.api.served import served_resources
from sampan.apiserver.admission.settings import AdmissionSettings
from sampan.apiserver.server import ApiServer
from sampan.apiserver.settings import ApiServerSettings
from sampan.core.clock import SystemClock
from sampan.core.fast_dataclass import dataclass
from sampan.core.http.messages import Request, Response
from sampan.core.metrics import Metrics
from sampan.core.patterns import lazy_pattern
from sampan.store.memory import MemoryStore

_OFF = (
    "ServiceAccount", "Priority", "RuntimeClass", "ResourceQuota", "LimitRanger",
    "MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)  # fmt: skip
_SERVERS = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
)
_WARNING = lazy_pattern(r'299 - "((?:[^"\\]|\\.)*)"')
_DRY = "dryRun=All&fieldValidation=Strict"
_FIRST = ("Namespace", "CustomResourceDefinition")  # others need them
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DEFINED_SECONDS, _PAUSE_SECONDS = 10.0, 0.005


@dataclass(frozen=True, slots=True)
class Answer:
    code: int  # 404: the version does not have such a kind
    obj: Obj  # as it would be stored; empty where it is refused
    message: str  # why it is
    warnings: tuple[str, ...]

    @property
    def is_taken(self) -> bool:
        return self.code < 300


def answers_of(release: Release, manifests: Sequence[Obj]) -> list[Answer]:
    """In their order."""
    with features.used(release):
        return asyncio.run(_answers(manifests))


async def _answers(manifests: Sequence[Obj]) -> list[Answer]:
    clock = SystemClock()
    settings = ApiServerSettings(
        authorization_modes=("AlwaysAllow",),
        anonymous_paths=None,
        admission=AdmissionSettings(disabled=_OFF),
    )
    server = ApiServer(MemoryStore(clock), Schema.load(), settings, clock, Metrics())
    await server.start()
    try:
        asked = _Asked(server, _kinds(manifests))
        found = {
            number: await asked.dry_run(as_created(obj))
            for number, obj in enumerate(manifests)
            if obj.get("kind") in _FIRST
        }
        await asked.prepare(manifests)
        return [
            found.get(number) or await asked.dry_run(as_created(obj))
            for number, obj in enumerate(manifests)
        ]
    finally:
        await server.stop()


Kinds = Mapping[tuple[str, str], tuple[str, bool]]  # (apiVersion, kind) → path and is it namespaced


def _kinds(manifests: Iterable[Obj]) -> Kinds:
    """Of the version, and of the definitions among the manifests."""
    found = {
        (row.api_version, row.kind): (f"{row.path}|{row.plural}", row.namespaced)
        for row in served_resources()
    }
    for obj in manifests:
        if obj.get("kind") == "CustomResourceDefinition":
            found.update(_defined(obj.get("spec") or {}))
    return found


def _defined(spec: Obj) -> Iterator[tuple[tuple[str, str], tuple[str, bool]]]:
    names = spec.get("names") or {}
    for version in spec.get("versions") or ():
        api_version = f"{spec.get('group')}/{version.get('name')}"
        place = f"/apis/{api_version}|{names.get('plural')}"
        yield (api_version, str(names.get("kind"))), (place, spec.get("scope") == "Namespaced")


def as_created(obj: Obj) -> Obj:
    """Without what a cluster has put into it."""
    meta = {key: value for key, value in meta_of(obj).items() if key not in _SERVERS}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}


class _Asked:
    def __init__(self, server: ApiServer, kinds: Kinds) -> None:
        self._server, self._kinds = server, kinds

    async def prepare(self, manifests: Sequence[Obj]) -> None:
        spaces = {namespace_of(obj) for obj in manifests} - {""}
        spaces |= {name_of(obj) for obj in manifests if obj.get("kind") == "Namespace"}
        for name in sorted(spaces):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await self._send("POST", "/api/v1/namespaces", "", namespace)
        for obj in manifests:
            if obj.get("kind") == "CustomResourceDefinition":
                code, _, _ = await self._send("POST", _DEFINITIONS, "", as_created(obj))
                if code < 300:
                    await self._established(name_of(obj))

    async def _established(self, name: str) -> None:
        async with asyncio.timeout(_DEFINED_SECONDS):
            while True:
                _, definition, _ = await self._send("GET", f"{_DEFINITIONS}/{name}", "", None)
                if is_true(definition, "Established"):
                    return
                await asyncio.sleep(_PAUSE_SECONDS)

    async def dry_run(self, obj: Obj) -> Answer:
        known = self._kinds.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
        if known is None:
            return Answer(404, {}, "", ())
        (path, _, plural), namespaced = known[0].partition("|"), known[1]
        if namespaced:
            path = f"{path}/namespaces/{namespace_of(obj) or 'default'}"
        code, found, warnings = await self._send("POST", f"{path}/{plural}", _DRY, obj)
        if code == 409:  # every cluster has one
            return Answer(200, {}, "", warnings)
        if code < 300:
            return Answer(code, found, "", warnings)
        return Answer(code, {}, str(found.get("message") or f"refused with {code}"), warnings)

    async def _send(
        self, method: str, path: str, query: str, obj: Obj | None
    ) -> tuple[int, Obj, tuple[str, ...]]:
        body = b"" if obj is None else orjson.dumps(obj)
        headers = {"content-type": "application/json", "accept": "application/json"}
        reply = await self._server.handle_http(Request(method, path, query, headers, body))
        assert isinstance(reply, Response), path
        warnings = tuple(
            text
            for name, value in reply.headers
            if name == "warning"
            for text in _WARNING.findall(value)
        )
        try:
            found: Obj = orjson.loads(reply.whole())
        except orjson.JSONDecodeError:  # in plain words
            found = {"message": reply.whole().decode(errors="replace").strip()}
        return reply.status, found, warnings
