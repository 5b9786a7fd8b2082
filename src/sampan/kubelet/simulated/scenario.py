"""A scenario: which simulated pods behave how, written down in one file instead of on every pod.

Job: file content → rules; a pod → the annotations that it would carry, were the rules written on
    it. Pure.
Invariant: what the pod's own annotations say comes before any rule; a later rule before an earlier.
Invariant: which pods a `share` takes depends on their uids alone: a restart changes nothing.
Invariant: a word that means nothing is refused, with the place where it stands.

    apiVersion: simulated.sampan.dev/v1
    kind: Scenario
    rules:
    - script: {start-seconds: 0.5}              # every pod
    - selector: {matchLabels: {app: web}}       # these …
      namespace: shop                           # … in this namespace …
      name: web-*                               # … whose names look like this …
      share: 0.1                                # … and of those one in ten
      script:                                   # as the annotations, without simulated.sampan.dev/
        exit-after-seconds: 30
        exit-code: 1
        log: started
        readiness-probe: fail,fail,ok
        fail: run_sandbox:1:no network
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any
from zlib import crc32

from sampan.api.configuration import ConfigReader
from sampan.api.objects import Obj
from sampan.api.rules import selectors
from sampan.api.rules.selectors import LabelSelector, SelectorError
from sampan.core.fast_dataclass import dataclass
from sampan.kubelet.simulated.script import PREFIX, problem_of

API_VERSION, KIND = "simulated.sampan.dev/v1", "Scenario"
_RULE = ("selector", "namespace", "name", "share", "script")
_SHARES = 1 << 32  # as many different checksums as there are


@dataclass(frozen=True, slots=True)
class Rule:
    script: Mapping[str, str]  # whole annotations
    selector: Any = None  # None: whatever the labels are
    namespace: str = ""  # empty: any
    name: str = ""  # a pattern; empty: any
    share: float = 1.0
    salt: str = ""  # so that two rules of one share do not take the same pods

    def takes(self, namespace: str, name: str, labels: Mapping[str, str], uid: str) -> bool:
        if self.namespace not in ("", namespace):
            return False
        if self.name and not fnmatchcase(name, self.name):
            return False
        if self.selector is not None and not self.selector.matches(labels):
            return False
        return self.share >= 1 or crc32(f"{self.salt}{uid}".encode()) < self.share * _SHARES


@dataclass(frozen=True, slots=True)
class Scenario:
    rules: Sequence[Rule] = field(default_factory=tuple)

    def annotations(
        self,
        namespace: str,
        name: str,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
        uid: str,
    ) -> Mapping[str, str]:
        """The pod's own, and what the rules add to them."""
        if not self.rules:
            return annotations
        added: dict[str, str] = {}
        for rule in self.rules:
            if rule.takes(namespace, name, labels, uid):
                added |= rule.script
        return {**added, **annotations} if added else annotations


NOTHING = Scenario()
# Nobody tests a Job whose pods never end: a second, unless a rule or an annotation says otherwise.
JOBS_END = Rule(
    {f"{PREFIX}exit-after-seconds": "1"},
    selectors.from_object(
        {"matchExpressions": [{"key": "batch.kubernetes.io/job-name", "operator": "Exists"}]}
    ),
)


def with_ends_of_jobs(scenario: Scenario) -> Scenario:
    """What a user's rules say comes before it."""
    return Scenario((JOBS_END, *scenario.rules))


def scenario_of(written: object) -> Scenario:
    """Raises BadConfiguration with everything that is wrong."""
    reader = ConfigReader()
    document = reader.document(written, KIND, (API_VERSION,))
    reader.known(document, {"apiVersion", "kind", "rules"}, "")
    if document.get("rules") is None:
        reader.wrong("rules", "expected a list")
    rules = [
        _rule(reader, item, number)
        for number, item in enumerate(reader.items(document.get("rules"), "rules"))
    ]
    reader.settle()
    return Scenario(tuple(rules))


def _rule(reader: ConfigReader, written: object, number: int) -> Rule:
    path = f"rules[{number}]"
    given = reader.mapping(written, path)
    reader.known(given, _RULE, path)
    script, share = given.get("script"), given.get("share", 1)
    if isinstance(written, dict) and (not isinstance(script, dict) or not script):
        reader.wrong(f"{path}.script", "what such a pod does is missing")
        script = {}
    texts = {str(name): _text(value) for name, value in (script or {}).items()}
    for name, text in texts.items():
        if found := problem_of(name, text):
            reader.wrong(f"{path}.script", found)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        reader.wrong(f"{path}.share", f"{share!r} is not between 0 and 1")
        share = 0
    return Rule(
        {PREFIX + name: text for name, text in texts.items()},
        _selector(reader, given, path),
        str(given.get("namespace") or ""),
        str(given.get("name") or ""),
        float(share),
        salt=f"{number}/",
    )


def _selector(reader: ConfigReader, given: Obj, path: str) -> LabelSelector | None:
    try:
        return selectors.from_object(given["selector"]) if "selector" in given else None
    except (SelectorError, TypeError, AttributeError, KeyError) as fault:
        reader.wrong(f"{path}.selector", str(fault))
        return None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
