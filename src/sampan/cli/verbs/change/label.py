"""`label` and `annotate`: pairs on objects.

Job: parse `key=value` and `key-`, compare with what is there, patch.
Invariant: what does not go together is refused before anything is changed.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, copy_of
from sampan.api.patch.merge_patch import merge_patch_between
from sampan.api.rules import names
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import DryRun, switch
from sampan.cli.errors import CliError, Several, raise_all
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import changing, pairs, writing
from sampan.cli.objects.builder import Builder, Result
from sampan.cli.objects.infos import Info
from sampan.cli.objects.manifests import has_files
from sampan.cli.output import ObjectPrinter
from sampan.cli.printers.json_text import compact
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    field: str
    word: str  # as messages say it
    file: str  # the example of one in messages


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for."""

    kind: Kind
    resources: list[str]
    wanted: dict[str, str]
    gone: list[str]
    strategy: DryRun


LABELS = Kind("labels", "label", "pod")
ANNOTATIONS = Kind("annotations", "annotation", "rsrc")


def label(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    resources, words = pairs.split(values.arguments, "label")
    wanted, gone = _labels(words)
    if values["list"] and values["output"]:
        raise CliError("--list and --output may not be specified together")
    session.check_context()
    asked = Asked(LABELS, resources, wanted, gone, strategy)
    if values["all"]:
        _refuse_selectors(values)
    if values["local"]:
        _check_local(values, asked)
    _check_enough(values, asked)
    _visit(session, values, asked, _result(session, values, resources))


def annotate(session: Session, values: Values) -> None:
    strategy = common_flags.dry_run(session, values)
    ObjectPrinter(values)
    session.check_context()
    resources, words = pairs.split(values.arguments, "annotation")
    wanted, gone = pairs.parse(words, "annotation", removable=True)
    asked = Asked(ANNOTATIONS, resources, wanted, gone, strategy)
    if values["all"]:
        _refuse_selectors(values)
    if values["local"]:
        _check_local(values, asked)
    _check_enough(values, asked)
    both = [key for key in gone if key in wanted]
    if both:
        raise CliError(
            "can not both modify and remove the following annotation(s) in the same command: "
            + ", ".join(both)
        )
    _visit(session, values, asked, _result(session, values, resources))


def _labels(words: list[str]) -> tuple[dict[str, str], list[str]]:
    wanted: dict[str, str] = {}
    gone: list[str] = []
    for word in words:
        if "=" in word:
            parts = word.split("=")
            if len(parts) != 2:
                raise CliError(f"invalid label spec: {word}")
            if complaints := names.label_value(parts[1]):
                raise CliError(f'invalid label value: "{word}": {";".join(complaints)}')
            wanted[parts[0]] = parts[1]
        else:
            gone.append(word[:-1])
    if set(wanted) & set(gone):
        raise CliError("can not both modify and remove a label in the same command")
    return wanted, gone


def _refuse_selectors(values: Values) -> None:
    for flag in ("selector", "field-selector"):
        if values[flag]:
            raise CliError(f"cannot set --all and --{flag} at the same time")


def _check_local(values: Values, asked: Asked) -> None:
    example = f"-f {asked.kind.file}.yaml or --filename={asked.kind.file}.json"
    if asked.strategy == "server":
        raise CliError(changing.NOT_ON_SERVER)
    if asked.resources:
        raise CliError(f"can only use local files by {example} when --local=true is set")
    if not has_files(values):
        raise CliError(f"one or more files must be specified as {example}")


def _check_enough(values: Values, asked: Asked) -> None:
    if not values["local"] and not asked.resources and not has_files(values):
        raise CliError(changing.NO_RESOURCES)
    if not asked.wanted and not asked.gone and not values["list"]:
        raise CliError(f"at least one {asked.kind.word} update is required")


def _result(session: Session, values: Values, resources: list[str]) -> Result:
    builder = Builder(session, continue_on_error=True).in_namespace()
    builder.files(values)
    if values["local"]:
        builder.is_local = True
    else:
        builder.labels(values.text("selector")).fields(values.text("field-selector"))
        builder.in_namespace(everywhere=bool(values["all-namespaces"]))
        builder.arguments(resources, allow_empty_selector=bool(values["all"]))
        builder.latest = True
    result = builder.do()
    if not result.is_single and values["resource-version"]:
        raise CliError("--resource-version may only be used with a single resource")
    return result


def _visit(session: Session, values: Values, asked: Asked, result: Result) -> None:
    failures: list[Exception] = []
    for found in result.visit():
        try:
            if isinstance(found, Exception):
                raise found
            _change(session, values, asked, found, is_single=result.is_single)
        except (CliError, ApiError) as error:
            failures.append(error)
    raise_all(failures)


def _change(session: Session, values: Values, asked: Asked, info: Info, *, is_single: bool) -> None:
    version = values.text("resource-version")
    is_sent = not (values["local"] or values["list"] or asked.strategy == "client")
    before = copy_of(info.obj)
    if version and (is_sent or asked.kind is LABELS):
        before["metadata"].pop("resourceVersion", None)
    if is_sent and asked.kind is LABELS:
        for key in asked.gone:
            if key not in (before["metadata"].get("labels") or {}):
                session.print(f'label "{key}" not found.')
    after = _changed(before, asked, values)
    shown = after
    if is_sent:
        if values["record"]:
            cause = common_flags.change_cause(session, values)
            after = shown = writing.annotate(after, {writing.CHANGE_CAUSE: cause})
        query = writing.options(dry_run=asked.strategy, manager=values.text("field-manager"))
        patch = merge_patch_between(before, after)
        answer = writing.patch(session, info.path, patch, "merge", query)
        shown = after if asked.kind is LABELS else answer
    if values["list"]:
        _list(session, asked.kind, info, after, is_single=is_single)
        return
    done = _word(before, after, values) if asked.kind is LABELS else "annotated"
    changing.show(session, ObjectPrinter(values), info, shown, done, asked.strategy)


def _changed(obj: Obj, asked: Asked, values: Values) -> Obj:
    own = (obj["metadata"].get(asked.kind.field)) or {}
    if not values["overwrite"]:
        _refuse_overwrites(asked, own)
    after: Obj = copy_of(obj)
    union = {**own, **asked.wanted}
    after["metadata"][asked.kind.field] = {
        key: value for key, value in union.items() if key not in asked.gone
    }
    if values["resource-version"]:
        after["metadata"]["resourceVersion"] = values.text("resource-version")
    return after


def _refuse_overwrites(asked: Asked, own: dict[str, str]) -> None:
    taken = [key for key, value in sorted(asked.wanted.items()) if own.get(key, value) != value]
    if asked.kind is LABELS and taken:
        raise Several(
            [
                CliError(f"'{key}' already has a value ({own[key]}), and --overwrite is false")
                for key in taken
            ]
        )
    texts = [
        f"'{key}' already has a value ({own[key]})" for key in taken if key != writing.CHANGE_CAUSE
    ]
    if texts:
        raise CliError(
            "--overwrite is false but found the following declared annotation(s): "
            + "; ".join(texts)
        )


def _list(session: Session, kind: Kind, info: Info, obj: Obj, *, is_single: bool) -> None:
    indent = ""
    if not is_single:
        indent, group = " ", info.resource.group
        session.print(f"Listing {kind.field} for {info.resource.kind}.{group}/{info.name}:")
    for key, value in sorted((obj["metadata"].get(kind.field) or {}).items()):
        session.print(f"{indent}{key}={value}")


def _word(before: Obj, after: Obj, values: Values) -> str:
    """As kubectl tells it: by how long the object is as text."""
    old, new = compact(before, ordered=False), compact(after, ordered=False)
    if old == new:
        return "not labeled"
    is_less = len(new.encode()) < len(old.encode())
    return "unlabeled" if is_less and not values["overwrite"] else "labeled"


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
