"""`config set…` and `config unset`: entries and single fields of kubeconfig files.

Job: flags to a changed entry; what does not go together is refused before anything is written.
"""

import base64
import os
from pathlib import Path

from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.config_file import ConfigAccess
from sampan.cli.config_property import change
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.session import Session
from sampan.cli.verbs.cluster.config_arguments import exactly, refuse

MODES = ("IfAvailable", "Never", "Always")


def set_context(session: Session, values: Values) -> None:
    if len(values.arguments) > 1:
        refuse(session, f"Unexpected args: [{' '.join(values.arguments)}]", SET_CONTEXT)
    name = values.arguments[0] if values.arguments else ""
    if not name and not values["current"]:
        raise CliError("you must specify a non-empty context name or --current")
    if name and values["current"]:
        raise CliError("you cannot specify both a context name and --current")
    access = ConfigAccess(session)
    config = access.starting()
    if values["current"]:
        name = config.current
        if not name:
            raise CliError("no current context is set")
    word = "modified" if name in config.entries["contexts"] else "created"
    entry = config.entries["contexts"].setdefault(name, {})
    for field in ("cluster", "user", "namespace"):
        if values.is_set(field):
            _put(entry, field, values.text(field))
    access.modify(config)
    session.print(f'Context "{name}" {word}.')


def _put(entry: Obj, field: str, value: object) -> None:
    if value:
        entry[field] = value
    else:
        entry.pop(field, None)


def set_cluster(session: Session, values: Values) -> None:
    exactly(session, values, 1, SET_CLUSTER)
    [name] = values.arguments
    if not name:
        raise CliError("you must specify a non-empty cluster name")
    if values["insecure-skip-tls-verify"] and values["certificate-authority"]:
        raise CliError(
            "you cannot specify a certificate authority and insecure mode at the same time"
        )
    if values["embed-certs"]:
        if not values["certificate-authority"]:
            raise CliError("you must specify a --certificate-authority to embed")
        _check_file(values, "certificate-authority")
    access = ConfigAccess(session)
    config = access.starting()
    _change_cluster(config.entries["clusters"].setdefault(name, {}), values)
    access.modify(config)
    session.print(f'Cluster "{name}" set.')


def _change_cluster(entry: Obj, values: Values) -> None:
    if values.is_set("server"):
        _put(entry, "server", values["server"])
        entry.pop("tls-server-name", None)  # another server has another name
    if values.is_set("tls-server-name"):
        _put(entry, "tls-server-name", values["tls-server-name"])
    # As kubectl: who does not ask for it again is not insecure any more.
    _put(entry, "insecure-skip-tls-verify", values["insecure-skip-tls-verify"])
    if values["insecure-skip-tls-verify"]:
        entry.pop("certificate-authority", None)
        entry.pop("certificate-authority-data", None)
    if values.is_set("certificate-authority"):
        _put_file(entry, values, "certificate-authority")
    if values.is_set("proxy-url"):
        _put(entry, "proxy-url", values["proxy-url"])


def _put_file(entry: Obj, values: Values, field: str) -> None:
    """The file's path, or with --embed-certs what is in it; the other one goes."""
    path = values.text(field)
    if not values["embed-certs"]:
        entry[field] = os.path.abspath(path)
        entry.pop(f"{field}-data", None)
        return
    content = b""
    if path:
        content = Path(path).read_bytes()
    _put(entry, f"{field}-data", base64.b64encode(content).decode())
    entry.pop(field, None)


def _check_file(values: Values, field: str) -> None:
    path = values.text(field)
    try:
        os.stat(path)
    except OSError as error:
        text = (error.strerror or str(error)).lower()
        raise CliError(f"could not stat {field} file {path}: stat {path}: {text}") from error


def set_credentials(session: Session, values: Values) -> None:
    exactly(session, values, 1, SET_CREDENTIALS, "unexpected")
    pairs = {}
    for flag in ("auth-provider-arg", "exec-env"):
        try:
            pairs[flag] = _pairs(values[flag], flag)
        except CliError as error:
            refuse(session, str(error), SET_CREDENTIALS)
    [name] = values.arguments
    _check_credentials(name, values)
    access = ConfigAccess(session)
    config = access.starting()
    entry = config.entries["users"].setdefault(name, {})
    for field in ("client-certificate", "client-key"):
        if values.is_set(field):
            _put_file(entry, values, field)
    _change_secrets(entry, values)
    _change_provider(entry, values, *pairs["auth-provider-arg"])
    _change_exec(entry, values, *pairs["exec-env"])
    access.modify(config)
    session.print(f'User "{name}" set.')


def _check_credentials(name: str, values: Values) -> None:
    if not name:
        raise CliError("you must specify a non-empty user name")
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
    if values["embed-certs"]:
        files = [field for field in ("client-certificate", "client-key") if values[field]]
        if not files:
            raise CliError("you must specify a --client-certificate or --client-key to embed")
        for field in files:
            _check_file(values, field)
    if values.is_set("exec-interactive-mode") and values["exec-interactive-mode"] not in MODES:
        raise CliError("invalid interactive mode type, can be only IfAvailable, Never, Always")


def _change_secrets(entry: Obj, values: Values) -> None:
    """A token and a password exclude each other: the new one stays."""
    for field in ("token", "username", "password"):
        if values.is_set(field):
            _put(entry, field, values[field])
    has_token = bool(values["token"])
    has_basic = bool(values["username"] or values["password"])
    if has_basic and not has_token:
        entry.pop("token", None)
    if has_token and not has_basic:
        entry.pop("username", None)
        entry.pop("password", None)


def _pairs(words: list[str], flag: str) -> tuple[dict[str, str], list[str]]:
    """key=value to be put, and `key-` to be removed."""
    put: dict[str, str] = {}
    removed, bad = [], []
    for word in words:
        if "=" in word and not word.startswith("="):
            key, _, value = word.partition("=")
            put[key] = value
        elif word.endswith("-") and word != "-":
            removed.append(word[:-1])
        else:
            bad.append(word)
    if bad:
        raise CliError(f"invalid {flag} format: {', '.join(bad)}")
    return put, removed


def _change_provider(entry: Obj, values: Values, put: dict[str, str], removed: list[str]) -> None:
    name = values.text("auth-provider")
    known = entry.get("auth-provider")
    if values.is_set("auth-provider") and (known is None or known.get("name") != name):
        known = entry["auth-provider"] = {"name": name}
    if known is None:
        return
    config = dict(known.get("config") or {})
    for key in removed:
        config.pop(key, None)
    known["config"] = config | put


def _change_exec(entry: Obj, values: Values, put: dict[str, str], removed: list[str]) -> None:
    if values.is_set("exec-command"):
        plugin = entry.setdefault("exec", {})
        plugin["command"] = values["exec-command"]
        plugin.pop("args", None)
    plugin = entry.get("exec")
    if plugin is None:
        return
    for field, flag in (("apiVersion", "exec-api-version"), ("args", "exec-arg"),
                        ("interactiveMode", "exec-interactive-mode"),
                        ("provideClusterInfo", "exec-provide-cluster-info")):  # fmt: skip
        if values.is_set(flag):
            plugin[field] = values[flag]
    if put or removed:
        kept = [
            {"name": one["name"], "value": put.pop(one["name"], one.get("value"))}
            for one in plugin.get("env") or []
            if one["name"] not in removed
        ]
        plugin["env"] = kept + [{"name": key, "value": value} for key, value in put.items()]


def set_property(session: Session, values: Values) -> None:
    exactly(session, values, 2, SET)
    name, value = values.arguments
    if not value:
        raise CliError("you cannot use set to unset a property")
    if not name:
        raise CliError("you must specify a property")
    access = ConfigAccess(session)
    config = access.starting()
    change(config, name, value, raw_bytes=bool(values["set-raw-bytes"]))
    access.modify(config, relative_paths=False)
    session.print(f'Property "{name}" set.')


def unset_property(session: Session, values: Values) -> None:
    exactly(session, values, 1, UNSET)
    [name] = values.arguments
    if not name:
        raise CliError("you must specify a property")
    access = ConfigAccess(session)
    config = access.starting()
    change(config, name, None)
    access.modify(config, relative_paths=False)
    session.print(f'Property "{name}" unset.')


SET = Command(
    "set", "config set PROPERTY_NAME PROPERTY_VALUE [options]",
    "Set an individual value in a kubeconfig file", set_property,
    (switch("set-raw-bytes", "The value of a []byte property is raw, not base64."),),
)  # fmt: skip
UNSET = Command(
    "unset", "config unset PROPERTY_NAME [options]",
    "Unset an individual value in a kubeconfig file", unset_property,
)  # fmt: skip
SET_CLUSTER = Command(
    "set-cluster", "config set-cluster NAME [--server=server] [--certificate-authority=path/to/certificate/authority] [--insecure-skip-tls-verify=true] [--tls-server-name=example.com] [options]",
    "Set a cluster entry in kubeconfig", set_cluster,
    (
        Flag("certificate-authority", usage="The file of the cluster's certificate authority."),
        switch("embed-certs", "Embed certificates in the kubeconfig."),
        switch("insecure-skip-tls-verify", "The server's certificate is not to be checked."),
        Flag("proxy-url", usage="The cluster's proxy."),
        Flag("server", usage="The cluster's address."),
        Flag("tls-server-name", usage="The name in the cluster's certificate."),
    ),
)  # fmt: skip
SET_CONTEXT = Command(
    "set-context", "config set-context [NAME | --current] [--cluster=cluster_nickname] [--user=user_nickname] [--namespace=namespace] [options]",
    "Set a context entry in kubeconfig", set_context,
    (
        Flag("cluster", usage="The context's cluster."),
        switch("current", "Modify the current context."),
        Flag("namespace", short="n", usage="The context's namespace."),
        Flag("user", usage="The context's user."),
    ),
)  # fmt: skip
SET_CREDENTIALS = Command(
    "set-credentials", "config set-credentials NAME [--client-certificate=path/to/certfile] [--client-key=path/to/keyfile] [--token=bearer_token] [--username=basic_user] [--password=basic_password] [--auth-provider=provider_name] [--auth-provider-arg=key=value] [--exec-command=exec_command] [--exec-api-version=exec_api_version] [--exec-arg=arg] [--exec-env=key=value] [options]",
    "Set a user entry in kubeconfig", set_credentials,
    (
        Flag("auth-provider", usage="Auth provider of the user; sampan's own client uses none, other programs may."),
        Flag("auth-provider-arg", "slice", [], "'key=value' arguments for the auth provider."),
        Flag("client-certificate", usage="The file of the user's certificate."),
        Flag("client-key", usage="The file of the user's key."),
        switch("embed-certs", "Embed certificates in the kubeconfig."),
        Flag("exec-api-version", usage="API version of the exec credential plugin."),
        Flag("exec-arg", "slice", [], "Arguments of the exec credential plugin."),
        Flag("exec-command", usage="Command of the exec credential plugin."),
        Flag("exec-env", "array", [], "'key=value' environment of the exec credential plugin."),
        Flag("exec-interactive-mode", usage="InteractiveMode of the exec credential plugin."),
        switch("exec-provide-cluster-info", "Provide information about the cluster to the plugin."),
        Flag("password", usage="The user's password."),
        Flag("token", usage="The user's token."),
        Flag("username", usage="The user's name, for a password."),
    ),
)  # fmt: skip
