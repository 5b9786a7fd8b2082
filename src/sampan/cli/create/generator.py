"""One `create KIND` command: generate, send, print.

Job: what all generators do around their object.
"""

from collections.abc import Callable

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli import common_flags
from sampan.cli.command import Command
from sampan.cli.create.parts import single_name
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects import writing
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass

Generate = Callable[[Session, Values], Obj]
FLAGS = (
    *PRINT_FLAGS,
    common_flags.DRY_RUN,
    common_flags.SAVE_CONFIG,
    common_flags.VALIDATE,
    common_flags.field_manager("kubectl-create"),
)


@dataclass(frozen=True, slots=True)
class Kind:
    """Where objects of a generator go, and how messages name them."""

    plural: str
    what: str = ""  # `failed to create WHAT: …`; empty: the server's own words
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    aliases: tuple[str, ...] = ()  # of the command
    colon: str = ":"  # after WHAT


def generator(
    name: str,
    use: str,
    short: str,
    generate: Generate,
    kind: Kind,
    flags: tuple[Flag, ...] = (),
) -> Command:
    def run(session: Session, values: Values) -> None:
        create(session, values, generate, kind)

    return Command(name, f"create {use}", short, run, (*FLAGS, *flags), aliases=kind.aliases)


def create(session: Session, values: Values, generate: Generate, kind: Kind) -> None:
    single_name(values)
    _ = session.connection
    strategy = common_flags.dry_run(session, values)
    session.check_context()
    validation = common_flags.validation(values)
    printer = ObjectPrinter(values, typed=True)
    obj = generate(session, values)
    if kind.namespaced and session.namespace_is_given:
        obj["metadata"]["namespace"] = session.namespace
    if values["save-config"]:
        obj = writing.with_last_applied(obj, typed=True)
    if strategy != "client":
        query = writing.options(
            dry_run=strategy, manager=values.text("field-manager"), validation=validation
        )
        obj = send(session, obj, kind, query)
    name = f"{obj['kind'].lower()}{'.' + kind.group if kind.group else ''}"
    label = f"{name}/{obj['metadata']['name']}"
    if printer.format:
        session.write(printer.text(obj, label))
    else:
        session.print(f"{label} created{common_flags.suffix(strategy)}")


def send(session: Session, obj: Obj, kind: Kind, query: dict[str, str]) -> Obj:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    where = f"/namespaces/{session.namespace}" if kind.namespaced else ""
    try:
        return session.api.json("POST", f"{root}{where}/{kind.plural}", query, body=obj)
    except ApiError as error:
        if not kind.what:
            raise
        raise CliError(f"failed to create {kind.what}{kind.colon} {error.message}") from error
