"""`get`: objects as the server's tables, or whole in one of many formats.

Job: check the flags, find the objects, and print them whole; tables are get_tables.py's, who
    watches goes on in get_watch.py.
"""

from typing import TYPE_CHECKING

from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Several, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import manifests
from sampan.cli.objects.builder import Builder, Result
from sampan.cli.objects.infos import Info
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session
from sampan.cli.verbs.inspect.get_formats import collected, form_of, is_table, printer_of

if TYPE_CHECKING:
    from sampan.cli.printers import custom_columns

NOTHING = (
    "Required resource not specified.\n"
    'Use "{program} explain <resource>" for a detailed description of that resource '
    "(e.g. {program} explain pods)."
)


def run(session: Session, values: Values) -> None:
    _check(session, values)
    if values["raw"]:
        _raw(session, values)
        return
    is_watch = bool(values["watch"] or values["watch-only"])
    if is_watch:
        from sampan.cli.verbs.inspect.get_watch import watch

        watch(session, values, builder_of(session, values, is_watch=True))
        return
    if is_table(values):
        from sampan.cli.verbs.inspect.get_tables import print_tables

        print_tables(session, values, builder_of(session, values).do())
        return
    _print_whole(session, values, builder_of(session, values).do())


def _check(session: Session, values: Values) -> None:
    output = values.text("output")
    if values["raw"]:
        if values.arguments:
            raise CliError("arguments may not be passed when --raw is specified")
        if values["watch"] or values["watch-only"] or values["selector"]:
            raise CliError(
                "--raw may not be specified with other flags that filter the server request or "
                "alter the output"
            )
        if output:
            raise CliError("--raw and --output are mutually exclusive")
        if not values.text("raw").startswith("/"):
            raise CliError(
                f'--raw must be a valid URL path: parse "{values.text("raw")}": invalid URI for '
                "request"
            )
        return
    session.check_context()
    _check_nothing(session, values)
    if values["show-labels"] and output not in ("", "wide"):
        raise CliError(f"--show-labels option cannot be used with {output} printer")
    if values["output-watch-events"] and not (values["watch"] or values["watch-only"]):
        raise CliError("--output-watch-events option can only be used with --watch or --watch-only")


def _check_nothing(session: Session, values: Values) -> None:
    if values["watch"] or values["watch-only"]:
        if values["sort-by"]:
            what = "--watch" if values["watch"] else "--watch-only"
            more = " for watch events received" if values["watch"] else ""
            session.complain(f"warning: {what} requested, --sort-by will be ignored{more}")
    elif not values.arguments and not manifests.has_files(values):
        session.complain(
            "You must specify the type of resource to get. Use "
            f'"{session.program} api-resources" for a complete list of supported resources.\n'
        )
        raise UsageError(NOTHING.format(program=session.program))


def builder_of(session: Session, values: Values, *, is_watch: bool = False) -> Builder:
    builder = Builder(session, continue_on_error=not is_watch)
    builder.in_namespace(everywhere=bool(values["all-namespaces"])).files(values)
    builder.requires_namespace = session.namespace_is_given and not values["all-namespaces"]
    builder.labels(values.text("selector")).fields(values.text("field-selector"))
    builder.subresource = "" if is_watch else values.text("subresource")
    builder.chunk = 0 if values["sort-by"] and not is_watch else max(values["chunk-size"], 0)
    builder.arguments(values.arguments, allow_empty_selector=True)
    builder.latest, builder.form = True, form_of(values)
    return builder.single_type() if is_watch else builder


def _raw(session: Session, values: Values) -> None:
    answer = session.api.ask("GET", values.text("raw"), raw=True)
    session.write(answer.body.decode(errors="replace"))


def _print_whole(session: Session, values: Values, result: Result) -> None:
    infos, failures = collected(values, result)
    if failures and result.is_single:
        raise Several(failures)
    if infos or not values["ignore-not-found"]:
        printer = printer_of(values)
        if result.is_single and len(infos) == 1:
            session.write(printer.text(infos[0].obj, infos[0].label))
        else:
            _print_list(session, values, printer, infos)
    if failures:
        raise Several(failures)


def _print_list(
    session: Session,
    values: Values,
    printer: "ObjectPrinter | custom_columns.Printer",
    infos: list[Info],
) -> None:
    if values["sort-by"] and infos:
        from sampan.cli.objects.sorting import sorted_infos

        infos = sorted_infos(session, infos, values.text("sort-by"))
    if isinstance(printer, ObjectPrinter) and printer.format == "name":
        for info in infos:
            session.write(printer.text(info.obj, info.label))
        return
    whole: Obj = {
        "apiVersion": "v1", "items": [info.obj for info in infos], "kind": "List",
        "metadata": {"resourceVersion": ""},
    }  # fmt: skip
    session.write(printer.text(whole))


GET = Command(
    "get",
    "get [(-o|--output=)json|yaml|kyaml|name|go-template|go-template-file|template|templatefile|"
    "jsonpath|jsonpath-as-json|jsonpath-file|custom-columns|custom-columns-file|wide] "
    "(TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE[.VERSION][.GROUP]/NAME ...) [flags] "
    "[options]",
    "Display one or many resources.",
    run,
    (
        *PRINT_FLAGS,
        *common_flags.FILES,
        common_flags.SELECTOR,
        common_flags.FIELD_SELECTOR,
        common_flags.ALL_NAMESPACES,
        Flag("chunk-size", "int64", 500, "Return large lists in chunks of this size."),
        switch("ignore-not-found", "Exit with 0 where a named object does not exist."),
        Flag("label-columns", "slice", [], "Labels to show as columns.", short="L"),
        switch("no-headers", "Don't print headers."),
        switch("output-watch-events", "Output watch event objects."),
        Flag("raw", usage="Raw URI to request from the server."),
        switch("server-print", "Have the server return tables.", default=True),
        switch("show-kind", "List the resource type for the requested objects."),
        switch("show-labels", "Show all labels as the last column."),
        Flag("sort-by", usage="Sort by this field (a JSONPath expression)."),
        Flag("subresource", usage="Fetch this subresource of the named object."),
        switch("watch", "After listing, watch for changes.", short="w"),
        switch("watch-only", "Watch for changes, without listing first."),
    ),
)
