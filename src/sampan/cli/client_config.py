"""The kubeconfig's context with a command's flags over it: kubectl's clientcmd.

Job: which cluster, which user, which namespace; whether they can be used at all.
Invariant: what is wrong with them is told in client-go's words, before anything is asked.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from sampan.api.objects import Obj
from sampan.cli.errors import CliError, ConfigInvalid, Plain
from sampan.cli.plugin_policy import NotAllowed, allowed
from sampan.client.kubeconfig import (
    Connection,
    Kubeconfig,
    KubeconfigError,
    NoCredentials,
    connection_of,
)

DEFAULT_SERVER = "http://localhost:8080"
# What a kubeconfig's entry may not keep beside a flag: flag -> field.
CLUSTER_RIVALS = {"certificate-authority": "certificate-authority-data"}
USER_RIVALS = {
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
    "token": "tokenFile",
}
IDENTITY_FLAGS = ("token", "username", "password", "client-certificate", "client-key")


class NoContext(Plain):
    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"Error in configuration: context was not found for specified context: {name}"
        )


class ClientConfig:
    def __init__(
        self,
        config: Kubeconfig,
        flag: Callable[[str], Any],
        *,
        insecure: bool | None = None,
        is_found: bool = False,
        plugin_policy: Obj | None = None,
    ) -> None:
        """`flag` gives a global flag's value, `insecure` that of --insecure-skip-tls-verify where
        it was given; `is_found`: nobody named this kubeconfig, it is a cluster's on this
        machine; `plugin_policy` is the kuberc's
        word on credential plugins."""
        self._config, self._flag, self._insecure = config, flag, insecure
        self._is_found, self._plugin_policy = is_found, plugin_policy or {}

    def context(self) -> Obj:
        name = str(self._flag("context") or self._config.current_context or "")
        if name and name not in self._config.contexts:
            raise NoContext(name)
        return dict(self._config.contexts.get(name) or {})

    def namespace(self) -> str:
        """The context's, where the rest of it can be used."""
        self.check()
        return str(self.context().get("namespace") or "default")

    def check(self) -> None:
        """client-go's ConfirmUsable."""
        context = self.context()
        problems = [*self._user_problems(context), *self._cluster_problems(context)]
        if problems:
            raise ConfigInvalid([CliError(problem) for problem in problems])

    def connection(self, environment: Mapping[str, str]) -> Connection:
        from sampan.client.environment_proxy import proxy_of

        for flag, what, entries in (
            ("user", "auth info", self._config.users),
            ("context", "context", self._config.contexts),
            ("cluster", "cluster", self._config.clusters),
        ):
            if self._flag(flag) and self._flag(flag) not in entries:
                raise CliError(f'{what} "{self._flag(flag)}" does not exist')
        self.check()
        context = self.context()
        cluster, user = self._cluster(context), self._user(context)
        if not cluster.get("proxy-url"):
            cluster["proxy-url"] = proxy_of(environment, cluster["server"])
        namespace = self._flag("namespace") or context.get("namespace") or "default"
        try:
            if user.get("exec") and self._plugin_policy:
                user["exec"] = allowed(user["exec"], self._plugin_policy, environment)
            identified = self._config.identified(user, cluster)
            return connection_of(cluster, identified, str(namespace))
        except (NoCredentials, NotAllowed) as error:
            from sampan.client.blocking import NoAnswer

            raise NoAnswer(cluster["server"], f"getting credentials: {error}") from error
        except KubeconfigError as error:
            raise CliError(f"{error}") from error

    def _cluster_name(self, context: Obj) -> str:
        return str(self._flag("cluster") or context.get("cluster") or "")

    def _user_name(self, context: Obj) -> str:
        return str(self._flag("user") or context.get("user") or "")

    def _cluster(self, context: Obj) -> Obj:
        cluster = dict(self._config.clusters.get(self._cluster_name(context)) or {})
        self._override(cluster, ("server", "tls-server-name", "certificate-authority"))
        self._drop_rivals(cluster, CLUSTER_RIVALS)
        if self._insecure is not None:
            cluster["insecure-skip-tls-verify"] = self._insecure
        if self._insecure:
            cluster.pop("certificate-authority-data", None)
            cluster.pop("certificate-authority", None)
        cluster["server"] = cluster.get("server") or DEFAULT_SERVER
        if "://" not in cluster["server"]:
            cluster["server"] = "http://" + cluster["server"]
        return cluster

    def _user(self, context: Obj) -> Obj:
        user = dict(self._config.users.get(self._user_name(context)) or {})
        if self._is_found and any(self._flag(flag) for flag in IDENTITY_FLAGS):
            user = {}  # the administrator of a cluster that was found never speaks beside a token
        self._override(user, IDENTITY_FLAGS)
        self._drop_rivals(user, USER_RIVALS)
        for flag, field in (("as", "as"), ("as-uid", "as-uid"), ("as-group", "as-groups")):
            if self._flag(flag):
                user[field] = self._flag(flag)
        extra: dict[str, list[str]] = {}
        for pair in self._flag("as-user-extra"):
            key, equals, value = pair.partition("=")
            if equals:  # as kubectl: what is none is not there
                extra.setdefault(key, []).append(value)
        if extra:
            user["as-user-extra"] = extra
        return user

    def _override(self, entry: Obj, names: tuple[str, ...]) -> None:
        for name in names:
            if self._flag(name):
                entry[name] = self._flag(name)

    def _drop_rivals(self, entry: Obj, rivals: Mapping[str, str]) -> None:
        for name, rival in rivals.items():
            if self._flag(name):
                entry.pop(rival, None)

    def _cluster_problems(self, context: Obj) -> list[str]:
        name = self._cluster_name(context)
        if self._flag("cluster") and name not in self._config.clusters:
            return [f'no server found for cluster "{name}"']
        cluster = self._cluster(context)
        problems = []
        if cluster.get("certificate-authority") and cluster.get("certificate-authority-data"):
            problems.append(
                f"certificate-authority-data and certificate-authority are both specified for "
                f"{name}. certificate-authority-data will override."
            )
        path = cluster.get("certificate-authority")
        return problems + _unreadable("certificate-authority", path, name)

    def _user_problems(self, context: Obj) -> list[str]:
        name, problems = self._user_name(context), []
        if self._flag("user") and name not in self._config.users:
            return []
        user = self._user(context)
        methods = ["token"] if user.get("token") else []
        methods += ["basicAuth"] if user.get("username") or user.get("password") else []
        if user.get("client-certificate") or user.get("client-certificate-data"):
            problems += _certificate_problems(user, name)
        problems += _exec_problems(user, name)
        if len(methods) > 1:
            problems.append(
                f"more than one authentication method found for {name}; found "
                f"[{' '.join(methods)}], only one is allowed"
            )
        if not user.get("as") and any(
            user.get(key) for key in ("as-uid", "as-groups", "as-user-extra")
        ):
            problems.append(
                f"requesting uid, groups or user-extra for {name} without impersonating a user"
            )
        return problems


def _certificate_problems(user: Obj, name: str) -> list[str]:
    problems = []
    if user.get("client-certificate") and user.get("client-certificate-data"):
        problems.append(
            f"client-cert-data and client-cert are both specified for {name}. client-cert-data "
            "will override."
        )
    if user.get("client-key") and user.get("client-key-data"):
        problems.append(
            f"client-key-data and client-key are both specified for {name}; client-key-data will "
            "override"
        )
    if not user.get("client-key") and not user.get("client-key-data"):
        problems.append(
            f"client-key-data or client-key must be specified for {name} to use the clientCert "
            "authentication method."
        )
    problems += _unreadable("client-cert", user.get("client-certificate"), name)
    return problems + _unreadable("client-key", user.get("client-key"), name)


def _exec_problems(user: Obj, name: str) -> list[str]:
    plugin = user.get("exec")
    if not plugin:
        return []
    end = f"must be specified for {name} to use exec authentication plugin"
    problems = []
    if user.get("auth-provider"):
        problems.append(
            f"authProvider cannot be provided in combination with an exec plugin for {name}"
        )
    for field in ("command", "apiVersion"):
        if not plugin.get(field):
            problems.append(f"{field} {end}")
    if any(not entry.get("name") for entry in plugin.get("env") or []):
        problems.append(f"env variable name {end}")
    mode = plugin.get("interactiveMode") or "IfAvailable"
    if mode not in ("Never", "IfAvailable", "Always"):
        problems.append(f'invalid interactiveMode for {name}: "{mode}"')
    return problems


def _unreadable(field: str, path: Any, name: str) -> list[str]:
    if not path:
        return []
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        why = f"open {path}: {(error.strerror or str(error)).lower()}"
        return [f"unable to read {field} {path} for {name} due to {why}"]
    return []


def check_certificates(connection: Connection) -> None:
    """What Go finds wrong with them before it connects."""
    if connection.ca is not None and b"-----BEGIN" not in connection.ca:
        raise CliError("unable to load root certificates: unable to parse bytes as PEM block")
    for what, content in (("certificate", connection.certificate), ("key", connection.key)):
        if content is not None and b"-----BEGIN" not in content:
            raise CliError(f"tls: failed to find any PEM data in {what} input")
