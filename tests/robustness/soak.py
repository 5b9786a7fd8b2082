"""`make soak MINUTES=n`: mixed load on one process for a long time, and a fit of what grows.

Job: `sampan up` with real containers; pods, Jobs, Deployments, Services, custom kinds, logs, exec
    and watches come and go in namespaces that come and go; every few seconds memory, descriptors,
    threads, tasks, cgroups, elements of nftables, mounts and the store's file are noted.
Invariant: after the first third nothing grows (tests/robustness/growth_fit.py), and in the end
    nothing is left on the machine.
"""

import argparse
import contextlib
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from sampan.api.errors import ApiError
from sampan.client.blocking import BlockingClient
from sampan.client.kubeconfig import load
from sampan.kubelet.cgroups.limits import root_of
from tests.support import growth_fit
from tests.support.parts.images import busybox_archive
from tests.support.parts.leftovers import network_of
from tests.support.parts.sampan_process import SampanProcess

IMAGE = "localhost/soak:1"
WAIT_SECONDS = 600.0  # on a machine that others load
LOOK_SECONDS = 10.0
EXEC = "v5.channel.k8s.io"


def container(*command):
    return {"name": "c", "image": IMAGE, "command": list(command)}


def template(*command, labels=None, restart="Always"):
    spec = {"containers": [container(*command)], "restartPolicy": restart,
            "terminationGracePeriodSeconds": 0}  # fmt: skip
    return {"metadata": {"labels": labels or {}}, "spec": spec}


class Load:
    """One thread's work: a namespace, something in it, and its end; again and again."""

    def __init__(self, connection, seed, number, over, counted):
        self.api = BlockingClient(connection, timeout_seconds=WAIT_SECONDS)
        self.rng = random.Random(f"{seed} {number}")
        self.over, self.counted = over, counted
        self.number, self.namespace = number, ""

    def run(self):
        works = [self.pods, self.jobs, self.deployments, self.services, self.custom_kinds,
                 self.watches]  # fmt: skip
        number = 0
        while not self.over.is_set():
            number += 1
            self.namespace = f"soak-{self.number}-{number}"
            metadata = {"name": self.namespace}
            self.api.json("POST", "/api/v1/namespaces", body={"metadata": metadata})
            try:
                for work in self.rng.sample(works, 3):
                    work()
                    self.counted[work.__name__] += 1
            finally:
                self.api.json("DELETE", f"/api/v1/namespaces/{self.namespace}")
            self.until_gone(f"/api/v1/namespaces/{self.namespace}")

    def close(self):
        self.api.close()

    def path(self, group, kind, name=""):
        return f"/{group}/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    def until(self, path, holds):
        ends = time.monotonic() + WAIT_SECONDS
        while not holds(found := self.api.json("GET", path)):
            assert time.monotonic() < ends, (path, found)
            time.sleep(0.2)
        return found

    def until_gone(self, path):
        with contextlib.suppress(ApiError):
            self.until(path, lambda _: False)

    def pods(self):
        """Made, its log read, a command run in it, deleted."""
        where = self.path("api/v1", "pods")
        made = {"metadata": {"name": "p"}, **template("sh", "-c", "echo hello; sleep 10000")}
        made["metadata"]["name"] = "p"
        self.api.json("POST", where, body=made)
        self.until(f"{where}/p", lambda pod: pod["status"].get("phase") == "Running")
        ends = time.monotonic() + WAIT_SECONDS
        while self.api.ask("GET", f"{where}/p/log", accept="*/*").body != b"hello\n":
            assert time.monotonic() < ends, "a log without its line"
            time.sleep(0.1)
        query = {"command": "true", "stdout": "true", "stderr": "true"}
        channels = self.api.websocket(f"{where}/p/exec", query, EXEC)
        while channels.is_open:
            channels.messages()
        channels.close()
        self.api.json("DELETE", f"{where}/p")
        self.until_gone(f"{where}/p")

    def jobs(self):
        where = self.path("apis/batch/v1", "jobs")
        spec = {"completions": 2, "parallelism": 2, "template": template("true", restart="Never")}
        self.api.json("POST", where, body={"metadata": {"name": "j"}, "spec": spec})
        self.until(f"{where}/j", lambda job: job.get("status", {}).get("succeeded") == 2)
        self.api.json("DELETE", f"{where}/j", {"propagationPolicy": "Background"})

    def deployments(self):
        """Grown, rolled over and shrunk."""
        where = self.path("apis/apps/v1", "deployments")
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "d"}},
                "template": template("sleep", "10000", labels={"app": "d"})}  # fmt: skip
        self.api.json("POST", where, body={"metadata": {"name": "d"}, "spec": spec})
        annotated = {"metadata": {"annotations": {"version": "2"}}}
        for change in ({"replicas": 3}, {"template": annotated}, {"replicas": 1}):
            body = json.dumps({"spec": change}).encode()
            kind = "application/merge-patch+json"
            changed = self.api.json("PATCH", f"{where}/d", body=body, content_type=kind)
            self.until(f"{where}/d", lambda one, changed=changed: is_done(one, changed))
        self.api.json("DELETE", f"{where}/d", {"propagationPolicy": "Background"})

    def services(self):
        """With a pod behind it, so that the node has rules and a name for it."""
        pods, where = self.path("api/v1", "pods"), self.path("api/v1", "services")
        made = template("sleep", "10000", labels={"app": "s"})
        made["metadata"]["name"] = "s"
        self.api.json("POST", pods, body=made)
        ports = [{"port": port} for port in range(80, 85)]
        for port in ports:
            port["name"] = f"p{port['port']}"
        spec = {"selector": {"app": "s"}, "ports": ports}
        self.api.json("POST", where, body={"metadata": {"name": "s"}, "spec": spec})
        slices = self.path("apis/discovery.k8s.io/v1", "endpointslices")
        self.until(slices, lambda found: any(one["endpoints"] for one in found["items"]))
        self.api.json("DELETE", f"{where}/s")
        self.api.json("DELETE", f"{pods}/s")

    def custom_kinds(self):
        """A definition, an object of it, and both are gone."""
        group, kinds = f"{self.namespace}.example.com", "/apis/apiextensions.k8s.io/v1"
        name = f"boats.{group}"
        sails = {"sails": {"type": "integer", "minimum": 1}}
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": sails}}}
        version = {"name": "v1", "served": True, "storage": True,
                   "schema": {"openAPIV3Schema": schema}}  # fmt: skip
        names = {"plural": "boats", "singular": "boat", "kind": "Boat"}
        spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
        where = f"{kinds}/customresourcedefinitions"
        self.api.json("POST", where, body={
            "apiVersion": kinds[6:], "kind": "CustomResourceDefinition",
            "metadata": {"name": name}, "spec": spec})  # fmt: skip
        self.until(f"{where}/{name}", is_established)
        boats = self.path(f"apis/{group}/v1", "boats")
        boat = {"apiVersion": f"{group}/v1", "kind": "Boat", "metadata": {"name": "b"},
                "spec": {"sails": 2}}  # fmt: skip
        self.api.json("POST", boats, body=boat)
        self.api.json("DELETE", f"{where}/{name}")
        self.until_gone(f"{where}/{name}")

    def watches(self):
        """A hundred changes of an object while somebody watches."""
        where = self.path("api/v1", "configmaps")
        other = BlockingClient(self.api.connection, timeout_seconds=WAIT_SECONDS)
        made = self.api.json("POST", where, body={"metadata": {"name": "c"}})
        since = made["metadata"]["resourceVersion"]
        seen = other.watch(where, {"resourceVersion": since}, seconds=WAIT_SECONDS)
        for number in range(100):
            made["data"] = {"number": str(number), "more": "x" * self.rng.randrange(2000)}
            made = self.api.json("PUT", f"{where}/c", body=made)
            if not number:
                next(seen)  # it begins with its first event, and the past is soon forgotten
        assert any(obj["data"].get("number") == "99" for _, obj in seen if "data" in obj)
        seen.close()
        other.close()


def is_done(found, changed):
    status, wanted = found.get("status", {}), found["spec"]["replicas"]
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas")]
    is_seen = status.get("observedGeneration", 0) >= changed["metadata"]["generation"]
    return is_seen and counts == [wanted] * 3


def is_established(definition):
    conditions = definition.get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


class Looks:
    """What the process and the machine have now, by name."""

    def __init__(self, process, connection):
        self.process = process
        self.api = BlockingClient(connection, timeout_seconds=60)
        self.network = network_of(process.data_dir)
        self.group = root_of(process.data_dir)

    def close(self):
        self.api.close()

    def look(self):
        proc = Path(f"/proc/{self.process.pid}")
        lines = (proc / "status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        # (os.walk does not mind what goes while it looks.)
        groups = (os.walk(top) for top in Path("/sys/fs/cgroup").glob(f"*{self.group}"))
        mounts = (proc / "mountinfo").read_text().splitlines()
        store = self.process.data_dir.glob("store.db*")
        return {
            "memory, MiB": int(status["VmRSS"].split()[0]) / 1024,
            "descriptors": len(list((proc / "fd").iterdir())),
            "threads": int(status["Threads"]),
            "tasks": self.figure("sampan_event_loop_tasks"),
            "cgroups": sum(1 for below in groups for _ in below),
            "elements of nftables": self.elements(),
            "mounts": sum(str(self.process.data_dir) in line for line in mounts),
            "store, MiB": sum(path.stat().st_size for path in store) / 2**20,
            "objects": self.figure("apiserver_storage_objects"),
        }

    def figure(self, name):
        """The sum over its labels."""
        said = self.api.ask("GET", "/metrics", accept="*/*").body.decode().splitlines()
        lines = [one for one in said if one.startswith((f"{name} ", f"{name}{{"))]
        assert lines, f"nobody shows {name}"
        return sum(float(one.rsplit(" ", 1)[1]) for one in lines)

    def elements(self):
        done = subprocess.run(["nft", "-j", "list", "ruleset"], capture_output=True, text=True)
        found = [one for one in json.loads(done.stdout)["nftables"] for one in one.values()]
        ours = [one for one in found if isinstance(one, dict)
                and one.get("table", "").startswith(f"{self.network.bridge}-")]  # fmt: skip
        return len(ours) + sum(len(one.get("elem", ())) for one in ours)


def soaked(root, given):
    """(seconds, what was there) of each look, what was done, and what went wrong."""
    process = SampanProcess(root, "--runtime", given.runtime)
    counted, over, failed = Counter(), threading.Event(), []
    try:
        process.up()
        process.run("image", "import", str(busybox_archive(root / "image.tar", IMAGE)))
        connection = load(str(process.kubeconfig), {}, "").connection()
        looks, samples = Looks(process, connection), []

        def work(number):
            try:
                with contextlib.closing(Load(connection, given.seed, number, over, counted)) as one:
                    one.run()
            except Exception as error:
                failed.append(error)
                over.set()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(given.clients)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        with contextlib.closing(looks):
            while not samples or (
                not over.wait(LOOK_SECONDS) and time.monotonic() - began < given.minutes * 60
            ):
                samples.append((time.monotonic() - began, looks.look()))
        over.set()
        for thread in threads:
            thread.join()
        if failed:
            failed.append(process.program.tail())
        assert process.stop() == 0
    finally:
        over.set()
        process.reset()
    assert process.leftovers() == {}
    return samples, counted, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--runtime", choices=("native", "cri"), default="native")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--svg", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sampan-soak-") as folder:
        samples, counted, failed = soaked(Path(folder), given)
    hours = [seconds / 3600 for seconds, _ in samples]
    rows = {name: [look[name] for _, look in samples] for name in samples[0][1]}
    warm = min(20 / 60, hours[-1] / 3)
    after = [place for place, hour in enumerate(hours) if hour >= warm]
    fits = {
        name: growth_fit.fitted([hours[at] for at in after], [values[at] for at in after])
        for name, values in rows.items()
    }
    for path in filter(None, (given.csv, given.svg)):
        path.parent.mkdir(exist_ok=True)
    if given.csv:
        with given.csv.open("w", newline="") as file:
            csv.writer(file).writerows([["hours", *rows], *zip(hours, *rows.values(), strict=True)])
    if given.svg:
        given.svg.write_text(growth_fit.svg(hours, rows, warm))
    print(f"{hours[-1] * 60:.0f} minutes, {len(after)} looks after the first {warm * 60:.0f}:")
    print(", ".join(f"{times} {name}" for name, times in sorted(counted.items())))
    print(growth_fit.table(fits))
    for one in failed:
        print(f"FAILED {one}")
    return 0 if not failed and all(fit.is_flat for fit in fits.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
