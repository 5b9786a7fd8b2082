"""`taint`: taints on nodes.

Job: parse `key=value:effect` and `key[:effect]-`, compare with the node's, write them back.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, copy_of
from sampan.api.rules import names
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import DryRun, switch
from sampan.cli.errors import CliError, Plain, Several, UsageError, raise_all
from sampan.cli.flags import Values
from sampan.cli.objects import changing, three_way, writing
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.discovery import NoMatch
from sampan.cli.objects.infos import Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def run(session: Session, values: Values) -> None:
    session.check_context()
    strategy = common_flags.dry_run(session, values)
    validation = common_flags.validation(values)
    resources, words = _split(values.arguments)
    if not resources:
        raise CliError("one or more resources must be specified as <resource> <name>")
    if not words:
        raise CliError("at least one taint update is required")
    wanted, gone = _parse(words)
    builder = _builder(session, values, resources)
    _check(session, values, resources, wanted, gone)
    query = writing.options(
        dry_run=strategy, manager=values.text("field-manager"), validation=validation
    )
    failures: list[Exception] = []
    for found in builder.do().visit():
        try:
            if isinstance(found, Exception):
                raise found
            _taint(session, values, found, (wanted, gone), strategy, query)
        except (CliError, ApiError) as error:
            failures.append(error)
    raise_all(failures)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    resources: list[str] = []
    taints: list[str] = []
    for word in words:
        if "=" in word or ":" in word or word.endswith("-"):
            taints.append(word)
        elif taints:
            raise CliError(f"all resources must be specified before taint changes: {word}")
        else:
            resources.append(word)
    return resources, taints


def _builder(session: Session, values: Values, resources: list[str]) -> Builder:
    builder = Builder(session, continue_on_error=True).in_namespace()
    builder.typed = True
    selector = values.text("selector")
    if selector:
        builder.labels(selector).types("node")
    if values["all"]:
        builder.all(True).types("node")
    if not values["all"] and not selector and len(resources) >= 2:
        builder.names("node", resources[1:])
    builder.labels(selector)
    builder.latest = True
    return builder


def _check(
    session: Session, values: Values, resources: list[str], wanted: list[Obj], gone: list[Obj]
) -> None:
    kind = resources[0].lower()
    try:
        found = session.discovery.find(kind)
    except NoMatch as error:
        raise Plain(str(error)) from error
    if found.kind != "Node":
        raise CliError(f"invalid resource type {kind}, only node types are supported")
    both = [
        f"{other['key']}={other.get('effect', '')}"
        for taint in wanted
        for other in gone
        if other["key"] == taint["key"] and other.get("effect") in (None, taint["effect"])
    ]
    if both:
        raise CliError(
            "can not both modify and remove the following taint(s) in the same command: "
            + ", ".join(both)
        )
    if values["all"] and values["selector"]:
        raise CliError("setting 'all' parameter with a non empty selector is prohibited")
    if not values["all"] and not values["selector"] and len(resources) < 2:
        raise CliError(
            "at least one resource name must be specified since 'all' parameter is not set"
        )


def _parse(words: list[str]) -> tuple[list[Obj], list[Obj]]:
    wanted: list[Obj] = []
    gone: list[Obj] = []
    for word in words:
        taint = _taint_of(word.removesuffix("-"))
        if word.endswith("-"):
            gone.append({key: taint[key] for key in ("key", "effect") if key in taint})
            continue
        if "effect" not in taint:
            raise UsageError(f"invalid taint spec: {word}")
        if any(_matches(other, taint) for other in wanted):
            shown = f"{{{taint['key']} {taint.get('value', '')} {taint['effect']} <nil>}}"
            raise UsageError(f"duplicated taints with the same key and effect: {shown}")
        wanted.append(taint)
    return wanted, gone


def _matches(one: Obj, other: Obj) -> bool:
    return bool((one["key"], one["effect"]) == (other["key"], other["effect"]))


def _taint_of(text: str) -> Obj:
    parts = text.split(":")
    taint: Obj = {"key": text}
    if len(parts) > 2:
        raise UsageError(f"invalid taint spec: {text}")
    if len(parts) == 2:
        if parts[1] not in EFFECTS:
            raise UsageError(f"invalid taint effect: {parts[1]}, unsupported taint effect")
        pair = parts[0].split("=")
        if len(pair) > 2:
            raise UsageError(f"invalid taint spec: {text}")
        taint = {"key": pair[0]}
        if len(pair) == 2:
            if complaints := names.label_value(pair[1]):
                raise UsageError(f"invalid taint spec: {text}, {'; '.join(complaints)}")
            if pair[1]:
                taint["value"] = pair[1]
        taint["effect"] = parts[1]
    if complaints := names.qualified_name(taint["key"]):
        raise UsageError(f"invalid taint spec: {text}, {'; '.join(complaints)}")
    return taint


def _taint(
    session: Session,
    values: Values,
    info: Info,
    change: tuple[list[Obj], list[Obj]],
    strategy: DryRun,
    query: dict[str, str],
) -> None:
    after, done = _after(values, info, *change)
    obj = copy_of(info.obj)
    obj.setdefault("spec", {}).pop("taints", None)
    if after:
        obj["spec"]["taints"] = after
    printer = ObjectPrinter(values)
    if strategy != "client":
        from sampan.cli.objects.typed import schema

        patch = three_way.two_way_patch(schema(), info.obj, obj)
        obj = writing.patch(session, info.path, patch, "strategic", query)
        printer = ObjectPrinter(values, typed=True)
    # kubectl says nothing of a dry run here.
    changing.show(session, printer, info, obj, done, "none")


def _after(values: Values, info: Info, wanted: list[Obj], gone: list[Obj]) -> tuple[list[Obj], str]:
    """The taints that it will have, and the word for the change."""
    before: list[Obj] = (info.obj.get("spec") or {}).get("taints") or []
    same = [item["key"] for item in wanted for taint in before if _matches(item, taint)]
    if same and not values["overwrite"]:
        raise CliError(
            f"node {info.name} already has {','.join(same)} taint(s) with same effect(s) and "
            "--overwrite is false"
        )
    kept = [taint for taint in before if not any(_matches(item, taint) for item in wanted)]
    is_more = len(wanted) + len(kept) != len(before)
    after, is_less = _without(gone, [*wanted, *kept])
    done = "tainted" if is_more else "untainted"
    if (is_more and is_less) or values["overwrite"]:
        done = "modified"
    return after, done


def _without(gone: list[Obj], taints: list[Obj]) -> tuple[list[Obj], bool]:
    """What is left, and whether the last of them was there."""
    missing: list[Exception] = []
    is_removed = False
    for item in gone:
        left = [
            taint
            for taint in taints
            if taint["key"] != item["key"] or item.get("effect") not in (None, taint["effect"])
        ]
        is_removed = len(left) != len(taints)
        taints = left
        if not is_removed:
            name = f"{item['key']}:{item['effect']}" if item.get("effect") else item["key"]
            missing.append(CliError(f'taint "{name}" not found'))
    if missing:
        raise Several(missing)
    return taints, is_removed


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
