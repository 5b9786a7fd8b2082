"""`sampan node`: one of several real nodes of this machine comes, fails, or goes.

Job: ask the cluster for it; of one that goes, take its Node away, too.
"""

import contextlib
import os
import sys
from pathlib import Path

from sampan.api.errors import ApiError, NotFound, UnknownPath
from sampan.client import kubeconfig
from sampan.client.blocking import BlockingClient
from sampan.cmd.errors import CannotStart, sentence_of
from sampan.core.clock import Clock, SystemClock

PATH = "/sampan/v1/nodes"
ALONE = (
    "the nodes of this cluster are no processes of their own: start it with "
    "`sampan up --nodes 3`, and with real containers"
)


def run(action: str, name: str, kubeconfig_path: str) -> int:
    try:
        print(_done(action, name, kubeconfig_path, SystemClock()))
    except UnknownPath:
        print(f"sampan: {ALONE}", file=sys.stderr)
        return 1
    except (ApiError, CannotStart, kubeconfig.KubeconfigError, OSError) as error:
        print(f"sampan: {sentence_of(error)}", file=sys.stderr)
        return 1
    return 0


def _done(action: str, name: str, path: str, clock: Clock) -> str:
    loaded = kubeconfig.load(path, os.environ, str(Path.home()))
    api = BlockingClient(loaded.connection(), user_agent="sampan-node")
    began = clock.monotonic()
    try:
        answer = api.json("POST", f"{PATH}/{action}", body={"name": name})
        if action == "remove":
            with contextlib.suppress(NotFound):  # it was removed before
                api.json("DELETE", f"/api/v1/nodes/{name}")
    finally:
        api.close()
    return f"node {answer['name']}: {answer['state']} ({clock.monotonic() - began:.2f} s)"
