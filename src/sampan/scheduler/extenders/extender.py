"""HTTP extenders: a program beside the scheduler that has a say in its decisions.

Job: the four calls (filter, prioritize, preempt, bind) as upstream's extender/v1 words them.
Invariant: an answer is believed only about nodes and pods that were asked about.
Invariant: a call has a deadline; one that fails is an ExtenderFailed, ignorable or not.
Owner: the scheduler's loop.
"""

from collections.abc import Collection, Sequence

import orjson

from sampan.api.objects import Obj, name_of, namespace_of, uid_of
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.scheduler.decision.plugin_verdicts import Answer, ExtenderFailed
from sampan.scheduler.model.requests import usage_of
from sampan.scheduler.preemption.victims import Candidate
from sampan.scheduler.settings import ExtenderSettings

_JSON = (("content-type", "application/json"), ("accept", "application/json"))
_MOST_EXTENDER_POINTS = 10
_SCALE = 10  # an extender's 10 is a rule's 100


class Extender:
    def __init__(self, settings: ExtenderSettings, http: HttpClient) -> None:
        self.settings, self._http = settings, http

    @property
    def name(self) -> str:
        return self.settings.url_prefix

    async def close(self) -> None:
        await self._http.close()

    def is_interested(self, pod: Obj) -> bool:
        managed = self.settings.managed
        return not managed or any(name in managed for name, _ in usage_of(pod).requests)

    async def answer(self, pod: Obj, nodes: Sequence[Obj]) -> Answer:
        """Its say about nodes that are feasible otherwise."""
        names = frozenset(name_of(node) for node in nodes)
        allowed: frozenset[str] | None = None
        failed: dict[str, str] = {}
        unresolvable: frozenset[str] = frozenset()
        if self.settings.filter_verb:
            allowed, failed, unresolvable = await self._filter(pod, nodes, names)
            nodes = [node for node in nodes if name_of(node) in allowed]
        points: dict[str, int] = {}
        if self.settings.prioritize_verb and nodes:
            points = await self._points(pod, nodes, names)
        return Answer(self.name, allowed, failed, unresolvable, points)

    async def preempted(
        self, pod: Obj, candidates: Sequence[Candidate]
    ) -> list[tuple[str, frozenset[str], int]]:
        """The nodes that it would clear, with the uids of the victims and the broken budgets."""
        victims = {
            candidate.node: {
                "pods": [{"uid": victim.uid} for victim in candidate.victims],
                "numPDBViolations": candidate.violations,
            }
            for candidate in candidates
        }
        body = {"pod": pod, "nodeNameToMetaVictims": victims}
        found = await self._call(self.settings.preempt_verb, body)
        answers = _mapping(found).get("nodeNameToMetaVictims") or {}
        known = {
            candidate.node: {victim.uid for victim in candidate.victims} for candidate in candidates
        }
        chosen = []
        for node, said in _mapping(answers).items():
            uids = frozenset(item.get("uid") or "" for item in (said or {}).get("pods") or ())
            if node not in known or not uids or not uids <= known[node]:
                raise ExtenderFailed(f"{self.name} names victims on {node} that it was not given")
            chosen.append((node, uids, int(said.get("numPDBViolations") or 0)))
        return chosen

    async def bind(self, pod: Obj, node: str) -> None:
        body = {
            "podName": name_of(pod), "podNamespace": namespace_of(pod),
            "podUID": uid_of(pod), "node": node,
        }  # fmt: skip
        self._raise_error(await self._call(self.settings.bind_verb, body))

    async def _filter(
        self, pod: Obj, nodes: Sequence[Obj], names: Collection[str]
    ) -> tuple[frozenset[str], dict[str, str], frozenset[str]]:
        found = _mapping(await self._call(self.settings.filter_verb, self._arguments(pod, nodes)))
        self._raise_error(found)
        if self.settings.node_names_only:
            allowed = frozenset(found.get("nodenames") or found.get("nodeNames") or ())
        else:
            items = _mapping(found.get("nodes") or {}).get("items") or ()
            allowed = frozenset(name_of(item) for item in items)
        if not allowed <= frozenset(names):
            extra = sorted(allowed - frozenset(names))
            raise ExtenderFailed(f"{self.name} allows nodes that it was not asked about: {extra}")
        hopeless = dict(found.get("failedAndUnresolvableNodes") or {})
        return allowed, {**(found.get("failedNodes") or {}), **hopeless}, frozenset(hopeless)

    async def _points(
        self, pod: Obj, nodes: Sequence[Obj], names: Collection[str]
    ) -> dict[str, int]:
        found = await self._call(self.settings.prioritize_verb, self._arguments(pod, nodes))
        if not isinstance(found, list):
            raise ExtenderFailed(
                f"{self.name} answers {self.settings.prioritize_verb} with no list"
            )
        points: dict[str, int] = {}
        for match_ in found:
            host, score = _mapping(match_).get("host"), _mapping(match_).get("score")
            if not isinstance(score, int) or not 0 <= score <= _MOST_EXTENDER_POINTS:
                raise ExtenderFailed(
                    f"{self.name} gives {host} {score} points; 0 to 10 are allowed"
                )
            if host in names:
                points[str(host)] = score * _SCALE * self.settings.weight
        return points

    def _arguments(self, pod: Obj, nodes: Sequence[Obj]) -> Obj:
        if self.settings.node_names_only:
            return {"pod": pod, "nodenames": [name_of(node) for node in nodes]}
        return {"pod": pod, "nodes": {"apiVersion": "v1", "kind": "NodeList", "items": list(nodes)}}

    async def _call(self, verb: str, body: Obj) -> object:
        url = f"{self.settings.url_prefix.rstrip('/')}/{verb}"
        try:
            answer = await self._http.request(
                "POST", url, headers=_JSON, body=orjson.dumps(body),
                timeout_seconds=self.settings.timeout_seconds,
            )  # fmt: skip
        except HttpError as error:
            raise ExtenderFailed(f"extender {url}: {error}") from error
        if answer.status != 200:
            raise ExtenderFailed(f"extender {url} answers {answer.status}")
        try:
            found: object = orjson.loads(answer.body)
        except orjson.JSONDecodeError as error:
            raise ExtenderFailed(f"extender {url} answers with something else than JSON") from error
        return found

    def _raise_error(self, found: object) -> None:
        said = _mapping(found).get("error") or _mapping(found).get("Error")
        if said:
            raise ExtenderFailed(f"extender {self.name}: {said}")


def _mapping(found: object) -> Obj:
    if not isinstance(found, dict):
        raise ExtenderFailed("an extender answers with something else than an object")
    return found
