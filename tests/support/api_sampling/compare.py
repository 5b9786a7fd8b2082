"""Asks two servers the same and says where they differ.

`python -m tests.support.api_sampling.compare --a KUBECONFIG --b here|KUBECONFIG [--first 1]
[--stories 1000] [--only KIND] [--show 40] [--out FILE.jsonl]`

Job: send stories (tests/support/api_sampling/stories.py) to both, compare code, body and warnings,
    group the differences, and write those stories down as steps that record.py takes.
Invariant: a story ends with its first difference: what follows would follow from it.
"""

import argparse
import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from sampan.api.objects import Obj
from sampan.api.schema.published import Schema
from sampan.core.fast_dataclass import dataclass
from sampan.core.tasks import all_of
from tests.support.api_sampling.exchange import Exchange
from tests.support.api_sampling.masks import comparable_answer
from tests.support.api_sampling.servers import Server, server_at
from tests.support.api_sampling.stories import CHARGED, NAMESPACE, Stories

AT_ONCE = 4
# Kept on purpose: who writes an Ingress that nobody serves is warned.
# What an original on an etcd without progress notifications says, and one that is starved.
NOT_ANSWERED = re.compile(r"RequestWatchProgress is disabled|Too large resource version")
OWN_WARNING = re.compile(r"nobody serves this Ingress")


@dataclass(frozen=True, slots=True)
class Different:
    number: int
    steps: list[Obj]  # up to the one that differs
    first: list[Any]
    second: list[Any]

    @property
    def is_code(self) -> bool:
        return bool(self.first[0] != self.second[0])

    def signature(self) -> str:
        """Differences with one signature are one class, as a first guess."""
        step = self.steps[-1]
        kind = re.sub(r"/s\d+", "/NAME", step["path"]).split("/namespaces/")[-1]
        how = step.get("content-type", "").removeprefix("application/").split("+")[0]
        where = f"{step['method']} {kind} {how}"
        if self.is_code:
            return f"{self.first[0]}|{self.second[0]} {where} {_reason(self.first)}"
        paths = sorted(
            {re.sub(r"\[\d+\]", "[]", path) for path, _, _ in differing(self.first, self.second)}
        )
        return f"{self.first[0]} {where} {paths[:3]}"


def _reason(answer: list[Any]) -> str:
    body = answer[1]
    text = str(body.get("message") or "") if isinstance(body, dict) else ""
    return re.sub(r'"[^"]*"|\[\d+\]|s\d+', "*", text)[:80]


def differing(one: Any, other: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    if type(one) is not type(other):
        return [(path, one, other)]
    if isinstance(one, dict):
        return [
            found
            for key in sorted({*one, *other})
            for found in differing(
                one.get(key, "(absent)"), other.get(key, "(absent)"), f"{path}.{key}"
            )
        ]
    if isinstance(one, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [found for at, (x, y) in pairs for found in differing(x, y, f"{path}[{at}]")]
    return [] if one == other else [(path, one, other)]


def _without_own(answer: list[Any]) -> list[Any]:
    code, body, warnings, *headers = answer
    return [code, body, [text for text in warnings if not OWN_WARNING.search(text)], *headers]


def _is_comparable(answer: list[Any]) -> bool:
    """Whether the original could answer: its store may be too old, its cache behind."""
    return not (answer[0] == 0 or NOT_ANSWERED.search(json.dumps(answer[1])))


class Comparison:
    def __init__(self, first: Server, second: Server) -> None:
        self._servers = (first, second)
        self.requests, self.codes, self.left_out = 0, 0, 0
        self.found: list[Different] = []

    async def prepare(self) -> None:
        for server in self._servers:
            for name in (NAMESPACE, CHARGED):
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                data = json.dumps(body).encode()
                await server.send(
                    "POST", "/api/v1/namespaces", {"content-type": "application/json"}, data
                )
                # Where no controllers run nobody else makes it, and without it there are no pods.
                account = {"apiVersion": "v1", "kind": "ServiceAccount",
                           "metadata": {"name": "default"}}  # fmt: skip
                await server.send(
                    "POST", f"/api/v1/namespaces/{name}/serviceaccounts",
                    {"content-type": "application/json"}, json.dumps(account).encode(),
                )  # fmt: skip

    async def story(self, number: int, steps: list[Obj]) -> None:
        exchanges = [Exchange(server) for server in self._servers]
        for at, step in enumerate(steps):
            first, second = await all_of(exchange.answer(step) for exchange in exchanges)
            first, second = (_without_own(comparable_answer(found)) for found in (first, second))
            if not _is_comparable(first):
                self.left_out += 1
                continue
            self.requests += 1
            if first != second:
                different = Different(number, steps[: at + 1], first, second)
                self.found.append(different)
                self.codes += different.is_code
                await all_of(exchange.answer(steps[-1]) for exchange in exchanges)
                return

    def report(self, show: int) -> str:
        lines = [
            f"{self.requests} requests, {len(self.found)} answers differ "
            f"({1000 * len(self.found) / max(1, self.requests):.2f} per thousand), "
            f"{self.codes} codes ({1000 * self.codes / max(1, self.requests):.2f} per thousand); "
            f"{self.left_out} that the first could not answer left out"
        ]
        counts = Counter(one.signature() for one in self.found)
        for signature, count in counts.most_common(show):
            example = next(one for one in self.found if one.signature() == signature)
            lines.append(f"{count:5} {signature}  (story {example.number})")
        return "\n".join(lines)


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--a", required=True)
    parser.add_argument("--b", default="here")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--stories", type=int, default=1000)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", type=int, default=40)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    stories = Stories(Schema.load())
    async with server_at(options.a) as first, server_at(options.b) as second:
        comparison = Comparison(first, second)
        await comparison.prepare()
        numbers = iter(range(options.first, options.first + options.stories))

        async def work() -> None:
            for number in numbers:
                await comparison.story(number, stories.story(number, options.only))

        await all_of(work() for _ in range(AT_ONCE))
    print(comparison.report(options.show))
    if options.out:
        lines = [
            json.dumps({"number": one.number, "signature": one.signature(), "steps": one.steps,
                        "a": one.first, "b": one.second})
            for one in comparison.found
        ]  # fmt: skip
        options.out.write_text("\n".join(lines))


if __name__ == "__main__":
    asyncio.run(_main())
