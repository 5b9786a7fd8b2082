"""`sampan status`: what runs, where, and what is wrong with it.

Job: collect facts from the data directory, the process and the API; print them as lines or JSON.
"""

import json
import os
import ssl
import sys
import time
from pathlib import Path
from typing import Any

from sampan.api.rules.conditions import is_true
from sampan.client.blocking import BlockingClient, NoAnswer
from sampan.client.kubeconfig import KubeconfigError, load
from sampan.cmd.cluster.data_dir import DataDir, DataDirError, find_data_dir, holder
from sampan.cmd.cluster.releases import BEFORE, KEPT
from sampan.core.fast_dataclass import dataclass
from sampan.version import VERSION, git_version

ASK_SECONDS = 5.0
MANY_PODS = 10_000
MEMORY_PATH = "/sampan/v1/memory"
SOON_SECONDS = 30 * 86400.0


def run(data_dir: str, *, as_json: bool) -> int:
    try:
        data = find_data_dir(data_dir)
    except DataDirError as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    found = facts(data)
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        weighed = found.pop("memory by part", None)
        for name, value in found.items():
            for text in value if isinstance(value, list) else [value]:
                print(f"{name + ':':<14}{text}")
        for line in memory_lines(weighed or {}):
            print(line)
    return 0 if found["state"] == "running" else 3


def memory_lines(weighed: dict[str, Any]) -> list[str]:
    """A table for each process; what is less than a hundredth of it is one line."""
    lines = []
    for process, found in weighed.items():
        whole = found.get("residentBytes") or 0
        parts = found.get("parts") or []
        large = [part for part in parts if 100 * part["bytes"] >= whole]
        small = sum(part["bytes"] for part in parts if part not in large)
        rows = [(part["name"], part["bytes"], part["count"]) for part in large]
        rows += [("smaller parts", small, 0), ("not told apart", found.get("restBytes") or 0, 0)]
        lines += ["", f"memory of {process}: {whole / 2**20:.0f} MiB"]
        for name, heavy, count in rows:
            each = f"  {count} of {heavy / count / 1024:.1f} KiB" if count else ""
            lines.append(f"  {name:<28}{heavy / 2**20:>8.1f} MiB{each}")
    return lines


def facts(data: DataDir) -> dict[str, Any]:
    pid = holder(data)
    found: dict[str, Any] = {
        "state": "running" if pid else "stopped",
        "version": f"{VERSION} ({git_version(data.record().get(KEPT) or BEFORE)})",
        "data": str(data.root),
        "store": _size(data.store),
    }
    warnings: list[str] = []
    if pid:
        found |= _process(pid)
        if parts := _parts(data, pid):
            found["processes"] = parts
        found |= _cluster(data, warnings)
    found["certificates"] = _certificates(data, warnings)
    if warnings:
        found["warnings"] = warnings
    return found


def _size(path: Path) -> str:
    sizes = [item.stat().st_size for item in path.parent.glob(f"{path.name}*") if item.is_file()]
    return f"{sum(sizes) / 2**20:.1f} MiB" if sizes else "not on disk here"


@dataclass(frozen=True, slots=True)
class Usage:
    parent: int
    up_seconds: float
    cpu_seconds: float
    memory_mib: float


def _usage(pid: int) -> Usage | None:
    """From /proc; None where that is not to be had."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = os.sysconf("SC_CLK_TCK")
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return Usage(
            int(fields[1]),
            uptime - int(fields[19]) / ticks,
            (int(fields[11]) + int(fields[12])) / ticks,
            pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        )
    except (OSError, IndexError, ValueError):
        return None


def _process(pid: int) -> dict[str, Any]:
    found = _usage(pid)
    if found is None:
        return {"process": str(pid)}
    share = 100 * found.cpu_seconds / max(found.up_seconds, 1)
    return {
        "process": f"{pid}, up {_span(found.up_seconds)}",
        "memory": f"{found.memory_mib:.0f} MiB",
        "cpu": f"{found.cpu_seconds:.1f} s ({share:.0f}% of a core since the start)",
    }


def _parts(data: DataDir, parent: int) -> list[str]:
    """Those of `sampan up --processes` that live; none where one process is all of it."""
    try:
        noted: dict[str, Any] = json.loads(data.processes_file.read_text())
    except (FileNotFoundError, ValueError):
        return []
    lines = []
    for part, entry in noted.items():
        found = _usage(entry["pid"])
        if found is None or found.parent != parent:
            continue  # of an earlier life, or being started again
        line = f"{part} {entry['pid']}, up {_span(found.up_seconds)}, {found.memory_mib:.0f} MiB"
        again = f", started again {entry['restarts']}×" if entry["restarts"] else ""
        lines.append(f"{line}, {found.cpu_seconds:.1f} s of CPU{again}")
    return lines


def _span(seconds: float) -> str:
    from sampan.api.rules.durations import human_duration

    return human_duration(seconds)


def _cluster(data: DataDir, warnings: list[str]) -> dict[str, Any]:
    try:
        connection = load(str(data.kubeconfig), {}, "/").connection()
        api = BlockingClient(connection, timeout_seconds=ASK_SECONDS)
        nodes = api.json("GET", "/api/v1/nodes").get("items") or []
        pods = _pods(api)
    except (KubeconfigError, NoAnswer) as error:
        warnings.append(f"the API does not answer: {error}")
        return {}
    ready = [node for node in nodes if is_true(node, "Ready")]
    for node in nodes:
        if node not in ready:
            warnings.append(f"node {node['metadata']['name']} is not ready")
    try:
        weighed = api.json("GET", MEMORY_PATH)["processes"]
    except (KeyError, NoAnswer) as error:
        weighed = {}
        warnings.append(f"the memory was not weighed: {error}")
    return {
        "address": connection.server,
        "kubeconfig": str(data.kubeconfig),
        "nodes": f"{len(ready)} of {len(nodes)} ready",
        "pods": pods,
        "memory by part": weighed,
    }


def _pods(api: BlockingClient) -> str:
    """How many in which phase; of very many only how many."""
    first = api.json("GET", "/api/v1/pods?limit=1")
    more = (first.get("metadata") or {}).get("remainingItemCount") or 0
    if more >= MANY_PODS:
        return str(more + 1)
    phases: dict[str, int] = {}
    for pod in api.json("GET", "/api/v1/pods").get("items") or []:
        phase = (pod.get("status") or {}).get("phase") or "Unknown"
        phases[phase] = phases.get(phase, 0) + 1
    return ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items())) or "none"


def _certificates(data: DataDir, warnings: list[str]) -> str:
    ends: dict[str, float] = {}
    for path in sorted(data.pki.glob("*.crt")):
        try:
            # The standard library reads certificates of files only by this door.
            text = ssl._ssl._test_decode_cert(str(path))["notAfter"]  # type: ignore[attr-defined]  # private, and all that Python has
            ends[path.stem] = ssl.cert_time_to_seconds(text)
        except (OSError, ValueError, KeyError):
            warnings.append(f"{path} is no certificate")
    if not ends:
        return "none"
    name, first = min(ends.items(), key=lambda pair: pair[1])
    left = first - time.time_ns() / 1e9
    if left < SOON_SECONDS:
        warnings.append(
            f"certificate {name} ends in {_span(max(left, 0))}: restart sampan to renew it"
        )
    return f"{len(ends)}, the first ({name}) ends in {_span(max(left, 0))}"
