"""python -m tests.support.pod_lives.record KUBECONFIG LIVES OUT TIMES [NAME…]: lead pods.

Job: the scenarios of a file of lives, several times over; what was seen, as a file of lives.
"""

import asyncio
import sys
from pathlib import Path

from sampan.api.objects import Obj, name_of
from sampan.api.resources import NAMESPACES, NODES
from sampan.client import kubeconfig, rest
from sampan.core.clock import SystemClock
from tests.support.pod_lives.leading import Leading, Life
from tests.support.pod_lives.recordings import Run, read, seen_in_a_run, together, write

SCENARIO = ("pod", "objects", "actions", "secs")
AT_ONCE, SLACK = 20, 5.0


async def recorded(config: Path, scenarios: dict[str, Obj], at_once: int = AT_ONCE) -> Run:
    connection = kubeconfig.load(str(config), {}, "").connection()
    client = rest.connect(connection, clock=SystemClock())
    found: Run = {}
    node = name_of((await client.list(NODES)).items[0])
    waiting = sorted(scenarios.items(), key=lambda item: item[1]["secs"])
    try:
        while waiting:
            lives = [Life(*one) for one in waiting[:at_once]]
            del waiting[:at_once]
            namespace = f"lives-{int(SystemClock().now() * 10) % 10**8}"
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})
            leading = Leading(client, namespace, node, lives)
            await leading.run(lambda life: False, lambda life: SLACK + float(life.scenario["secs"]))
            await client.delete(NAMESPACES, "", namespace)
            found |= {life.name: seen_in_a_run(life) for life in lives}
    finally:
        await client.close()
    return found


def main() -> None:
    config, lives, out, times, *names = sys.argv[1:]
    scenarios = {
        name: {key: life[key] for key in SCENARIO}
        for name, life in read(Path(lives)).items()
        if not names or name in names
    }
    runs = [asyncio.run(recorded(Path(config), scenarios)) for _ in range(int(times))]
    found = (together(name, one, [run[name] for run in runs]) for name, one in scenarios.items())
    write(Path(out), found)


if __name__ == "__main__":
    main()
