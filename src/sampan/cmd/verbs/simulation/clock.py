"""`sampan clock`: the time of a cluster that was started with --clock virtual.

Job: show it, move it, and say which clients were waited for.
"""

import os
import sys
from pathlib import Path

from sampan.api.errors import ApiError, NotFound, UnknownPath
from sampan.api.objects import Obj
from sampan.client import kubeconfig
from sampan.client.blocking import BlockingClient
from sampan.cmd.errors import CannotStart, sentence_of
from sampan.core.fast_dataclass import dataclass

PATH = "/sampan/v1/clock"
REAL = "this cluster's time is real: start one with `sampan up --clock virtual`"


@dataclass(frozen=True, slots=True)
class ClockChoices:
    action: str  # "", advance, step or settle
    duration: str = ""  # of advance: how far; of step: at most
    settle: bool = False
    clients: tuple[str, ...] = ()
    patience: str = ""


def run(choices: ClockChoices, kubeconfig_path: str) -> int:
    try:
        for line in lines_of(_answer(choices, kubeconfig_path)):
            print(line)
    except (NotFound, UnknownPath):
        print(f"sampan: {REAL}", file=sys.stderr)
        return 1
    except (ApiError, CannotStart, kubeconfig.KubeconfigError, OSError) as error:
        print(f"sampan: {sentence_of(error)}", file=sys.stderr)
        return 1
    return 0


def lines_of(answer: Obj) -> list[str]:
    lines = [answer["now"]]
    for each in answer.get("waitedFor") or ():
        times = "once" if each["waits"] == 1 else f"{each['waits']} times"
        restless = ", which was not quiet within the patience" if each["restless"] else ""
        lines.append(f"waited {times}, {each['seconds']:.1f} s, for {each['client']}{restless}")
    return lines


def body_of(choices: ClockChoices) -> Obj:
    body: Obj = {}
    if choices.action == "advance":
        body = {"duration": choices.duration, "settle": choices.settle}
    elif choices.action == "step":
        body = {"most": choices.duration}
    if choices.clients:
        body["clients"] = list(choices.clients)
    if choices.patience:
        body["patience"] = choices.patience
    return body


def _answer(choices: ClockChoices, path: str) -> Obj:
    loaded = kubeconfig.load(path, os.environ, str(Path.home()))
    api = BlockingClient(loaded.connection(), user_agent="sampan-clock")
    try:
        if not choices.action:
            return api.json("GET", PATH)
        return api.json("POST", f"{PATH}/{choices.action}", body=body_of(choices))
    finally:
        api.close()
