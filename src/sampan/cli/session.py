"""One command's surroundings: streams, environment, kubeconfig, API, discovery.

Job: give each verb what it asks for, when it asks: a verb that sends nothing reads no kubeconfig.
Invariant: the global flags of kubectl mean here what they mean there.
"""

import io
import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from sampan.api.objects import time_text
from sampan.cli.errors import CliError, Plain
from sampan.cli.flags import Flag, Values, duration
from sampan.cli.printers.terminal_text import on_terminal
from sampan.core.clock import Clock, SystemClock

if TYPE_CHECKING:
    from sampan.cli.objects.discovery import Discovery
    from sampan.client.blocking import BlockingClient, NoAnswer
    from sampan.client.kubeconfig import Connection, Kubeconfig

GLOBAL_FLAGS = (
    Flag("as", usage="Username to impersonate for the operation."),
    Flag("as-group", "array", [], "Group to impersonate; may be repeated."),
    Flag("as-uid", usage="UID to impersonate for the operation."),
    Flag("as-user-extra", "array", [], "User extras to impersonate (key=value); may be repeated."),
    Flag("cache-dir", usage="Where discovery is kept (default: $HOME/.kube/cache)."),
    Flag("certificate-authority", usage="A cert file for the certificate authority."),
    Flag("client-certificate", usage="A client certificate file for TLS."),
    Flag("client-key", usage="A client key file for TLS."),
    Flag("cluster", usage="The name of the kubeconfig cluster to use."),
    Flag("context", usage="The name of the kubeconfig context to use."),
    Flag("disable-compression", "bool", False, "Accepted; answers are never compressed.", bare="true"),
    Flag("insecure-skip-tls-verify", "bool", False, "Do not check the server's certificate.", bare="true"),
    Flag("kubeconfig", usage="The kubeconfig file to use."),
    Flag("kuberc", usage="Accepted; preferences files are not read."),
    Flag("log-flush-frequency", "duration", 5.0, "Accepted, without effect."),
    Flag("match-server-version", "bool", False, "Require the server's version to be ours.", bare="true"),
    Flag("namespace", short="n", usage="The namespace of this request."),
    Flag("password", usage="Password for basic authentication."),
    Flag("plain", "bool", False, "No colours.", bare="true", hidden=True),
    Flag("profile", default="none", usage="Accepted, without effect."),
    Flag("profile-output", default="profile.pprof", usage="Accepted, without effect."),
    Flag("request-timeout", default="0", usage="How long one request may take; 0: as long as it likes."),
    Flag("server", short="s", usage="The address and port of the API server."),
    Flag("tls-server-name", usage="The name to check the server's certificate for."),
    Flag("token", usage="Bearer token for the API server."),
    Flag("user", usage="The name of the kubeconfig user to use."),
    Flag("username", usage="Username for basic authentication."),
    Flag("v", "int", 0, "The number for the log level verbosity.", short="v"),
    Flag("vmodule", usage="Accepted, without effect."),
    Flag("warnings-as-errors", "bool", False, "Treat warnings of the server as errors.", bare="true"),
)  # fmt: skip


BAD_TIMEOUT = (
    "Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by "
    "a corresponding time unit (e.g. 1s | 2m | 3h)"
)
# What a kubeconfig's entry may not keep beside a flag: flag -> field.
CLUSTER_RIVALS = {"certificate-authority": "certificate-authority-data"}
USER_RIVALS = {
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
    "token": "tokenFile",
}
IDENTITY_FLAGS = ("token", "username", "password", "client-certificate", "client-key")
_GLOBALS = {flag.name: flag for flag in GLOBAL_FLAGS}


class Io:
    """The process's streams and surroundings; tests bring their own."""

    def __init__(
        self,
        stdin: Any = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.stdin = stdin if stdin is not None else sys.stdin.buffer
        self.stdout = stdout if stdout is not None else sys.stdout
        self.stderr = stderr if stderr is not None else sys.stderr
        self.environment = dict(os.environ) if environment is None else dict(environment)

    @property
    def home(self) -> str:
        return self.environment.get("HOME") or "/"

    def is_terminal(self, stream: TextIO | None = None) -> bool:
        """The standard output, unless another is meant."""
        try:
            return (stream or self.stdout).isatty()
        except (AttributeError, ValueError):
            return False

    def stdin_is_terminal(self) -> bool:
        try:
            return bool(self.stdin.isatty())
        except (AttributeError, ValueError):
            return False

    def raw_stdout(self) -> Any:
        """For bytes; a text stream without a buffer gets them decoded."""
        self.stdout.flush()
        return getattr(self.stdout, "buffer", None) or _Decoding(self.stdout)


class _Decoding(io.RawIOBase):
    def __init__(self, text: TextIO) -> None:
        super().__init__()
        self._text = text

    def write(self, data: Any) -> int:
        self._text.write(bytes(data).decode(errors="replace"))
        return len(data)

    def flush(self) -> None:
        self._text.flush()


class NoContext(Plain):
    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"Error in configuration: context was not found for specified context: {name}"
        )


class Session:
    def __init__(
        self,
        program: str,
        path: str,
        io: Io,
        clock: Clock | None = None,
        found_kubeconfig: str = "",
    ) -> None:
        self.program, self.path, self.io = program, path, io
        self._found_kubeconfig = found_kubeconfig  # of a cluster on this machine; nobody named it
        self.clock: Clock = clock or SystemClock()
        self.values: Values = Values(())
        self.words: list[str] = []  # the command line as it was given
        self.more_verbs: tuple[str, ...] = ()
        self.warnings: list[str] = []
        self._kubeconfig: Kubeconfig | None = None
        self._connection: Connection | None = None
        self._api: BlockingClient | None = None
        self._discovery: Discovery | None = None

    def shared(self, name: str) -> Any:
        """A global flag's value; its default where the verb has a flag of that name itself."""
        flag = self.values.flags.get(name)
        own = _GLOBALS[name]
        is_shared = flag is not None and flag.kind == own.kind and flag.usage == own.usage
        return self.values[name] if is_shared else own.default

    # --- printing

    def print(self, text: str = "") -> None:
        self.write(text + "\n")

    def write(self, text: str) -> None:
        self.io.stdout.write(on_terminal(text) if self.io.is_terminal() else text)

    def complain(self, text: str) -> None:
        self.io.stdout.flush()
        shown = on_terminal(text) if self.io.is_terminal(self.io.stderr) else text
        self.io.stderr.write(shown + "\n")

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)
            self.complain(f"Warning: {text}")

    def klog(self, level: str, where: str, text: str) -> None:
        """As kubectl's own log writes: people filter for it."""
        moment = time_text(self.clock.now())
        stamp = f"{moment[5:7]}{moment[8:10]} {moment[11:19]}.000000"
        self.complain(f"{level}{stamp} {os.getpid():7d} {where}] {text}")

    def unreachable(self, error: "NoAnswer", times: int) -> None:
        """What kubectl's log says, each time that it asks in vain what the server serves. Whoever
        calls us by our own name is told once, at the end."""
        if self.program != "kubectl":
            return
        why = error.text_for("GET", "/api?timeout=32s").replace('"', '\\"')
        text = f'"Unhandled Error" err="couldn\'t get current server API group list: {why}"'
        for _ in range(times):
            self.klog("E", "memcache.go:265", text)

    # --- who and where

    @property
    def kubeconfig(self) -> "Kubeconfig":
        if self._kubeconfig is None:
            from sampan.client import kubeconfig

            try:
                self._kubeconfig = kubeconfig.load(
                    str(self.shared("kubeconfig")) or self.found_kubeconfig,
                    self.io.environment,
                    self.io.home,
                )
            except kubeconfig.KubeconfigError as error:
                raise CliError(str(error)) from error
        return self._kubeconfig

    @property
    def found_kubeconfig(self) -> str:
        """Of a cluster that nobody named; empty where a flag says which one is meant."""
        is_named = self.shared("kubeconfig") or self.shared("server")
        return "" if is_named else self._found_kubeconfig

    @property
    def connection(self) -> "Connection":
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    @property
    def namespace(self) -> str:
        """What -n says, else the context, else `default`."""
        if self.shared("namespace"):
            return str(self.shared("namespace"))
        return self._context_entry().get("namespace") or "default"

    @property
    def namespace_is_given(self) -> bool:
        """Whether a flag or the context says which one (kubectl: enforceNamespace)."""
        return bool(self.shared("namespace"))

    @property
    def api(self) -> "BlockingClient":
        if self._api is None:
            from sampan.client.blocking import BlockingClient
            from sampan.version import GIT_VERSION

            self._api = BlockingClient(
                self.connection,
                user_agent=f"kubectl/{GIT_VERSION}",
                on_warning=self.warn,
                timeout_seconds=self.request_timeout(),
            )
        return self._api

    @property
    def discovery(self) -> "Discovery":
        if self._discovery is None:
            from sampan.cli.objects.discovery import Discovery

            self._discovery = Discovery(self.api, self.cache_dir(), self.clock)
        return self._discovery

    def cache_dir(self) -> str:
        given = self.shared("cache-dir") or self.io.environment.get("KUBECACHEDIR")
        return str(given) if given else os.path.join(self.io.home, ".kube", "cache")

    def request_timeout(self) -> float | None:
        text = str(self.shared("request-timeout"))
        try:
            seconds = float(text) if re.fullmatch(r"-?[0-9]+", text) else duration(text)
        except ValueError:
            raise CliError(BAD_TIMEOUT) from None
        if seconds < 0:
            raise CliError(BAD_TIMEOUT)
        return seconds or None

    def close(self) -> None:
        if self._api is not None:
            self._api.close()

    def _context_entry(self) -> dict[str, Any]:
        config = self.kubeconfig
        name = self.shared("context") or config.current_context
        if self.shared("context") and name not in config.contexts:
            raise NoContext(name)
        return dict(config.contexts.get(name) or {})

    def _connect(self) -> "Connection":
        from sampan.client.environment_proxy import proxy_of
        from sampan.client.kubeconfig import KubeconfigError, connection_of

        try:
            cluster, user, namespace = self._entries()
            if not cluster.get("proxy-url"):
                cluster["proxy-url"] = proxy_of(self.io.environment, cluster["server"])
            config = self.kubeconfig
            return connection_of(cluster, config._identified(user, cluster), namespace)
        except KubeconfigError as error:
            raise CliError(f"{error}") from error

    def _entries(self) -> tuple[dict[str, Any], dict[str, Any], str]:
        """Cluster and user of the context, with the flags over them."""
        context = self._context_entry()
        cluster = self._cluster_entry(self.shared("cluster") or context.get("cluster") or "")
        user = self._user_entry(self.shared("user") or context.get("user") or "")
        return cluster, user, self.shared("namespace") or context.get("namespace") or "default"

    def _cluster_entry(self, name: str) -> dict[str, Any]:
        config = self.kubeconfig
        if self.shared("cluster") and name not in config.clusters:
            raise CliError(f'no server found for cluster "{name}"')
        cluster = dict(config.clusters.get(name) or {})
        self._override(cluster, ("server", "tls-server-name", "certificate-authority"))
        self._drop_rivals(cluster, CLUSTER_RIVALS)
        self._set_insecure(cluster)
        cluster.setdefault("server", "http://localhost:8080")
        if "://" not in cluster["server"]:
            cluster["server"] = "http://" + cluster["server"]
        return cluster

    def _user_entry(self, name: str) -> dict[str, Any]:
        config = self.kubeconfig
        if self.shared("user") and name not in config.users:
            raise CliError(f'auth info "{name}" does not exist')
        user = dict(config.users.get(name) or {})
        if self.found_kubeconfig and any(self.shared(flag) for flag in IDENTITY_FLAGS):
            user = {}  # the administrator of a cluster that was found never speaks beside a token
        self._override(user, IDENTITY_FLAGS)
        self._drop_rivals(user, USER_RIVALS)
        self._impersonate(user)
        return user

    def _override(self, entry: dict[str, Any], names: tuple[str, ...]) -> None:
        for name in names:
            if self.shared(name):
                entry[name] = self.shared(name)

    def _drop_rivals(self, entry: dict[str, Any], rivals: Mapping[str, str]) -> None:
        for name, rival in rivals.items():
            if self.shared(name):
                entry.pop(rival, None)

    def _set_insecure(self, cluster: dict[str, Any]) -> None:
        if not self.values.is_set("insecure-skip-tls-verify"):
            return
        cluster["insecure-skip-tls-verify"] = self.shared("insecure-skip-tls-verify")
        if self.shared("insecure-skip-tls-verify"):
            cluster.pop("certificate-authority-data", None)
            cluster.pop("certificate-authority", None)

    def _impersonate(self, user: dict[str, Any]) -> None:
        if self.shared("as"):
            user["as"] = self.shared("as")
        if self.shared("as-uid"):
            user["as-uid"] = self.shared("as-uid")
        if self.shared("as-group"):
            user["as-groups"] = self.shared("as-group")
        extra: dict[str, list[str]] = {}
        for pair in self.shared("as-user-extra"):
            key, _, value = pair.partition("=")
            extra.setdefault(key, []).append(value)
        if extra:
            user["as-user-extra"] = extra
        if not user.get("as") and (self.shared("as-uid") or self.shared("as-group") or extra):
            raise CliError(
                "requesting uid, groups or user-extra for u without impersonating a user"
            )
