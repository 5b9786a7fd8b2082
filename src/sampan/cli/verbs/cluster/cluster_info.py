"""`cluster-info`: where the control plane and its services are.

Job: print the server's address and the cluster services that say they are some.
"""

from sampan.cli.command import Command
from sampan.cli.flags import Values
from sampan.cli.session import Session
from sampan.cli.verbs.cluster.cluster_dump import DUMP


def _show(session: Session, name: str, where: str) -> None:
    if session.io.is_terminal() and not session.io.environment.get("NO_COLOR"):
        name, where = f"\x1b[0;32m{name}\x1b[0m", f"\x1b[0;33m{where}\x1b[0m"
    session.print(f"{name} is running at {where}")


def run(session: Session, values: Values) -> None:
    server = session.api.server
    _show(session, "Kubernetes control plane", server)
    query = {"labelSelector": "kubernetes.io/cluster-service=true"}
    path = "/api/v1/namespaces/kube-system/services"
    for service in session.api.json("GET", path, query).get("items") or []:
        meta = service["metadata"]
        name = (meta.get("labels") or {}).get("kubernetes.io/name") or meta["name"]
        where = f"{server}{path}/{meta['name']}/proxy"
        _show(session, name, where)
    session.print(
        f"\nTo further debug and diagnose cluster problems, use '{session.program} cluster-info "
        "dump'."
    )


CLUSTER_INFO = Command(
    "cluster-info", "cluster-info [flags] [options]", "Display addresses of the control plane.", run,
    (), (DUMP,),
)  # fmt: skip
