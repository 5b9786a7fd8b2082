"""runtime/monitor.py: the end of conmon is the end of its container."""

import asyncio
import gc
import subprocess
import sys
import weakref

from sampan.runtime.monitor import ConmonFiles, Monitor


class Container:
    """Knows its monitor, which tells it of its end."""

    monitor: Monitor
    is_over = False

    def end(self):
        self.is_over = True


def test_the_end_is_told_once_and_leaves_no_cycle(tmp_path):
    async def story(conmon):
        container = Container()
        container.monitor = Monitor("c1", ConmonFiles(tmp_path))
        container.monitor.watch(container.end)
        conmon.stdin.close()
        async with asyncio.timeout(60):
            await container.monitor.ended.wait()
        assert container.is_over
        return weakref.ref(container)

    program = "import sys; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program, "c1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as conmon:
        conmon.stdout.readline()  # its arguments are seen a moment after it was begun
        for name in ("pid", "conmon.pid"):
            (tmp_path / name).write_text(str(conmon.pid))
        (tmp_path / "exits").mkdir()
        (tmp_path / "exits" / "c1").write_text("0")
        gc.disable()
        try:
            assert asyncio.run(story(conmon))() is None, "nobody has to look for it"
        finally:
            gc.enable()
