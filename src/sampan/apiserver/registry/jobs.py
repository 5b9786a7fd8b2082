"""Jobs: their strategy, with the generated selector.

Job: label the pods of a job with its own uid, and select them by it; label the job like them.
"""

from sampan.api.objects import Obj, name_of, uid_of
from sampan.apiserver.registry.strategy import Strategy, path_getter
from sampan.core.holding import Hold

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


async def label_like_its_pods(job: Obj, _old: Obj | None, dry_run: bool, _hold: Hold) -> None:
    """As upstream defaults a stored job that has no labels, whenever it is read."""
    meta = job["metadata"]
    if not dry_run and not meta.get("labels"):
        labels = ((job["spec"].get("template") or {}).get("metadata") or {}).get("labels")
        meta |= {"labels": dict(labels)} if labels else {}


STRATEGY = Strategy(
    prepare_create=prepare_create,
    allocate=label_like_its_pods,
    fields={"status.successful": path_getter("status", "succeeded")},
    default_propagation="Orphan",
)
