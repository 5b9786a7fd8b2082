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

from sampan.api.objects import Obj, time_text
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values, duration
from sampan.cli.printers.terminal_text import on_terminal
from sampan.core.clock import Clock, SystemClock

if TYPE_CHECKING:
    from sampan.cli.client_config import ClientConfig
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
    Flag("kuberc", usage="The kuberc file to take preferences from; KUBERC=off turns them off."),
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


_GLOBALS = {flag.name: flag for flag in GLOBAL_FLAGS}


def is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


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
        return is_terminal(stream or self.stdout)

    def stdin_is_terminal(self) -> bool:
        return is_terminal(self.stdin)

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
        self.more_verbs: dict[str, str] = {}
        # What the user's kuberc says of this command: see kuberc.py.
        self.alias: Any = None  # the Command that an alias stands for
        self.presets: list[tuple[str, str]] = []
        self.original_command = ""
        self.plugin_policy: Obj = {}
        self.warnings: list[str] = []
        self._kubeconfig: Kubeconfig | None = None
        self._connection: Connection | None = None
        self._api: BlockingClient | None = None
        self._discovery: Discovery | None = None

    @property
    def is_kuberc_disabled(self) -> bool:
        return self.io.environment.get("KUBECTL_KUBERC", "").lower() == "false"

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
        """What the server warns of: once, and --warnings-as-errors counts it."""
        if text not in self.warnings:
            self.warnings.append(text)
            self.print_warning(text)

    def print_warning(self, text: str) -> None:
        if not self._has_colours():
            self.complain(f"Warning: {text}")
            return
        self.io.stdout.flush()
        self.io.stderr.write(f"\x1b[33;1mWarning:\x1b[0m {on_terminal(text)}\n")

    def _has_colours(self) -> bool:
        """As kubectl decides it: a terminal that is not dumb, and nobody said no."""
        environment = self.io.environment
        if environment.get("NO_COLOR") or environment.get("TERM", "") == "dumb":
            return False
        return is_terminal(self.io.stderr)

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
            self._connection = self.client_config.connection(self.io.environment)
        return self._connection

    @property
    def client_config(self) -> "ClientConfig":
        from sampan.cli.client_config import ClientConfig

        flag = "insecure-skip-tls-verify"
        insecure = bool(self.shared(flag)) if self.values.is_set(flag) else None
        is_found = bool(self.found_kubeconfig)
        return ClientConfig(
            self.kubeconfig,
            self.shared,
            insecure=insecure,
            is_found=is_found,
            plugin_policy=self.plugin_policy,
        )

    @property
    def namespace(self) -> str:
        """What -n says, else the context, else `default`."""
        return str(self.shared("namespace")) or self.client_config.namespace()

    def check_context(self) -> None:
        """Most verbs ask early for the namespace: a context that is not there is told then."""
        _ = self.namespace

    @property
    def namespace_is_given(self) -> bool:
        """Whether a flag or the context says which one (kubectl: enforceNamespace)."""
        return bool(self.shared("namespace"))

    @property
    def api(self) -> "BlockingClient":
        if self._api is None:
            from sampan.cli.client_config import check_certificates
            from sampan.client.blocking import BlockingClient
            from sampan.version import GIT_VERSION

            check_certificates(self.connection)
            self._api = BlockingClient(
                self.connection,
                user_agent=f"kubectl/{GIT_VERSION}",
                on_warning=self.warn,
                timeout_seconds=self.request_timeout(),
            )
            if self.shared("match-server-version"):
                self._check_version(self._api)
        return self._api

    def _check_version(self, api: "BlockingClient") -> None:
        from sampan.cli.own_version import check_match

        check_match(api.json("GET", "/version"))

    @property
    def discovery(self) -> "Discovery":
        if self._discovery is None:
            from sampan.cli.objects.discovery import Discovery

            self._discovery = Discovery(self.api, self.cache_dir(), self.clock, self.print_warning)
        return self._discovery

    def cache_dir(self) -> str:
        given = self.shared("cache-dir") or self.io.environment.get("KUBECACHEDIR")
        return str(given) if given else os.path.join(self.io.home, ".kube", "cache")

    def request_timeout(self) -> float | None:
        text = str(self.shared("request-timeout"))
        try:
            seconds = float(text) if re.fullmatch(r"\+?[0-9]+", text) else duration(text)
        except ValueError:
            raise CliError(BAD_TIMEOUT) from None
        return seconds if seconds > 0 else None  # what is less than nothing is no limit, too

    def close(self) -> None:
        if self._api is not None:
            self._api.close()
