"""Stages, as manifests have them.

Job: documents → Stages, or everything that is wrong with them. Pure.
Invariant: what KWOK has and this has not (impersonation) is refused by its name.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sampan.api.configuration import BadConfiguration, ConfigReader
from sampan.api.go_template.execution import Template
from sampan.api.go_template.parser import TemplateError
from sampan.api.objects import Obj
from sampan.controllers.stages.expressions import OPERATORS, Expression, Requirement, compiled
from sampan.controllers.stages.jq_query import parse_query
from sampan.controllers.stages.stage import (
    API_VERSION,
    KIND,
    Applied,
    Delay,
    Deleted,
    Finalizers,
    Patched,
    Selector,
    Stage,
    StageEvent,
    Step,
)
from sampan.controllers.stages.template_functions import NAMES

T = TypeVar("T")
_SPEC = (
    "resourceRef", "selector", "weight", "weightFrom", "delay", "next", "steps",
    "immediateNextStage",
)  # fmt: skip
_SELECTOR = ("matchLabels", "matchAnnotations", "matchExpressions")
_DELAY = (
    "durationMilliseconds", "durationFrom", "jitterDurationMilliseconds", "jitterDurationFrom",
)  # fmt: skip
_NEXT = ("event", "finalizers", "delete", "patches", "statusTemplate", "statusSubresource")
_STEP = ("event", "finalizers", "delete", "patch", "apply")
_PATCH = ("root", "template", "type", "subresource")
_APPLY = ("template", "type", "subresource")
_TOLD = ("type", "reason", "message")
_IMPERSONATION = ("statusPatchAs", "impersonation")


def stages_of(documents: Iterable[object]) -> tuple[Stage, ...]:
    """Raises BadConfiguration."""
    found, problems = [], []
    for number, document in enumerate(documents, 1):
        try:
            found.append(stage_of(document))
        except BadConfiguration as error:
            about = _name_in(document) or f"document {number}"
            problems += [f"{about}: {problem}" for problem in error.problems]
    names = [stage.name for stage in found]
    problems += [f"{name}: there are two of this name" for name in _twice(names)]
    if problems:
        raise BadConfiguration(problems)
    return tuple(found)


def stage_of(written: object) -> Stage:
    """Raises BadConfiguration."""
    reader = _StageReader()
    document = reader.document(written, KIND, (API_VERSION,))
    stage = reader.stage(_name_in(document), reader.mapping(document.get("spec"), "spec"))
    reader.settle()
    return stage


def _name_in(document: object) -> str:
    meta = document.get("metadata") if isinstance(document, dict) else None
    return str(meta.get("name") or "") if isinstance(meta, dict) else ""


def _twice(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


class _StageReader(ConfigReader):
    def stage(self, name: str, spec: Obj) -> Stage:
        if not name:
            self.wrong("metadata.name", "is missing")
        self.known(spec, _SPEC, "spec")
        about = self.mapping(spec.get("resourceRef"), "spec.resourceRef")
        self.known(about, ("apiGroup", "kind"), "spec.resourceRef")
        kind = self._text(about, "kind", "spec.resourceRef")
        if not kind:
            self.wrong("spec.resourceRef.kind", "is missing")
        return Stage(
            name,
            self._text(about, "apiGroup", "spec.resourceRef") or "v1",
            kind,
            self._selector(spec.get("selector")),
            self._steps(spec),
            self._whole(spec, "weight", "spec"),
            self._from(spec.get("weightFrom"), "spec.weightFrom"),
            self._delay(spec.get("delay")),
        )

    def _selector(self, written: object) -> Selector | None:
        if written is None:
            return None
        path = "spec.selector"
        given = self.mapping(written, path)
        self.known(given, _SELECTOR, path)
        requirements, conditions = [], []
        expressions = self.items(given.get("matchExpressions"), f"{path}.matchExpressions")
        for number, each in enumerate(expressions):
            place = f"{path}.matchExpressions[{number}]"
            wanted = self.mapping(each, place)
            self.known(wanted, ("key", "operator", "values", "jq", "cel"), place)
            if "cel" in wanted:
                source = self._text(self.mapping(wanted["cel"], place), "expression", place)
                conditions.append(self._checked(compiled, source, f"{place}.cel"))
            else:
                jq = self.mapping(wanted["jq"], place) if "jq" in wanted else wanted
                requirements.append(self._requirement(jq, place))
        return Selector(
            self._texts(given.get("matchLabels"), f"{path}.matchLabels"),
            self._texts(given.get("matchAnnotations"), f"{path}.matchAnnotations"),
            [each for each in requirements if each is not None],
            [each for each in conditions if each is not None],
        )

    def _requirement(self, given: Obj, path: str) -> Requirement | None:
        operator = self._text(given, "operator", path)
        values = [str(each) for each in self.items(given.get("values"), f"{path}.values")]
        query = self._checked(parse_query, self._text(given, "key", path), f"{path}.key")
        if operator not in OPERATORS:
            self.wrong(f"{path}.operator", f"{operator!r} is none of {', '.join(OPERATORS)}")
        elif bool(values) != (operator in ("In", "NotIn")):
            said = "must not be there" if values else "must be there"
            self.wrong(f"{path}.values", f"{said} with the operator {operator}")
        return None if query is None else Requirement(query, operator, values)

    def _delay(self, written: object) -> Delay:
        if written is None:
            return Delay()
        path = "spec.delay"
        given = self.mapping(written, path)
        self.known(given, _DELAY, path)
        jitter = given.get("jitterDurationMilliseconds")
        return Delay(
            self._whole(given, "durationMilliseconds", path) / 1000,
            self._from(given.get("durationFrom"), f"{path}.durationFrom"),
            None
            if jitter is None
            else self._whole(given, "jitterDurationMilliseconds", path) / 1000,
            self._from(given.get("jitterDurationFrom"), f"{path}.jitterDurationFrom"),
        )

    def _from(self, written: object, path: str) -> Expression | None:
        if written is None:
            return None
        given = self.mapping(written, path)
        self.known(given, ("expressionFrom", "jq", "cel"), path)
        if "cel" in given:
            source = self._text(self.mapping(given["cel"], path), "expression", path)
            return self._checked(compiled, source, f"{path}.cel")
        if "jq" in given:
            source = self._text(self.mapping(given["jq"], path), "expression", path)
        else:
            source = self._text(given, "expressionFrom", path)
        return self._checked(parse_query, source, path)

    # Steps.

    def _steps(self, spec: Obj) -> list[Step]:
        if spec.get("steps"):
            steps = []
            for number, each in enumerate(self.items(spec["steps"], "spec.steps")):
                path = f"spec.steps[{number}]"
                given = self.mapping(each, path)
                self._understood(given, _STEP, path)
                steps += self._of_step(given, path)
            return steps
        if spec.get("next") is None:
            return []
        given = self.mapping(spec["next"], "spec.next")
        self._understood(given, _NEXT, "spec.next")
        return self._of_next(given)

    def _of_next(self, given: Obj) -> list[Step]:
        path = "spec.next"
        steps = self._of_step({**given, "delete": False}, path)
        patches = self.items(given.get("patches"), f"{path}.patches")
        for number, each in enumerate(patches):
            steps += self._patched(self.mapping(each, path), f"{path}.patches[{number}]")
        if not patches and given.get("statusTemplate"):
            template = self._template(given, path, "statusTemplate")
            subresource = self._text(
                {"statusSubresource": "status", **given}, "statusSubresource", path
            )
            steps += [Patched(template, "status", "", subresource)] if template else []
        return [*steps, Deleted()] if given.get("delete") else steps

    def _of_step(self, given: Obj, path: str) -> list[Step]:
        """In the order in which KWOK does what is in one step."""
        steps: list[Step] = []
        if given.get("event") is not None:
            event = self.mapping(given["event"], f"{path}.event")
            self.known(event, _TOLD, f"{path}.event")
            words = [self._text(event, word, f"{path}.event") for word in _TOLD]
            steps.append(StageEvent(words[0] or "Normal", words[1], words[2]))
        if given.get("finalizers") is not None:
            steps.append(self._finalizers(given["finalizers"], f"{path}.finalizers"))
        if given.get("delete"):
            return [*steps, Deleted()]
        if given.get("patch") is not None:
            steps += self._patched(self.mapping(given["patch"], path), f"{path}.patch")
        if given.get("apply") is not None:
            steps += self._applied(self.mapping(given["apply"], path), f"{path}.apply")
        return steps

    def _finalizers(self, written: object, path: str) -> Finalizers:
        given = self.mapping(written, path)
        self.known(given, ("add", "remove", "empty"), path)
        add, remove = (
            tuple(
                self._text(self.mapping(item, f"{path}.{word}"), "value", f"{path}.{word}")
                for item in self.items(given.get(word), f"{path}.{word}")
            )
            for word in ("add", "remove")
        )
        return Finalizers(add, remove, bool(given.get("empty")))

    def _patched(self, given: Obj, path: str) -> list[Step]:
        self._understood(given, _PATCH, path)
        root, subresource = (self._text(given, word, path) for word in ("root", "subresource"))
        chosen = self._choice(given, ("", "json", "merge", "strategic"), path)
        template = self._template(given, path)
        return [] if template is None else [Patched(template, root, chosen, subresource)]

    def _applied(self, given: Obj, path: str) -> list[Step]:
        self._understood(given, _APPLY, path)
        chosen = self._choice(given, ("", "apply", "merge", "strategic"), path) or "apply"
        template = self._template(given, path)
        subresource = self._text(given, "subresource", path)
        return [] if template is None else [Applied(template, chosen, subresource)]

    def _template(self, given: Obj, path: str, name: str = "template") -> Template | None:
        try:
            return Template(self._text(given, name, path).strip(), further=NAMES)
        except TemplateError as error:
            self.wrong(f"{path}.{name}", str(error))
            return None

    # Values.

    def _understood(self, given: Obj, names: Sequence[str], path: str) -> None:
        for word in _IMPERSONATION:
            if word in given:
                self.wrong(f"{path}.{word}", "impersonation is not there: leave it out")
        self.known({key: None for key in given if key not in _IMPERSONATION}, names, path)

    def _checked(self, parse: Callable[[str], T], source: str, path: str) -> T | None:
        try:
            return parse(source)
        except ValueError as error:
            self.wrong(path, str(error))
            return None

    def _choice(self, given: Obj, choices: Sequence[str], path: str) -> str:
        said = self._text(given, "type", path)
        if said not in choices:
            known = ", ".join(each for each in choices if each)
            self.wrong(f"{path}.type", f"{said!r} is none of {known}")
        return said

    def _text(self, given: Obj, name: str, path: str) -> str:
        value = given.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        self.wrong(f"{path}.{name}", "expected a text")
        return ""

    def _texts(self, written: object, path: str) -> dict[str, str]:
        given = {} if written is None else self.mapping(written, path)
        return {str(key): str(value) for key, value in given.items()}

    def _whole(self, given: Obj, name: str, path: str) -> int:
        value = given.get(name, 0)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
            return value
        self.wrong(f"{path}.{name}", f"{value!r} is no whole number from 0 on")
        return 0
