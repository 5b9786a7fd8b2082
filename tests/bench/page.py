"""`make bench-page`: does the page stay fluid while thousands of pods come and go?

Job: simulated nodes full of pods, the overview in a real browser, so many pods a second created and
    as many deleted; print frames per second, the longest frame and how busy the page's own thread
    was (the browser, the cluster and this program share the machine); append them.
"""

import argparse
import asyncio
import itertools
import subprocess
import tempfile
from pathlib import Path

from sampan.api.objects import Obj
from sampan.core.tasks import all_of
from tests.bench.nodes import PODS as PODS_PATH
from tests.bench.nodes import Api
from tests.bench.record import append
from tests.support.parts.browser import Browser, Page, find_browser
from tests.support.parts.sampan_process import SampanProcess, environment, sampan_command

AT_ONCE = 16
TARGET_FRAMES = 30.0
_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "registry.example/app:1"}],
    },
}
_COUNT = """(() => {
  const frames = globalThis.frames_ = {count: 0, longest: 0, began: performance.now(), last: 0};
  const next = (now) => {
    if (frames.last) frames.longest = Math.max(frames.longest, now - frames.last);
    frames.last = now; frames.count += 1; requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})()"""
_COUNTED = "[frames_.count / ((performance.now() - frames_.began) / 1000), frames_.longest]"


def pod(number: int) -> Obj:
    return {**_POD, "metadata": {"name": f"pod-{number}"}}


async def create(api: Api, numbers: range) -> None:
    waiting = iter(numbers)

    async def work() -> None:
        for number in waiting:
            await api.ask("POST", PODS_PATH, pod(number))

    await all_of(work() for _ in range(AT_ONCE))


async def churn(api: Api, first: int, rate: int, seconds: float) -> int:
    """So many come and go in each second, the oldest first; how many came."""
    loop = asyncio.get_running_loop()
    began, turns, made = loop.time(), itertools.count(), 0

    async def work() -> None:
        nonlocal made
        for turn in turns:
            await asyncio.sleep(began + turn / rate - loop.time())
            if loop.time() - began > seconds:
                return
            await api.ask("POST", PODS_PATH, pod(first + turn))
            await api.ask("DELETE", f"{PODS_PATH}/pod-{turn}")
            made += 1

    await all_of(work() for _ in range(AT_ONCE))
    return made


def busy_seconds(page: Page) -> float:
    """Of the thread that the page has for everything."""
    found = page.call("Performance.getMetrics")["metrics"]
    return float(next(item["value"] for item in found if item["name"] == "TaskDuration"))


async def measure(
    cluster: SampanProcess, page: Page, pods: int, rate: int, seconds: float
) -> dict[str, float]:
    api = Api(cluster.kubeconfig)
    try:
        await create(api, range(pods))
        await asyncio.to_thread(
            page.wait_for, f"document.body.innerText.includes('Running {pods}')", 300.0
        )
        page.call("Performance.enable")
        page.evaluate(_COUNT)
        before = busy_seconds(page)
        made = await churn(api, pods, rate, seconds)
        frames, longest = page.evaluate(_COUNTED)
        busy = 100 * (busy_seconds(page) - before) / seconds
        return {
            "page_frames_per_second": frames,
            "page_longest_frame_ms": longest,
            "page_thread_busy_percent": busy,
            "page_pods_per_second": made / seconds,
        }
    finally:
        await api.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--picture", type=Path, default=None)
    given = parser.parse_args()
    program = find_browser()
    assert program is not None, "no chromium"
    root = Path(tempfile.mkdtemp(prefix="sampan-page-"))
    cluster = SampanProcess(root, "--runtime", "simulated", "--nodes", str(given.nodes))
    cluster.up()
    browser = Browser(program)
    try:
        command = [*sampan_command("ui"), "--no-open", "--kubeconfig", str(cluster.kubeconfig)]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(), check=True
        )
        page = browser.page(done.stdout.strip())
        found = asyncio.run(measure(cluster, page, given.pods, given.rate, given.seconds))
        if given.picture:
            page.screenshot(given.picture)
    finally:
        browser.stop()
        cluster.stop()
        cluster.reset()
    for name, value in found.items():
        print(f"{name:<28} {value:8.1f}")
    print(f"target: {TARGET_FRAMES:.0f} frames per second")
    append(found)


if __name__ == "__main__":
    main()
