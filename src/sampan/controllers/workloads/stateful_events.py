"""The events of a StatefulSet, in upstream's words.

Job: what is told of pods and claims that were made, deleted or changed. Pure.
"""

from collections.abc import Sequence

from sampan.api.objects import Obj, name_of
from sampan.api.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from sampan.client.events import reference as reference_to
from sampan.controllers.actions import Create, Delete, Outcome, Record
from sampan.controllers.workloads.stateful_step import Step


def pod_events(owner: Obj, outcomes: Sequence[Outcome]) -> list[Record]:
    events: list[Record] = []
    for outcome in outcomes:
        action = outcome.action
        if not isinstance(action, Create | Delete) or action.resource != PODS:
            continue
        if outcome.error is None and outcome.result is None:
            continue  # it was there already, or gone
        verb = "create" if isinstance(action, Create) else "delete"
        name = name_of(action.obj) if isinstance(action, Create) else action.name
        error = outcome.error.message if outcome.error is not None else ""
        events.append(_pod_event(owner, verb, name, error))
    return events


def claim_events(owner: Obj, step: Step, outcomes: Sequence[Outcome]) -> list[Record]:
    """Of claims, and of the pods that could not be made for want of them."""
    pods = {
        name_of(made.obj): name_of(item.pod)
        for item in step.creations
        for made in item.claims
        if isinstance(made, Create)
    }
    events: list[Record] = []
    for outcome in outcomes:
        action = outcome.action
        if not isinstance(action, Create) or action.resource != PERSISTENT_VOLUME_CLAIMS:
            continue
        claim = name_of(action.obj)
        pod = pods.get(claim) or _pod_of_claim(owner, claim)
        if outcome.error is not None:
            why = outcome.error.message
            text = (
                f"Create Claim {claim} for Pod {pod} in StatefulSet {name_of(owner)} failed error: "
            )
            events.append(_event(owner, "Warning", "FailedCreate", text + why))
            if claim in pods:
                events.append(
                    _pod_event(owner, "create", pod, f"failed to create PVC {claim}: {why}")
                )
        elif outcome.result is not None:
            text = f"Create Claim {claim} Pod {pod} in StatefulSet {name_of(owner)} success"
            events.append(_event(owner, "Normal", "SuccessfulCreate", text))
    return events


def failed_creation(owner: Obj, pod: str, leaving: Sequence[str]) -> Record:
    """Of a pod whose claims are on their way out."""
    errors = [f"pvc {claim} is being deleted" for claim in leaving]
    why = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return _pod_event(owner, "create", pod, why)


def updated_pod(owner: Obj, pod: Obj) -> Record:
    return _pod_event(owner, "update", name_of(pod), "")


def conflicting_controller(owner: Obj, claim: Obj) -> Record:
    text = (
        f"PersistentVolumeClaim {name_of(claim)} has a conflicting OwnerReference that acts as a "
        "manging controller, the retention policy is ignored for this claim"
    )
    return _event(owner, "Warning", "ConflictingController", text)


def _pod_of_claim(owner: Obj, claim: str) -> str:
    return f"{name_of(owner)}-{claim.rpartition('-')[2]}"


def _pod_event(owner: Obj, verb: str, pod: str, error: str) -> Record:
    text = f"{verb.capitalize()} Pod {pod} in StatefulSet {name_of(owner)}"
    if error:
        reason = f"Failed{verb.capitalize()}"
        return _event(owner, "Warning", reason, f"{text} failed error: {error}")
    return _event(owner, "Normal", f"Successful{verb.capitalize()}", f"{text} successful")


def _event(owner: Obj, kind: str, reason: str, message: str) -> Record:
    return Record(reference_to(owner), kind, reason, message)
