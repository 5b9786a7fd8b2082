"""Volume expansion: claims that request more than their capacity.

Job: let a volume of ours grow with its claim; say of others that somebody else has to do it.
Invariant: a volume never shrinks, and a claim never says more than its volume has.
"""

from collections.abc import Iterable, Sequence

from sampan.api.objects import Obj, annotations_of, is_deleted, key_of, uid_of
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from sampan.api.rules.storage import LOCAL_PROVISIONER, PROVISIONED_BY, RESIZER
from sampan.api.rules.volumes.in_tree_volumes import IN_TREE, InTree, source_of
from sampan.client.events import reference as reference_to
from sampan.controllers.actions import (
    NOTHING,
    Action,
    Outcome,
    Plan,
    Record,
    merge_patch,
    status_patch,
)
from sampan.controllers.controller import Caches, Controller, View
from sampan.controllers.storage.volume_matching import capacity


def volume_expansion_controller() -> Controller:
    return Controller(
        name="persistentvolume-expander-controller",
        component="volume_expand",
        aliases=("persistentvolume-expander",),
        wakes={PERSISTENT_VOLUME_CLAIMS: _growing_claim},
        planned=_plan_key,
        indices={PERSISTENT_VOLUMES: {}},
        workers=1,
    )


def plan(claim: Obj, volume: Obj) -> Plan:
    wanted = _requests(claim)
    if is_deleted(claim) or (volume["spec"].get("claimRef") or {}).get("uid") != uid_of(claim):
        return NOTHING
    if not capacity((claim.get("status") or {}).get("capacity")) < capacity(wanted):
        return NOTHING
    if source := source_of(volume["spec"]):
        return _waits_for_driver(claim, IN_TREE[source])
    if annotations_of(volume).get(PROVISIONED_BY) != LOCAL_PROVISIONER:
        words = "waiting for an external controller to expand this PVC"
        return Plan([Record(reference_to(claim), "Normal", "ExternalExpanding", words)])
    # A directory is as large as its disk: all there is to change is what the objects say.
    grown: list[Action] = []
    if capacity(volume["spec"].get("capacity")) < capacity(wanted):
        patch = {"spec": {"capacity": {"storage": wanted["storage"]}}}
        grown.append(merge_patch(PERSISTENT_VOLUMES, volume, patch))

    def then(outcomes: Sequence[Outcome]) -> list[Action]:
        if any(outcome.error is not None for outcome in outcomes):
            return []
        status = {**(claim.get("status") or {}), "capacity": {"storage": wanted["storage"]}}
        told = status_patch(PERSISTENT_VOLUME_CLAIMS, claim, status)
        words = "Resize volume succeeded"
        event = Record(reference_to(claim), "Normal", "VolumeResizeSuccessful", words)
        return [event] if told is None else [told, event]

    return Plan(grown, then)


def _waits_for_driver(claim: Obj, plugin: InTree) -> Plan:
    words = "waiting for external resizer to expand the pvc"
    text = f"CSI migration enabled for {plugin.plugin}; {words}"
    actions: list[Action] = [Record(reference_to(claim), "Normal", "ExternalExpanding", text)]
    if annotations_of(claim).get(RESIZER) != plugin.driver:
        marks = {"metadata": {"annotations": {RESIZER: plugin.driver}}}
        actions.append(merge_patch(PERSISTENT_VOLUME_CLAIMS, claim, marks, "status"))
    return Plan(actions)


def _requests(claim: Obj) -> Obj:
    found: Obj = (claim["spec"].get("resources") or {}).get("requests") or {}
    return found


def _growing_claim(_caches: Caches, _old: Obj | None, new: Obj | None) -> Iterable[str]:
    """Bound, and asking for more than it has."""
    if new is None or (new.get("status") or {}).get("phase") != "Bound":
        return ()
    has = capacity(new["status"].get("capacity"))
    return (key_of(new),) if has < capacity(_requests(new)) else ()


async def _plan_key(view: View, key: str) -> Plan:
    claim = view.cache(PERSISTENT_VOLUME_CLAIMS).get(key)
    if claim is None:
        return NOTHING
    volume = view.cache(PERSISTENT_VOLUMES).get(claim["spec"].get("volumeName") or "")
    return NOTHING if volume is None else plan(claim, volume)
