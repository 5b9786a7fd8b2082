"""Jobs: the selector that nobody writes by hand.

Job: label the pods of a job with its own uid, and select them by it. Pure.
"""

from sampan.api.objects import Obj, name_of, uid_of
from sampan.apiserver.registry.strategy import Strategy, path_getter

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"


def prepare_create(job: Obj) -> None:
    """As generateSelector: unless the job says that its selector is its own business."""
    spec = job.setdefault("spec", {})
    if spec.get("manualSelector"):
        return
    uid, name = uid_of(job), name_of(job)
    selector = spec.setdefault("selector", {})
    selector.setdefault("matchLabels", {}).setdefault(CONTROLLER_UID, uid)
    meta = spec.setdefault("template", {}).setdefault("metadata", {})
    labels = meta.setdefault("labels", {})
    labels |= {
        CONTROLLER_UID: uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }


STRATEGY = Strategy(
    prepare_create=prepare_create,
    fields={"status.successful": path_getter("status", "succeeded")},
    default_propagation="Orphan",
)
