"""`make bench-nodes`: many simulated nodes and pods in one process, through its HTTPS API.

Job: start `sampan up --runtime simulated`, create every pod, wait until all run, look at memory,
    lists, watchers and idle CPU, delete every pod; print a table, and what each figure is against
    its target. With --seeded the pods are put into the store, and it begins with a start again;
    with --deployment they are one Deployment's, and nothing else is measured.
"""

import argparse
import asyncio
import os
import resource
import tempfile
from pathlib import Path

import orjson
import uvloop

from sampan.api.objects import Obj
from sampan.client import kubeconfig
from sampan.core.clock import SystemClock
from sampan.core.http.client import HttpClient
from sampan.core.http.errors import HttpError
from sampan.core.tasks import all_of
from sampan.core.tls import client_context
from tests.bench.seeded_pods import seed
from tests.bench.usage import cpu_seconds, our_processes, pss_mib
from tests.bench.watchers import Watchers
from tests.support.parts.sampan_process import SampanProcess

AT_ONCE = 100  # requests; with few at a time each turn of the server's loop has less to do
APPS = 100
IDLE_SECONDS = 20.0
SETTLE_SECONDS = 5.0  # controllers have looked at thousands of new nodes
LONGEST_SECONDS = 1800.0
EVENTS = 10
PODS, CONFIG_MAPS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/configmaps"
HOLDS = "sampan_event_loop_holds_total{"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
TARGETS = {"pods to Running": 500.0, "memory": 1536.0, "idle CPU": 5.0}


class Api:
    """As much of the API as this needs, over HTTPS with the administrator's certificate."""

    def __init__(self, path: Path) -> None:
        found = kubeconfig.load(str(path), {}, "/").connection()
        self._url = found.server
        context = client_context(ca_data=found.ca, pair_data=(found.certificate, found.key))
        self._http = HttpClient(ssl_context=context)

    async def ask(self, method: str, path: str, body: Obj | None = None) -> Obj:
        answer = await self._http.request(
            method,
            f"{self._url}{path}",
            headers=(("content-type", "application/json"),),
            body=orjson.dumps(body) if body is not None else b"",
            timeout_seconds=300.0,
        )
        assert answer.status < 300, answer.body[:300]
        found: Obj = orjson.loads(answer.body)
        return found

    async def holds(self) -> float:
        """How often the server's loop was held for longer than 50 ms."""
        answer = await self._http.request("GET", f"{self._url}/metrics", timeout_seconds=60.0)
        lines = answer.body.decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(HOLDS))

    async def is_empty(self, path: str) -> bool:
        return not (await self.ask("GET", path)).get("items")

    async def close(self) -> None:
        await self._http.close()


def app(number: int) -> str:
    return f"app-{number % APPS}"


def pod(number: int) -> Obj:
    """As somebody would write it: an image, a port, something asked for."""
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:06d}", "labels": {"app": app(number)}},
        "spec": {"containers": [container]},
    }


async def create(api: Api, count: int) -> None:
    numbers = iter(range(count))

    async def some() -> None:
        for number in numbers:
            await api.ask("POST", PODS, pod(number))

    await all_of(some() for _ in range(AT_ONCE))


async def delete(api: Api) -> None:
    """App by app, as somebody would: one request for everything takes as long as all of it."""
    numbers = iter(range(APPS))

    async def some() -> None:
        for number in numbers:
            await api.ask("DELETE", f"{PODS}?labelSelector=app%3D{app(number)}")

    await all_of(some() for _ in range(4))


async def until_empty(api: Api, path: str, clock: SystemClock) -> None:
    async with asyncio.timeout(LONGEST_SECONDS):
        while not await api.is_empty(path):
            await clock.sleep(0.25)


def say(name: str, figure: float, unit: str) -> None:
    target = f"   target {TARGETS[name]:g}" if name in TARGETS else ""
    print(f"  {name:24} {figure:10.1f} {unit}{target}", flush=True)


async def measure(process: SampanProcess, pods: int) -> None:
    """Each figure is printed as soon as it is known: the whole takes minutes."""
    clock, api = SystemClock(), Api(process.kubeconfig)
    pids = our_processes(process.pid)
    empty = pss_mib(pids)
    say("memory with nodes only", empty, "MiB")
    began, used = clock.monotonic(), cpu_seconds(pids)
    await create(api, pods)
    say("pods created", pods / (clock.monotonic() - began), "/s")
    await until_empty(api, f"{PODS}?fieldSelector=status.phase!=Running&limit=1", clock)
    say("pods to Running", pods / (clock.monotonic() - began), "/s")
    say("CPU per pod", (cpu_seconds(pids) - used) / pods * 1000, "ms")
    full = pss_mib(pids)
    say("memory", full, "MiB")
    say("memory per pod", (full - empty) * 1024 / pods, "KiB")
    await clock.sleep(IDLE_SECONDS / 4)
    used, began = cpu_seconds(pids), clock.monotonic()
    await clock.sleep(IDLE_SECONDS)
    idle = (cpu_seconds(pids) - used) / (clock.monotonic() - began)
    say("idle CPU", idle * 100, "% of a core")
    await api.close()


def deployment(replicas: int) -> Obj:
    labels = {"app": app(0)}
    template = {"metadata": {"labels": labels}, "spec": pod(0)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "large"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


async def measure_deployment(process: SampanProcess, replicas: int) -> None:
    clock, api = SystemClock(), Api(process.kubeconfig)
    pids = our_processes(process.pid)
    await clock.sleep(SETTLE_SECONDS)
    began, used = clock.monotonic(), cpu_seconds(pids)
    await api.ask("POST", DEPLOYMENTS, deployment(replicas))
    async with asyncio.timeout(LONGEST_SECONDS):
        while True:
            status = (await api.ask("GET", f"{DEPLOYMENTS}/large")).get("status", {})
            if status.get("readyReplicas") == replicas:
                break
            await clock.sleep(0.25)
    say("Deployment ready", clock.monotonic() - began, "s")
    say("CPU per pod", (cpu_seconds(pids) - used) / replicas * 1000, "ms")
    await api.close()


async def measure_lists(process: SampanProcess) -> None:
    clock, api = SystemClock(), Api(process.kubeconfig)
    pids = our_processes(process.pid)
    used, token, longest = cpu_seconds(pids), "", 0.0
    while True:
        began = clock.monotonic()
        page = await api.ask("GET", f"{PODS}?limit=500{token}")
        longest = max(longest, clock.monotonic() - began)
        if not page["metadata"].get("continue"):
            break
        token = f"&continue={page['metadata']['continue']}"
    say("CPU of a list by 500", cpu_seconds(pids) - used, "s")
    say("longest of its pages", longest * 1000, "ms")
    used = cpu_seconds(pids)
    await api.ask("GET", f"{PODS}?labelSelector=app%3D{app(7)}")
    say("CPU of one by label", (cpu_seconds(pids) - used) * 1000, "ms")
    await api.close()


async def measure_watchers(process: SampanProcess, count: int) -> None:
    api, watchers = Api(process.kubeconfig), Watchers(process.kubeconfig)
    pids = our_processes(process.pid)
    clock = SystemClock()
    empty, used, began = pss_mib(pids), cpu_seconds(pids), clock.monotonic()
    await watchers.open(count)
    say("watchers opened in", clock.monotonic() - began, "s")
    say("CPU to open a watcher", (cpu_seconds(pids) - used) / count * 1000, "ms")
    say("memory of a watcher", (pss_mib(pids) - empty) * 1024 / count, "KiB")
    holds = await api.holds()
    used, began = cpu_seconds(pids), clock.monotonic()
    for number in range(EVENTS):
        name = f"told-{number}"
        meta = {"name": name}
        await api.ask(
            "POST", CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        )
        await watchers.heard(name.encode())
    told = (cpu_seconds(pids) - used) / EVENTS / count
    say("CPU to tell one", told * 1e6, "µs")
    say("an event to all of them", (clock.monotonic() - began) / EVENTS * 1000, "ms")
    say("holds over 50 ms", await api.holds() - holds, "")
    await watchers.close()
    await api.close()


async def measure_deletion(process: SampanProcess, pods: int) -> None:
    clock, api = SystemClock(), Api(process.kubeconfig)
    pids = our_processes(process.pid)
    began, used = clock.monotonic(), cpu_seconds(pids)
    await delete(api)
    await until_empty(api, f"{PODS}?limit=1", clock)
    say("pods deleted", pods / (clock.monotonic() - began), "/s")
    say("CPU per deleted pod", (cpu_seconds(pids) - used) / pods * 1000, "ms")
    await api.close()


async def start_again(process: SampanProcess) -> None:
    """Until it serves reads, and until all nodes are ready."""
    clock, began = SystemClock(), SystemClock().monotonic()
    process.program = None
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(process.up, seconds=LONGEST_SECONDS))
        while not await serves(process):
            await clock.sleep(0.1)
        say("serves reads again", clock.monotonic() - began, "s")
        say("CPU of that", cpu_seconds(our_processes(process.pid)), "s")
    say("start again with all pods", clock.monotonic() - began, "s")
    say("CPU of that", cpu_seconds(our_processes(process.pid)), "s")


async def serves(process: SampanProcess) -> bool:
    if process.program is None:
        return False
    api = Api(process.kubeconfig)
    try:
        await api.ask("GET", f"{PODS}?limit=1")
    except (HttpError, OSError):
        return False
    finally:
        await api.close()
    return True


async def first_pod(process: SampanProcess) -> None:
    api = Api(process.kubeconfig)
    await api.ask("POST", PODS, pod(999_999))
    await until_empty(api, f"{PODS}?fieldSelector=status.phase!=Running&limit=1", SystemClock())
    await api.close()


def start(process: SampanProcess, name: str) -> None:
    began = SystemClock().monotonic()
    process.up(seconds=300.0)
    say(name, SystemClock().monotonic() - began, "s")
    say("CPU of that", cpu_seconds(our_processes(process.pid)), "s")


def stop(process: SampanProcess, name: str) -> None:
    began = SystemClock().monotonic()
    process.stop()
    say(name, SystemClock().monotonic() - began, "s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--processes", action="store_true", help="each part its own process")
    parser.add_argument("--seeded", action="store_true", help="put the pods into the store")
    parser.add_argument("--deployment", action="store_true", help="of all the pods; that alone")
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    print(f"{given.nodes} nodes, {given.pods} pods, load {os.getloadavg()[0]:.1f} before")
    with tempfile.TemporaryDirectory(prefix="sampan-bench-") as folder:
        flags = ["--runtime", "simulated", "--nodes", str(given.nodes)]
        flags += ["--processes"] if given.processes else []
        process = SampanProcess(Path(folder), *flags)
        try:
            start(process, "start")
            if given.deployment:
                asyncio.run(measure_deployment(process, given.pods))
                return
            if given.seeded:
                asyncio.run(first_pod(process))
                stop(process, "stop with one pod")
                seed(process.data_dir / "store.db", given.pods, given.nodes, APPS)
            else:
                asyncio.run(measure(process, given.pods))
                print(process.run("status"))
                stop(process, "stop with all pods")
            asyncio.run(start_again(process))
            asyncio.run(measure_lists(process))
            uvloop.run(measure_watchers(process, given.watchers))  # its own part is less so
            print(process.run("status"))
            stop(process, "stop with all pods")
            start(process, "start again with all pods")
            asyncio.run(measure_deletion(process, given.pods))
            stop(process, "stop without pods")
        finally:
            process.stop()


if __name__ == "__main__":
    main()
