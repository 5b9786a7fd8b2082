"""`label` and `annotate`: pairs on objects.

Job: parse `key=value` and `key-`, compare with what is there, patch.
"""

import re

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Several
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, writing
from sampan.cli.objects.infos import Info
from sampan.cli.output import ObjectPrinter
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    field: str
    word: str  # as messages say it
    done: str


@dataclass(frozen=True, slots=True)
class Pairs:
    """What was asked for."""

    kind: Kind
    wanted: dict[str, str]
    gone: tuple[str, ...]


LABELS = Kind("labels", "label", "labeled")
ANNOTATIONS = Kind("annotations", "annotation", "annotated")


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Resources first, then pairs: from the first word that is one."""
    for index, word in enumerate(words):
        if re.match(r"[^=]+=", word) or (word.endswith("-") and len(word) > 1 and index > 0):
            return words[:index], words[index:]
    return words, []


def _pairs(words: list[str], kind: Kind) -> tuple[dict[str, str], list[str]]:
    wanted: dict[str, str] = {}
    gone: list[str] = []
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key:
            if kind is LABELS:
                complaints = names.label_value(value)
                if complaints:
                    raise CliError(f'invalid label value: "{word}": {"; ".join(complaints)}')
            wanted[key] = value
        elif word.endswith("-") and not equals:
            gone.append(word[:-1])
        else:
            raise CliError(f"unknown {kind.word} spec: {word}")
    if set(wanted) & set(gone):
        raise CliError(f"can not both modify and remove {_article(kind)} in the same command")
    return wanted, gone


def _article(kind: Kind) -> str:
    return "a label" if kind is LABELS else "an annotation"


def _run(session: Session, values: Values, kind: Kind) -> None:
    strategy = common_flags.dry_run(session, values)
    printer = ObjectPrinter(values)
    resources, words = _split(values.arguments)
    wanted, gone = _pairs(words, kind)
    if not wanted and not gone and not values["list"]:
        raise CliError(f"at least one {kind.word} update is required")
    if values["resource-version"] and len(resources) > 2:
        raise CliError("--resource-version may only be used with a single resource")
    if values["list"] and values["output"]:
        raise CliError("--list and --output may not be specified together")
    outcome = changing.Outcome(printer, strategy)
    failures: list[Exception] = []
    if values["all"] and len(resources) > 1:
        values._values["all"] = False
    for found in changing.select(session, values, resources):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        try:
            _change(session, values, found, Pairs(kind, wanted, tuple(gone)), outcome)
        except (CliError, ApiError) as error:
            failures.append(error)
    if failures:
        raise Several(failures)


def _change(
    session: Session,
    values: Values,
    info: Info,
    pairs: Pairs,
    outcome: changing.Outcome,
) -> None:
    kind, strategy = pairs.kind, outcome.strategy
    before = (info.obj.get("metadata") or {}).get(kind.field) or {}
    if not values["overwrite"]:
        _refuse_overwrites(pairs, before)
    if not values["list"]:
        _tell_missing(session, pairs, before)
    union = {**before, **pairs.wanted}
    after = {key: value for key, value in union.items() if key not in pairs.gone}
    done = _word(kind, before, after)
    obj = _with(info.obj, kind.field, after)
    if not values["local"] and strategy != "client" and after != before and not values["list"]:
        query = writing.options(dry_run=strategy, manager=values.text("field-manager"))
        patch = _patch(pairs, before, values["resource-version"])
        obj = writing.patch(session, info.path, patch, "merge", query)
    if values["list"]:
        for key, value in after.items():
            session.print(f"{key}={value}")
        return
    changing.show(session, outcome.printer, info, obj, done, strategy)


def _refuse_overwrites(pairs: Pairs, before: dict[str, str]) -> None:
    for key, value in pairs.wanted.items():
        if key in before and before[key] != value:
            raise CliError(f"'{key}' already has a value ({before[key]}), and --overwrite is false")


def _tell_missing(session: Session, pairs: Pairs, before: dict[str, str]) -> None:
    for key in pairs.gone:
        if key not in before:
            session.print(f'{pairs.kind.word} "{key}" not found.')


def _patch(pairs: Pairs, before: dict[str, str], version: str) -> Obj:
    """Only what differs; with a version, only where the object still has it."""
    changes: Obj = {key: None for key in pairs.gone if key in before}
    changes |= {key: value for key, value in pairs.wanted.items() if before.get(key) != value}
    patch: Obj = {"metadata": {pairs.kind.field: changes}}
    if version:
        patch["metadata"]["resourceVersion"] = version
    return patch


def _word(kind: Kind, before: dict[str, str], after: dict[str, str]) -> str:
    if kind is ANNOTATIONS:
        return "annotated"
    if before == after:
        return "not labeled"
    if set(after) < set(before) and all(after[key] == before[key] for key in after):
        return "unlabeled"
    return "labeled"


def _with(obj: Obj, field: str, pairs: dict[str, str]) -> Obj:
    meta = dict(obj.get("metadata") or {})
    meta[field] = pairs
    if not pairs:
        del meta[field]
    return {**obj, "metadata": meta}


def label(session: Session, values: Values) -> None:
    _run(session, values, LABELS)


def annotate(session: Session, values: Values) -> None:
    _run(session, values, ANNOTATIONS)


def _flags(manager: str) -> tuple[Flag, ...]:
    return (
        *changing.CHANGE_FLAGS,
        changing.ALL,
        common_flags.ALL_NAMESPACES,
        common_flags.FIELD_SELECTOR,
        common_flags.RECORD,
        common_flags.field_manager(manager),
        switch("list", "Display what the objects have, after the change."),
        switch("overwrite", "Allow values to be overwritten."),
        Flag("resource-version", usage="Only succeed when this is the object's resource version."),
    )


LABEL = Command(
    "label",
    "label [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version] [options]",
    "Update the labels on a resource.",
    label,
    _flags("kubectl-label"),
)
ANNOTATE = Command(
    "annotate",
    "annotate [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version] [options]",
    "Update the annotations on one or more resources.",
    annotate,
    _flags("kubectl-annotate"),
)
