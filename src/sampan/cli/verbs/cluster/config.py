"""`config …`: kubeconfig files.

Job: look at contexts, clusters and users, and change them.
"""

import base64
from pathlib import Path

from sampan.api.objects import Obj
from sampan.cli.command import Command, usage_text
from sampan.cli.common_flags import switch
from sampan.cli.config_file import ConfigFile, redact
from sampan.cli.errors import CliError, Quiet, UsageError
from sampan.cli.flags import Flag, Values, truth
from sampan.cli.output import PRINT_FLAGS, ObjectPrinter
from sampan.cli.printers.tabs import align
from sampan.cli.session import Session

# What `set` can give a value; the rest (exec, auth-provider) are maps.
FIELDS = {
    "clusters": (
        "server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority",
        "certificate-authority-data", "proxy-url", "disable-compression",
    ),
    "users": (
        "client-certificate", "client-certificate-data", "client-key", "client-key-data", "token",
        "tokenFile", "username", "password", "as", "as-uid",
    ),
    "contexts": ("cluster", "user", "namespace"),
}  # fmt: skip


def _count(
    session: Session, values: Values, count: int, command: str, word: str = "Unexpected"
) -> None:
    """kubectl prints the usage to standard output, and the complaint to standard error."""
    if len(values.arguments) == count:
        return
    child = CONFIG.child(command)
    assert child is not None
    session.print(usage_text(child, session.program, session.path))
    raise Quiet(1, f"error: {word} args: [{' '.join(values.arguments)}]")


def view(session: Session, values: Values) -> None:
    if values.arguments:
        raise UsageError(f"unexpected arguments: [{' '.join(values.arguments)}]")
    printer = ObjectPrinter(values, typed=False)
    file = ConfigFile(session)
    if values["minify"]:
        _minify(session, file)
    document = file.document()
    if not values["raw"] and not values["flatten"]:
        document = redact(document)
    if printer.format == "json":
        from sampan.cli.printers.json_text import to_json

        session.write(to_json(document, ordered=True))
    else:
        session.write(printer.text(document))


def _minify(session: Session, file: ConfigFile) -> None:
    name = session.shared("context") or file.current
    context = file.entries["contexts"].get(name)
    if context is None:
        raise CliError(f"cannot locate context {name}")
    file.current = name
    file.entries["contexts"] = {name: context}
    for section, field in (("clusters", "cluster"), ("users", "user")):
        wanted = context.get(field)
        file.entries[section] = {
            key: value for key, value in file.entries[section].items() if key == wanted
        }


def get_contexts(session: Session, values: Values) -> None:
    file = ConfigFile(session)
    output = values.text("output")
    if output not in ("", "name"):
        raise CliError(
            f"--output {output} is not available in kubectl config get-contexts; resetting to "
            "default output format"
        )
    known = file.entries["contexts"]
    names = sorted(known)
    missing = [name for name in values.arguments if name not in known]
    if values.arguments:
        names = [name for name in names if name in values.arguments]
    if output == "name":
        for name in names:
            session.print(name)
    else:
        rows = (
            []
            if values["no-headers"]
            else [["CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE"]]
        )
        for name in names:
            entry = known[name]
            mark = "*" if name == file.current else ""
            rows.append(
                [
                    mark,
                    name,
                    entry.get("cluster") or "",
                    entry.get("user") or "",
                    entry.get("namespace") or "",
                ]
            )
        session.write(align(rows))
    if missing:
        raise CliError(f"context {missing[0]} not found")


def _get_names(session: Session, section: str) -> None:
    session.print("NAME")
    for name in sorted(ConfigFile(session).entries[section]):
        session.print(name)


def get_clusters(session: Session, values: Values) -> None:
    _get_names(session, "clusters")


def get_users(session: Session, values: Values) -> None:
    _get_names(session, "users")


def current_context(session: Session, values: Values) -> None:
    current = session.shared("context") or ConfigFile(session).current
    if not current:
        raise CliError("current-context is not set")
    session.print(current)


def use_context(session: Session, values: Values) -> None:
    _count(session, values, 1, "use-context")
    file, name = ConfigFile(session), values.arguments[0]
    if name not in file.entries["contexts"]:
        raise CliError(f'no context exists with the name: "{name}"')
    file.current = name
    file.save()
    session.print(f'Switched to context "{name}".')


def rename_context(session: Session, values: Values) -> None:
    _count(session, values, 2, "rename-context")
    file = ConfigFile(session)
    old, new = values.arguments
    contexts = file.entries["contexts"]
    if old not in contexts:
        raise CliError(f'cannot rename the context "{old}", it\'s not in {file.path}')
    if new in contexts:
        raise CliError(
            f'cannot rename the context "{old}", the context "{new}" already exists in {file.path}'
        )
    contexts[new] = contexts.pop(old)
    if file.current == old:
        file.current = new
    file.save()
    session.print(f'Context "{old}" renamed to "{new}".')


def _delete(session: Session, values: Values, section: str, word: str) -> None:
    _count(session, values, 1, f"delete-{word}")
    file, name = ConfigFile(session), values.arguments[0]
    if name not in file.entries[section]:
        raise CliError(f"cannot delete {word} {name}, not in {file.path}")
    del file.entries[section][name]
    if word == "context" and file.current == name:
        session.complain(
            f'warning: this removed your active context, use "{session.program} config '
            'use-context" to select a different one'
        )
    file.save()
    session.print(f"deleted {word} {name} from {file.path}")


def delete_context(session: Session, values: Values) -> None:
    _delete(session, values, "contexts", "context")


def delete_cluster(session: Session, values: Values) -> None:
    _delete(session, values, "clusters", "cluster")


def delete_user(session: Session, values: Values) -> None:
    _delete(session, values, "users", "user")


def set_context(session: Session, values: Values) -> None:
    file = ConfigFile(session)
    if values["current"] and values.arguments:
        raise CliError("you cannot specify both a context name and --current")
    if not values["current"]:
        _count(session, values, 1, "set-context")
    name = file.current if values["current"] else values.arguments[0]
    if not name:
        raise CliError("no current context is set")
    is_new = name not in file.entries["contexts"]
    entry = file.entries["contexts"].setdefault(name, {"cluster": "", "user": ""})
    for field in ("cluster", "user", "namespace"):
        if values.is_set(field):
            entry[field] = values[field]
    file.save()
    session.print(f'Context "{name}" {"created" if is_new else "modified"}.')


def set_cluster(session: Session, values: Values) -> None:
    _count(session, values, 1, "set-cluster")
    if values["insecure-skip-tls-verify"] and values["certificate-authority"]:
        raise CliError(
            "you cannot specify a certificate authority and insecure mode at the same time"
        )
    file, name = ConfigFile(session), values.arguments[0]
    entry = file.entries["clusters"].setdefault(name, {"server": ""})
    if values.is_set("server"):
        entry["server"] = values["server"]
        # Another server is another identity: what belonged to the old one goes.
        entry.pop("insecure-skip-tls-verify", None)
    for field in ("tls-server-name", "proxy-url"):
        if values.is_set(field):
            entry[field] = values[field]
    if values["insecure-skip-tls-verify"]:
        entry["insecure-skip-tls-verify"] = True
        entry.pop("certificate-authority", None)
        entry.pop("certificate-authority-data", None)
    _certificate(values, entry, "certificate-authority")
    file.save()
    session.print(f'Cluster "{name}" set.')


def _certificate(values: Values, entry: Obj, field: str) -> None:
    if not values.is_set(field):
        return
    path = values.text(field)
    if not values["embed-certs"]:
        entry[field] = str(Path(path).absolute())
        entry.pop(f"{field}-data", None)
        return
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        text = (error.strerror or str(error)).lower()
        raise CliError(f"could not stat {field} file {path}: stat {path}: {text}") from error
    entry[f"{field}-data"] = base64.b64encode(content).decode()
    entry.pop(field, None)


def set_credentials(session: Session, values: Values) -> None:
    _count(session, values, 1, "set-credentials", "unexpected")
    ways = []
    if values["token"]:
        ways.append("--token")
    if values["username"] or values["password"]:
        ways.append("--username/--password")
    if len(ways) > 1:
        raise CliError(
            "you cannot specify more than one authentication method at the same time: "
            + ", ".join(ways)
        )
    file, name = ConfigFile(session), values.arguments[0]
    entry = file.entries["users"].setdefault(name, {})
    _certificate(values, entry, "client-certificate")
    _certificate(values, entry, "client-key")
    if values["token"]:
        for field in ("username", "password"):
            entry.pop(field, None)
        entry["token"] = values["token"]
    if values["username"] or values["password"]:
        entry.pop("token", None)
        entry |= {"username": values["username"], "password": values["password"]}
    if values["exec-command"]:
        entry["exec"] = _exec_entry(values)
    file.save()
    session.print(f'User "{name}" set.')


def _exec_entry(values: Values) -> Obj:
    env = [
        dict(zip(("name", "value"), pair.split("=", 1), strict=True)) for pair in values["exec-env"]
    ]
    mode = values["exec-interactive-mode"]
    return {
        "apiVersion": values["exec-api-version"], "command": values["exec-command"],
        "args": values["exec-arg"] or None, "env": env or None,
        **({"interactiveMode": mode} if mode else {}),
        "provideClusterInfo": bool(values["exec-provide-cluster-info"]),
    }  # fmt: skip


def _walk(file: ConfigFile, text: str) -> tuple[str, str, str]:
    parts = text.split(".")
    section = parts[0]
    if section == "current-context" and len(parts) == 1:
        return section, "", ""
    if section not in file.entries or len(parts) < 2:
        raise CliError(f"unable to parse {text} after [] at api.Config")
    if len(parts) == 2:
        return section, parts[1], ""
    return section, ".".join(parts[1:-1]), parts[-1]


def set_property(session: Session, values: Values) -> None:
    _count(session, values, 2, "set")
    file = ConfigFile(session)
    name, value = values.arguments
    section, entry, field = _walk(file, name)
    if section == "current-context":
        file.current = value
    elif not field or field not in FIELDS[section]:
        raise CliError(f"can't set a map to a value: {name}")
    else:
        file.entries[section].setdefault(entry, {})[field] = _with_type(
            session, field, value, values
        )
    file.save()
    session.print(f'Property "{name}" set.')


def _with_type(session: Session, field: str, value: str, values: Values) -> object:
    if field in ("insecure-skip-tls-verify", "disable-compression"):
        try:
            return truth(value)
        except ValueError as error:
            raise CliError(str(error)) from error
    if field.endswith("-data"):
        return base64.b64encode(value.encode()).decode() if values["set-raw-bytes"] else value
    return value


def unset_property(session: Session, values: Values) -> None:
    _count(session, values, 1, "unset")
    file, name = ConfigFile(session), values.arguments[0]
    section, entry, field = _walk(file, name)
    if section == "current-context":
        file.current = ""
    elif not field:
        file.entries[section].pop(entry, None)
    else:
        file.entries[section].get(entry, {}).pop(field, None)
    file.save()
    session.print(f'Property "{name}" unset.')


CONFIG = Command(
    "config", "config SUBCOMMAND [options]", "Modify kubeconfig files.",
    children=(
        Command("current-context", "config current-context [options]", "Display the current-context", current_context),
        Command("delete-cluster", "config delete-cluster NAME [options]", "Delete the specified cluster from the kubeconfig", delete_cluster),
        Command("delete-context", "config delete-context NAME [options]", "Delete the specified context from the kubeconfig", delete_context),
        Command("delete-user", "config delete-user NAME [options]", "Delete the specified user from the kubeconfig", delete_user),
        Command("get-clusters", "config get-clusters [options]", "Display clusters defined in the kubeconfig", get_clusters),
        Command("get-contexts", "config get-contexts [(-o|--output=)name)] [options]", "Describe one or many contexts", get_contexts,
                (switch("no-headers", "Don't print headers."), Flag("output", short="o", usage="Output format: name."))),
        Command("get-users", "config get-users [options]", "Display users defined in the kubeconfig", get_users),
        Command("rename-context", "config rename-context CONTEXT_NAME NEW_NAME [options]", "Rename a context from the kubeconfig file", rename_context),
        Command("set", "config set PROPERTY_NAME PROPERTY_VALUE [options]", "Set an individual value in a kubeconfig file", set_property,
                (switch("set-raw-bytes", "The value of a []byte property is raw, not base64."),)),
        Command("set-cluster", "config set-cluster NAME [--server=server] [--certificate-authority=path/to/certificate/authority] [--insecure-skip-tls-verify=true] [--tls-server-name=example.com] [options]",
                "Set a cluster entry in kubeconfig", set_cluster,
                (switch("embed-certs", "Embed certificates in the kubeconfig."), Flag("proxy-url", usage="The cluster's proxy."))),
        Command("set-context", "config set-context [NAME | --current] [--cluster=cluster_nickname] [--user=user_nickname] [--namespace=namespace] [options]",
                "Set a context entry in kubeconfig", set_context,
                (switch("current", "Modify the current context."),)),
        Command("set-credentials", "config set-credentials NAME [--client-certificate=path/to/certfile] [--client-key=path/to/keyfile] [--token=bearer_token] [--username=basic_user] [--password=basic_password] [--auth-provider=provider_name] [--auth-provider-arg=key=value] [--exec-command=exec_command] [--exec-api-version=exec_api_version] [--exec-arg=arg] [--exec-env=key=value] [options]",
                "Set a user entry in kubeconfig", set_credentials,
                (switch("embed-certs", "Embed certificates in the kubeconfig."),
                 Flag("exec-api-version", usage="API version of the exec credential plugin."),
                 Flag("exec-arg", "array", [], "Arguments of the exec credential plugin."),
                 Flag("exec-command", usage="Command of the exec credential plugin."),
                 Flag("exec-env", "array", [], "'key=value' environment of the exec credential plugin."),
                 Flag("exec-interactive-mode", usage="InteractiveMode of the exec credential plugin."),
                 switch("exec-provide-cluster-info", "Provide information about the cluster to the plugin."))),
        Command("unset", "config unset PROPERTY_NAME [options]", "Unset an individual value in a kubeconfig file", unset_property),
        Command("use-context", "config use-context CONTEXT_NAME [options]", "Set the current-context in a kubeconfig file", use_context, aliases=("use",)),
        Command("view", "config view [flags] [options]", "Display merged kubeconfig settings or a specified kubeconfig file", view,
                (*(flag if flag.name != "output" else Flag("output", short="o", default="yaml", usage=flag.usage) for flag in PRINT_FLAGS),
                 switch("flatten", "Flatten the result into self-contained output."),
                 switch("merge", "Merge the full hierarchy of kubeconfig files.", default=True),
                 switch("minify", "Remove all information not used by current-context."),
                 switch("raw", "Display raw byte data and sensitive data."))),
    ),
)  # fmt: skip
