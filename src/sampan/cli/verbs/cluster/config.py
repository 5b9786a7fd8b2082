"""`config …`: kubeconfig files.

Job: look at contexts, clusters and users, choose, rename and delete them; the table of its words.
"""

import os

from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.config_file import Config, ConfigAccess, flatten, of_file, redact
from sampan.cli.errors import CliError, Several, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.output import YAML_FLAGS, ObjectPrinter
from sampan.cli.printers.tabs import align
from sampan.cli.session import Session
from sampan.cli.verbs.cluster.config_arguments import exactly, help_of
from sampan.cli.verbs.cluster.config_set import (
    SET,
    SET_CLUSTER,
    SET_CONTEXT,
    SET_CREDENTIALS,
    UNSET,
)  # fmt: skip


def view(session: Session, values: Values) -> None:
    if values.arguments:
        raise UsageError(f"unexpected arguments: [{' '.join(values.arguments)}]")
    access = ConfigAccess(session)
    printer = ObjectPrinter(values, ordered=True)
    if not values["merge"] and not access.explicit:
        raise CliError("if merge==false a precise file must be specified")
    config = access.starting() if values["merge"] else _alone(access.explicit)
    if values["minify"]:
        _minify(config, str(session.shared("context")))
    if values["flatten"]:
        flatten(config)
    document = config.document()
    if not values["raw"] and not values["flatten"]:
        document = redact(document)
    session.write(printer.text(document, "config/<unknown>"))


def _alone(path: str) -> Config:
    if not os.path.exists(path):
        raise CliError(f"open {path}: no such file or directory")
    return of_file(path)


def _minify(config: Config, context: str) -> None:
    name = context or config.current
    if not name:
        raise CliError("current-context must exist in order to minify")
    if name not in config.entries["contexts"]:
        raise CliError(f"cannot locate context {name}")
    chosen = config.entries["contexts"][name]
    config.current = name
    config.entries["contexts"] = {name: chosen}
    for section, field in (("clusters", "cluster"), ("users", "user")):
        wanted = chosen.get(field)
        if wanted and wanted not in config.entries[section]:
            raise CliError(f"cannot locate {field} {wanted}")
        known = config.entries[section]
        config.entries[section] = {wanted: known[wanted]} if wanted else {}


def get_contexts(session: Session, values: Values) -> None:
    output = values.text("output")
    if output not in ("", "name"):
        raise CliError(
            f"--output {output} is not available in kubectl config get-contexts; resetting to "
            "default output format"
        )
    config = ConfigAccess(session).starting()
    known = config.entries["contexts"]
    names = sorted(name for name in values.arguments or known if name in known)
    rows = [["CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE"]]
    if values["no-headers"]:
        rows = []
    for name in names:
        entry, mark = known[name], "*" if name == config.current else ""
        fields = (entry.get(field) or "" for field in ("cluster", "user", "namespace"))
        rows.append([mark, name, *fields])
    session.write("".join(f"{name}\n" for name in names) if output == "name" else align(rows))
    missing = [name for name in values.arguments if name not in known]
    if missing:
        raise Several([CliError(f"context {name} not found") for name in missing])


def _get_names(session: Session, section: str) -> None:
    names = sorted(ConfigAccess(session).starting().entries[section])
    session.write("".join(f"{name}\n" for name in ("NAME", *names)))


def get_clusters(session: Session, values: Values) -> None:
    _get_names(session, "clusters")


def get_users(session: Session, values: Values) -> None:
    _get_names(session, "users")


def current_context(session: Session, values: Values) -> None:
    current = ConfigAccess(session).starting().current
    if not current:
        raise CliError("current-context is not set")
    session.print(current)


def use_context(session: Session, values: Values) -> None:
    exactly(session, values, 1, USE_CONTEXT)
    access, name = ConfigAccess(session), values.arguments[0]
    config = access.starting()
    if not name:
        raise CliError("empty context names are not allowed")
    if name not in config.entries["contexts"]:
        raise CliError(f'no context exists with the name: "{name}"')
    config.current = name
    access.modify(config)
    session.print(f'Switched to context "{name}".')


def rename_context(session: Session, values: Values) -> None:
    exactly(session, values, 2, RENAME_CONTEXT)
    old, new = values.arguments
    if not new:
        raise CliError("You must specify a new non-empty context name")
    access = ConfigAccess(session)
    config, path = access.starting(), access.default_path
    contexts = config.entries["contexts"]
    if old not in contexts:
        raise CliError(f'cannot rename the context "{old}", it\'s not in {path}')
    if new in contexts:
        raise CliError(
            f'cannot rename the context "{old}", the context "{new}" already exists in {path}'
        )
    contexts[new] = contexts.pop(old)
    config.origins["contexts", new] = config.origins.pop(("contexts", old))
    if config.current == old:
        config.current = new
    access.modify(config)
    session.print(f'Context "{old}" renamed to "{new}".')


def _delete(session: Session, name: str, section: str, word: str) -> None:
    access = ConfigAccess(session)
    config, path = access.starting(), access.default_path
    if name not in config.entries[section]:
        raise CliError(f"cannot delete {word} {name}, not in {path}")
    if word == "context" and config.current == name:
        session.complain(
            'warning: this removed your active context, use "kubectl config use-context" to select '
            "a different one"
        )
    del config.entries[section][name]
    access.modify(config)
    session.print(f"deleted {word} {name} from {path}")


def delete_context(session: Session, values: Values) -> None:
    if len(values.arguments) != 1:
        session.write(help_of(session, DELETE_CONTEXT))
        return
    _delete(session, values.arguments[0], "contexts", "context")


def delete_cluster(session: Session, values: Values) -> None:
    if len(values.arguments) != 1:
        session.write(help_of(session, DELETE_CLUSTER))
        return
    _delete(session, values.arguments[0], "clusters", "cluster")


def delete_user(session: Session, values: Values) -> None:
    if len(values.arguments) != 1:
        raise UsageError("user to delete is required")
    _delete(session, values.arguments[0], "users", "user")


DELETE_CLUSTER = Command(
    "delete-cluster", "config delete-cluster NAME [options]",
    "Delete the specified cluster from the kubeconfig", delete_cluster,
)  # fmt: skip
DELETE_CONTEXT = Command(
    "delete-context", "config delete-context NAME [options]",
    "Delete the specified context from the kubeconfig", delete_context,
)  # fmt: skip
RENAME_CONTEXT = Command(
    "rename-context", "config rename-context CONTEXT_NAME NEW_NAME [options]",
    "Rename a context from the kubeconfig file", rename_context,
)  # fmt: skip
USE_CONTEXT = Command(
    "use-context", "config use-context CONTEXT_NAME [options]",
    "Set the current-context in a kubeconfig file", use_context, aliases=("use",),
)  # fmt: skip
_VIEW_FLAGS = (
    *YAML_FLAGS,
    switch("flatten", "Flatten the result into self-contained output."),
    switch("merge", "Merge the full hierarchy of kubeconfig files.", default=True),
    switch("minify", "Remove all information not used by current-context."),
    switch("raw", "Display raw byte data and sensitive data."),
)
CONFIG = Command(
    "config", "config SUBCOMMAND [options]", "Modify kubeconfig files.",
    children=(
        Command("current-context", "config current-context [flags] [options]", "Display the current-context", current_context),
        DELETE_CLUSTER,
        DELETE_CONTEXT,
        Command("delete-user", "config delete-user NAME [options]", "Delete the specified user from the kubeconfig", delete_user),
        Command("get-clusters", "config get-clusters [flags] [options]", "Display clusters defined in the kubeconfig", get_clusters),
        Command("get-contexts", "config get-contexts [(-o|--output=)name)] [options]", "Describe one or many contexts", get_contexts,
                (switch("no-headers", "Don't print headers."), Flag("output", short="o", usage="Output format: name."))),
        Command("get-users", "config get-users [flags] [options]", "Display users defined in the kubeconfig", get_users),
        RENAME_CONTEXT,
        SET,
        SET_CLUSTER,
        SET_CONTEXT,
        SET_CREDENTIALS,
        UNSET,
        USE_CONTEXT,
        Command("view", "config view [flags] [options]", "Display merged kubeconfig settings or a specified kubeconfig file", view, _VIEW_FLAGS),
    ),
)  # fmt: skip
