"""`version`: the client's and the server's.

Job: say both; warn where they are far apart.
"""

from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.session import Session
from sampan.version import GIT_VERSION, KUBERNETES_VERSION

KUSTOMIZE_VERSION = "v5.7.1"


def _client() -> Obj:
    import platform
    import sys

    major, minor = KUBERNETES_VERSION.removeprefix("v").split(".")[:2]
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major, "minor": minor, "gitVersion": GIT_VERSION, "gitCommit": "$Format:%H$",
        "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}", "compiler": "gc",
        "platform": f"{sys.platform}/{machine}",
    }  # fmt: skip


def run(session: Session, values: Values) -> None:
    if values["output"] not in ("", "yaml", "json"):
        raise CliError("--output must be 'yaml' or 'json'")
    found: Obj = {"clientVersion": _client(), "kustomizeVersion": KUSTOMIZE_VERSION}
    if not values["client"]:
        found["serverVersion"] = session.api.json("GET", "/version")
    if values["output"] == "yaml":
        from sampan.cli.printers.yaml_text import to_yaml

        session.print(to_yaml(found))
    elif values["output"] == "json":
        import json

        session.print(json.dumps(found, indent=2))
    else:
        session.print(f"Client Version: {GIT_VERSION}")
        session.print(f"Kustomize Version: {KUSTOMIZE_VERSION}")
        if "serverVersion" in found:
            session.print(f"Server Version: {found['serverVersion']['gitVersion']}")


VERSION = Command(
    "version", "version [flags] [options]", "Print the client and server version information.", run,
    (switch("client", "Client version only (no server required)."),
     Flag("output", short="o", usage="One of 'yaml' or 'json'.")),
)  # fmt: skip
