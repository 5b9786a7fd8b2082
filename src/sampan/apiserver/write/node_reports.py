"""Many nodes of this process tell that they are well: one call for all of them.

Job: set the times of the conditions that a node itself keeps, and the images where it has others;
    say which have to go the ordinary way.
Invariant: each is authorized as its node's own patch of its status, written by compare-and-swap at
    a revision of its own with the entries of managedFields that this patch would leave, and told to
    every watcher.
Invariant: where anybody has something to say about such a patch (a webhook, a policy, an audit
    log), all of them go the ordinary way.
"""

from collections.abc import Collection, Mapping, Sequence

from sampan.api.calls import Call
from sampan.api.errors import ApiError
from sampan.api.objects import Obj, is_deleted, status_of, time_text
from sampan.api.resources import NODES
from sampan.api.rules.nodes import KUBELET_CONDITIONS
from sampan.apiserver.admission.chain import UPDATE
from sampan.apiserver.authn.user import component
from sampan.apiserver.authz.calls import authorize
from sampan.apiserver.registry.generic import PLAIN, Stale
from sampan.apiserver.write.lease_renewals import INDIFFERENT
from sampan.apiserver.write.parts import Parts
from sampan.core.tasks import all_of

Images = Mapping[str, Sequence[Obj] | None]  # node → its images; None: those that it shows


class NodeReports:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def report(self, images: Images, agent: str) -> Collection[str]:
        """Those that have to go the ordinary way. `agent`: as whose writes these are noted."""
        if not INDIFFERENT.issuperset(self._parts.admission.concerned(UPDATE, NODES)):
            return images.keys()
        now, left = self._parts.clock.now(), list[str]()
        times = _Times(now, time_text(now), agent)
        await all_of(self._report(name, new, times, left) for name, new in images.items())
        return left

    async def _report(
        self, name: str, images: Sequence[Obj] | None, times: "_Times", left: list[str]
    ) -> None:
        parts = self._parts
        item = parts.registry.kind(NODES).items.get(name)
        if item is None or is_deleted(item.obj):
            left.append(name)
            return
        old, user = item.obj, component(f"system:node:{name}")
        call = Call("patch", NODES, "", name, "status", agent=times.agent)
        status = {**status_of(old), "conditions": times.told(old)}
        if images is not None:
            status["images"] = images
        new = {**old, "metadata": {**old["metadata"]}, "status": status}
        try:
            await authorize(parts.authorization, user, call)
            parts.ownership.updated(user, call, new, old, times.now)
            await parts.registry.replace(NODES, item, new, PLAIN)
        except (ApiError, Stale):
            left.append(name)


class _Times:
    def __init__(self, now: float, text: str, agent: str) -> None:
        self.now, self._text, self.agent = now, text, agent

    def told(self, node: Obj) -> list[Obj]:
        return [
            {**each, "lastHeartbeatTime": self._text}
            if each["type"] in KUBELET_CONDITIONS
            else each
            for each in status_of(node).get("conditions") or ()
        ]
