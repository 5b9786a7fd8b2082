"""`sampan testserver`: an API server for the tests of others, as envtest wants one.

Job: a control plane in memory whose garbage collection and namespaces work, with other controllers
    and simulated nodes where they are asked for; the programs `kube-apiserver` and `etcd` that
    envtest starts instead of the originals.
Invariant: a flag that has no effect is named on standard error.

envtest (of controller-runtime) starts `etcd`, waits for its /health, starts `kube-apiserver` with
certificates of its own, waits for /healthz, and ends both with SIGTERM.
"""

import asyncio
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from sampan.cmd.cluster.process import loop_factory, run_until_signal
from sampan.cmd.cluster.progress import Progress
from sampan.cmd.cluster.releases import use_release
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags.control_plane_flags import apiserver_settings
from sampan.cmd.flags.parser import parser_of_verbs
from sampan.cmd.flags.testserver_flags import beside_in, words_of
from sampan.cmd.settings import Beside, NodeChoices, ReleaseChoices, UpSettings
from sampan.cmd.verbs.envtest.envtest_plane import EnvtestPlane
from sampan.controllers.controller import UnknownController
from sampan.core import log
from sampan.core.clock import SystemClock

PROGRAMS = ("kube-apiserver", "etcd", "kubectl")
# Of kube-apiserver: what they would change is so anyway.
NOTHING_TO_DO = ("--allow-privileged", "--insecure-port", "--insecure-bind-address")
ETCD_HELP = "  --listen-client-urls\n  --listen-peer-urls\n  --data-dir\n  --unsafe-no-fsync\n"


def run(assets: str, kubeconfig: str, beside: Beside, release: ReleaseChoices) -> int:
    if assets:
        write_assets(Path(assets), beside)
        print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(Path(assets).absolute()))}")
        return 0
    from sampan.cmd.verbs import up

    directory = tempfile.mkdtemp(prefix="sampan-testserver-")
    settings = UpSettings(
        data_dir=directory, kubeconfig=kubeconfig, port=0, store="memory:",
        runtime="simulated" if beside.nodes else "none", nodes=beside.nodes or 1,
        node=NodeChoices(scenario=beside.scenario), controllers=beside.controllers,
        scheduler=bool(beside.nodes), release=release, stages=beside.stages,
    )  # fmt: skip
    try:
        return up.run(settings, detach=False)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def write_assets(directory: Path, beside: Beside) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).parents[3]
    for program in PROGRAMS:
        more = words_of(beside) if program == "kube-apiserver" else []
        arguments = [sys.executable, "-m", "sampan.cmd.verbs.testserver", program, *more]
        path = f"{shlex.quote(str(source))}${{PYTHONPATH:+:$PYTHONPATH}}"
        script = f'#!/bin/sh\nPYTHONPATH={path} exec {shlex.join(arguments)} "$@"\n'
        (directory / program).write_text(script)
        (directory / program).chmod(0o755)


def kube_apiserver(arguments: Sequence[str]) -> int:
    if "--help" in arguments or "-h" in arguments:
        parser_of_verbs("apiserver").parse_args(["apiserver", "--help"])
    beside, others = beside_in(arguments)
    given, unknown = parser_of_verbs("apiserver").parse_known_args(
        ["apiserver", *translated(others, has_nodes=bool(beside.nodes))]
    )
    for word in unknown:
        print(f"kube-apiserver: {word} has no effect here", file=sys.stderr, flush=True)
    log.set_up("warning")
    progress = Progress(sys.stderr, SystemClock())
    try:
        settings = apiserver_settings(given)
        use_release(settings.release, warn=progress.warn)
        server = EnvtestPlane(settings, beside, progress, SystemClock())
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(run_until_signal(server, progress, lambda: None))
    except (CannotStart, UnknownController) as error:
        print(f"kube-apiserver: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


def translated(arguments: Sequence[str], *, has_nodes: bool) -> list[str]:
    """Objects stay in memory; the files of envtest's directory under the names that we know. Nodes
    need the authorizer that lets them see their pods."""
    kept, flags = [], _flags(arguments)
    for name, value in flags:
        if name in ("--etcd-servers", "--cert-dir"):
            continue
        if name == "--authorization-mode" and has_nodes and "Node" not in value.split(","):
            value = f"Node,{value}"
        if name not in NOTHING_TO_DO:
            kept.append(f"{name}={value}")
    given = dict(flags)
    certificates = Path(given.get("--cert-dir", "."))
    certificate, key = str(certificates / "apiserver.crt"), str(certificates / "apiserver.key")
    authority = given.get("--client-ca-file", certificate)
    defaults = {
        "--store": "memory:",
        "--tls-cert-file": certificate,
        "--tls-private-key-file": key,
        "--client-ca-file": authority,
        # Nodes of its own know it by other keys.
        "--kubelet-client-certificate": given.get("--tls-cert-file", certificate),
        "--kubelet-client-key": given.get("--tls-private-key-file", key),
        "--kubelet-certificate-authority": authority,
    }
    return [*kept, *(f"{name}={value}" for name, value in defaults.items() if name not in given)]


def _flags(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """`--name=value` and `--name value`; a flag without a value is true. As kube-apiserver has it,
    an empty word is an empty value, or nothing."""
    found: list[tuple[str, str]] = []
    rest = list(arguments)
    while rest:
        name, has_value, value = rest.pop(0).partition("=")
        if not name and not has_value:
            continue
        if not has_value and rest and not rest[0].startswith("-"):
            has_value, value = "=", rest.pop(0)
        found.append((name, value if has_value else "true"))
    return found


def etcd(arguments: Sequence[str]) -> int:
    """Nobody keeps anything in it: it says that it is well, as long as it lives."""
    if "--help" in arguments or "-h" in arguments:
        print(ETCD_HELP)
        return 0
    url = urlsplit(dict(_flags(arguments)).get("--listen-client-urls", "http://127.0.0.1:2379"))
    server = ThreadingHTTPServer((url.hostname or "127.0.0.1", url.port or 2379), _Health)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    server.serve_forever()
    return 0


class _Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"health": "true"}).encode()
        self.send_response(200 if self.path == "/health" else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its parent's word
        """Nobody reads it."""


def main(arguments: Sequence[str]) -> int:
    match arguments[0]:
        case "kube-apiserver":
            return kube_apiserver(arguments[1:])
        case "etcd":
            return etcd(arguments[1:])
        case _:
            from sampan.cli.main import main as client

            return client([*arguments[1:]], program="kubectl")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
