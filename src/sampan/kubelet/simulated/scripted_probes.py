"""Probes of containers that only pretend: what their pod's annotations, or a scenario, say.

Job: the next scripted result of a probe. `simulated.sampan.dev/readiness-probe: fail,fail,ok` (and
    liveness-probe, startup-probe; `.CONTAINER` at the end for one container only): one word per
    look, the last one stays; without a script every probe succeeds. A command goes to the runtime
    instead, where no script names its probe.
Invariant: looks are counted per container id, so that a restarted container begins anew.
"""

from sampan.api.objects import annotations_of, labels_of, name_of, namespace_of, uid_of
from sampan.core.bounded import Recent
from sampan.kubelet.contracts.runtime import Runtime, RuntimeFailure
from sampan.kubelet.probes.finding import Finding, Probed, ProbeError
from sampan.kubelet.probes.tally import Probe
from sampan.kubelet.simulated.scenario import NOTHING, Scenario
from sampan.kubelet.simulated.script import Script

REMEMBERED = 100_000


class ScriptedCheck:
    def __init__(self, runtime: Runtime, scenario: Scenario = NOTHING) -> None:
        self._runtime, self._scenario = runtime, scenario
        self._looks: Recent[tuple[str, str], int] = Recent(REMEMBERED)

    async def __call__(self, probe: Probe, about: Probed) -> Finding:
        pod = about.pod
        notes = self._scenario.annotations(
            namespace_of(pod), name_of(pod), labels_of(pod), annotations_of(pod), uid_of(pod)
        )
        script = Script(notes, about.container["name"])
        words = [part.strip() for part in script.text(f"{probe.kind}-probe").split(",") if part]
        if not words and "exec" in probe.action:
            return await self._command(probe, about)
        key = (about.id, probe.kind)
        look = self._looks.get(key, 0)
        self._looks[key] = look + 1
        word = words[min(look, len(words) - 1)] if words else "ok"
        if word == "error":
            raise ProbeError("errors by script")
        return Finding(word == "ok", "fails by script" if word != "ok" else "")

    async def _command(self, probe: Probe, about: Probed) -> Finding:
        command = probe.action["exec"].get("command") or []
        try:
            done = await self._runtime.exec_sync(about.id, command, probe.timeout_seconds)
        except RuntimeFailure as error:
            raise ProbeError(str(error)) from error
        return Finding(done.exit_code == 0, done.stdout.decode(errors="replace"))
