"""`version`: the client's and the server's.

Job: say both; warn where they are far apart.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.own_version import own_version
from sampan.cli.session import Session
from sampan.version import GIT_VERSION

KUSTOMIZE_VERSION = "v5.7.1"


def run(session: Session, values: Values) -> None:
    if values.arguments and not values["client"]:
        raise CliError(f"extra arguments: [{' '.join(values.arguments)}]")
    if values["output"] not in ("", "yaml", "json"):
        raise CliError("--output must be 'yaml' or 'json'")
    found: Obj = {"clientVersion": own_version(), "kustomizeVersion": KUSTOMIZE_VERSION}
    failure: Exception | None = None
    if not values["client"]:
        try:
            found["serverVersion"] = session.api.json("GET", "/version")
        except (ApiError, OSError) as error:
            failure = error
    _show(session, values.text("output"), found)
    if failure is not None:
        raise failure


def _show(session: Session, form: str, found: Obj) -> None:
    if form == "yaml":
        from sampan.cli.printers.yaml_text import to_yaml

        session.print(to_yaml(found))
    elif form == "json":
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
