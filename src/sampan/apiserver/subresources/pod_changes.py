"""pods/NAME/ephemeralcontainers and pods/NAME/resize.

Job: take the whole pod, by PUT or PATCH, and keep only what the subresource is for.
Invariant: nothing else of the pod changes, neither spec nor metadata nor status.
"""

from sampan.api import features
from sampan.api.calls import Answer, Call
from sampan.api.defaults.pod_level import default_late
from sampan.api.errors import FieldError
from sampan.api.objects import Obj, copy_of, meta_of
from sampan.api.resources import Resource
from sampan.api.validation.pod import validate_ephemeral_containers, validate_resized
from sampan.api.validation.pod_placement import put
from sampan.apiserver.authn.user import User
from sampan.apiserver.registry.metadata import bump_generation
from sampan.apiserver.write.request_scope import RequestScope
from sampan.apiserver.write.update import modify_by_body

_EPHEMERAL = "ephemeralContainers"
_OF_THIS_WRITE = ("resourceVersion", "managedFields")


async def set_ephemeral_containers(scope: RequestScope, user: User, call: Call) -> Answer:
    """`kubectl debug`: containers are added to a pod that runs."""

    def prepare(new: Obj, old: Obj) -> None:
        added = (new.get("spec") or {}).get("ephemeralContainers")
        _keep(new, old)
        new["spec"] = {key: item for key, item in old["spec"].items() if key != _EPHEMERAL}
        if added:  # an empty list is none: kept, it would be a change that nobody may make
            new["spec"][_EPHEMERAL] = added
        bump_generation(new, old)

    def validate(_resource: Resource, new: Obj, old: Obj, _warnings: list[str]) -> list[FieldError]:
        errors: list[FieldError] = []
        validate_ephemeral_containers(new, old, errors)
        return errors

    return await modify_by_body(scope, user, call, prepare, validate)


async def resize(scope: RequestScope, user: User, call: Call) -> Answer:
    """What containers ask for and may use; the node makes it so, or says why not."""

    def prepare(new: Obj, old: Obj) -> None:
        apply_resize(new, old)
        _keep(new, old)
        bump_generation(new, old)

    def validate(_resource: Resource, new: Obj, old: Obj, _warnings: list[str]) -> list[FieldError]:
        errors: list[FieldError] = []
        validate_resized(new, old, errors)
        return errors

    return await modify_by_body(scope, user, call, prepare, validate)


def apply_resize(new: Obj, old: Obj) -> None:
    """The old spec with the new resources. Containers that were added, removed or renamed stay as
    they are sent: validation names them."""
    spec = new.get("spec") or {}
    lists = ("containers", "initContainers")
    if any(_names(spec, kind) != _names(old["spec"], kind) for kind in lists):
        return
    new["spec"] = {**old["spec"]}
    if features.enabled("InPlacePodLevelResourcesVerticalScaling"):
        put(new["spec"], "resources", copy_of(spec.get("resources")))
    if features.enabled("PodLevelResourcesFixDefaulting") and old["spec"].get("resources"):
        # A client that knows nothing of them does not take them away.
        new["spec"].setdefault("resources", copy_of(old["spec"]["resources"]))
    for kind in lists:
        if old["spec"].get(kind):
            pairs = zip(old["spec"][kind], spec[kind], strict=True)
            new["spec"][kind] = [_with_resources(was, given) for was, given in pairs]
    if new["spec"].get("resources") and features.enabled("PodLevelResourcesFixDefaulting"):
        default_late(new["spec"])


def _names(spec: Obj, kind: str) -> list[str]:
    return [item.get("name") or "" for item in spec.get(kind) or ()]


def _with_resources(was: Obj, given: Obj) -> Obj:
    new = {**was, "resources": copy_of(given.get("resources") or {})}
    if given.get("resizePolicy"):
        new["resizePolicy"] = copy_of(given["resizePolicy"])
    return new


def _keep(new: Obj, old: Obj) -> None:
    meta = meta_of(new)
    own = {key: meta[key] for key in _OF_THIS_WRITE if key in meta}
    new["metadata"] = {**copy_of(meta_of(old)), **own}
    new["status"] = old.get("status") or {}
