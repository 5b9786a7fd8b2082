"""`taint`: taints on nodes.

Job: parse `key=value:effect` and `key[:effect]-`, compare with the node's, write them back.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.api.rules import names
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Several, UsageError
from sampan.cli.flags import Values
from sampan.cli.objects import changing, writing
from sampan.cli.objects.infos import Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    for index, word in enumerate(words):
        if "=" in word or ":" in word or (word.endswith("-") and index > 0):
            return words[:index], words[index:]
    return words, []


def run(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    printer = ObjectPrinter(values)
    resources, words = _split(values.arguments)
    if not resources:
        raise CliError("one or more resources must be specified as <resource> <name>")
    if not words:
        raise CliError("at least one taint update is required")
    kind = resources[0].partition("/")[0]
    if kind.lower() not in ("node", "nodes", "no"):
        raise CliError(f"invalid resource type {kind}, only node types are supported")
    wanted, gone = _parse(words)
    if values["all"] and values["selector"]:
        raise CliError("setting 'all' parameter with a non empty selector is prohibited")
    outcome = changing.Outcome(printer, strategy)
    failures: list[Exception] = []
    for found in changing.select(session, values, resources):
        if isinstance(found, Exception):
            failures.append(found)
            continue
        try:
            _taint(session, values, found, (wanted, gone), outcome)
        except (CliError, ApiError) as error:
            failures.append(error)
    if failures:
        raise Several(failures)


def _parse(words: list[str]) -> tuple[list[Obj], list[Obj]]:
    wanted: list[Obj] = []
    gone: list[Obj] = []
    for word in words:
        is_removal = word.endswith("-")
        taint = _taint_of(word.removesuffix("-"), word, is_removal)
        if is_removal:
            gone.append(taint)
            continue
        for other in wanted:
            if (other["key"], other["effect"]) == (taint["key"], taint["effect"]):
                shown = f"{{{taint['key']} {taint.get('value', '')} {taint['effect']} <nil>}}"
                raise UsageError(f"duplicated taints with the same key and effect: {shown}")
        wanted.append(taint)
    both = [
        f"{taint['key']}="
        for taint in wanted
        for other in gone
        if other["key"] == taint["key"] and other.get("effect") in (None, taint["effect"])
    ]
    if both:
        raise CliError(
            "can not both modify and remove the following taint(s) in the same command: "
            + ", ".join(both)
        )
    return wanted, gone


def _taint_of(text: str, word: str, is_removal: bool) -> Obj:
    pair, colon, effect = text.partition(":")
    key, _equals, value = pair.partition("=")
    if not colon and not is_removal:
        complaints = names.qualified_name(text)
        raise UsageError(f"invalid taint spec: {text}, {'; '.join(complaints)}")
    complaints = names.qualified_name(key)
    if complaints:
        raise UsageError(f"invalid taint spec: {word}, {'; '.join(complaints)}")
    if colon and effect not in EFFECTS:
        raise UsageError(f"invalid taint effect: {effect}, unsupported taint effect")
    taint: Obj = {"key": key}
    if value:
        taint["value"] = value
    if colon:
        taint["effect"] = effect
    return taint


def _taint(
    session: Session,
    values: Values,
    info: Info,
    change: tuple[list[Obj], list[Obj]],
    outcome: changing.Outcome,
) -> None:
    wanted, gone = change
    before: list[Obj] = (info.obj.get("spec") or {}).get("taints") or []
    same = _same_taints(before, wanted)
    if same and not values["overwrite"]:
        raise CliError(
            f"node {info.name} already has a taint(s) with same effect(s) and --overwrite is false"
        )
    kept = _without(gone, [taint for taint in before if taint not in same])
    after = [*wanted, *kept]
    done = _word(wanted, gone, same)
    obj = {**info.obj, "spec": {**(info.obj.get("spec") or {}), "taints": after}}
    if outcome.strategy != "client":
        query = writing.options(dry_run=outcome.strategy, manager=values.text("field-manager"))
        patch = {"spec": {"taints": after or None}}
        obj = writing.patch(session, info.path, patch, "merge", query)
    # kubectl says nothing of a dry run here.
    changing.show(session, outcome.printer, info, obj, done, "none")


def _same_taints(before: list[Obj], wanted: list[Obj]) -> list[Obj]:
    """The node's taints that have key and effect of a wanted one."""
    return [
        taint
        for taint in before
        for item in wanted
        if (taint["key"], taint["effect"]) == (item["key"], item["effect"])
    ]


def _word(wanted: list[Obj], gone: list[Obj], same: list[Obj]) -> str:
    if same or (wanted and gone):
        return "modified"
    return "tainted" if wanted else "untainted"


def _without(gone: list[Obj], kept: list[Obj]) -> list[Obj]:
    for item in gone:
        removed = [
            taint
            for taint in kept
            if taint["key"] == item["key"] and item.get("effect") in (None, taint["effect"])
        ]
        if not removed:
            name = f"{item['key']}:{item['effect']}" if item.get("effect") else item["key"]
            raise CliError(f'taint "{name}" not found')
        kept = [taint for taint in kept if taint not in removed]
    return kept


TAINT = Command(
    "taint",
    "taint NODE NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N [options]",
    "Update the taints on one or more nodes.",
    run,
    (
        *PRINT_FLAGS,
        common_flags.SELECTOR,
        common_flags.DRY_RUN,
        common_flags.VALIDATE,
        common_flags.field_manager("kubectl-taint"),
        switch("all", "Select all nodes in the cluster."),
        switch("overwrite", "Allow taints to be overwritten."),
    ),
)
