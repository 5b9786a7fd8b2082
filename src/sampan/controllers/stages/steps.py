"""Steps of a Stage, as writes to the API.

Job: Stage and object → the actions of its steps, in their order. Pure.
Invariant: what is made of a template is about the very object that it was rendered for.
Invariant: after a deletion nothing but events follows.
"""

from collections.abc import Callable

from sampan.api.errors import AlreadyExists, NotFound
from sampan.api.go_template.execution import Template
from sampan.api.objects import Obj, meta_of, name_of, namespace_of, uid_of
from sampan.api.resources import NODES, PODS, Resource
from sampan.api.strict_yaml import first_document
from sampan.client.contract import PatchType
from sampan.client.events import reference
from sampan.controllers.actions import Action, Create, Patch, Record, deletion
from sampan.controllers.stages.stage import (
    Applied,
    Deleted,
    Finalizers,
    Patched,
    Stage,
    StageEvent,
    Step,
    finalizer_operations,
)
from sampan.controllers.stages.template_functions import Surroundings, functions

ResourceOf = Callable[[str, str], Resource | None]  # by apiVersion and kind
_TYPES: dict[str, PatchType] = {
    "json": "json", "merge": "merge", "strategic": "strategic", "apply": "apply",
}  # fmt: skip


def actions_of(
    stage: Stage, resource: Resource, obj: Obj, around: Surroundings, resource_of: ResourceOf
) -> list[Action]:
    """Raises TemplateError, and ValueError where a template gives what is no patch."""
    found: list[Action] = []
    is_deleted = False
    for step in stage.steps:
        if not is_deleted or isinstance(step, StageEvent):
            found += _actions(step, resource, obj, around, resource_of)
        is_deleted = is_deleted or isinstance(step, Deleted)
    return found


def _actions(
    step: Step, resource: Resource, obj: Obj, around: Surroundings, resource_of: ResourceOf
) -> list[Action]:
    match step:
        case StageEvent(type_, reason, message):
            return [Record(reference(obj), type_, reason, message)]
        case Finalizers():
            operations = finalizer_operations(meta_of(obj).get("finalizers") or (), step)
            return [_patch(resource, obj, operations, "json")] if operations else []
        case Patched():
            return [_patched(step, resource, obj, around)]
        case Applied():
            return _applied(step, obj, around, resource_of)
        case Deleted():
            return [deletion(resource, obj, propagation=None, grace_seconds=0)]


def _patch(
    resource: Resource, obj: Obj, patch: Obj | list[Obj], type_: PatchType, subresource: str = ""
) -> Patch:
    return Patch(
        resource, namespace_of(obj), name_of(obj), patch, type_, subresource, settled=(NotFound,)
    )


def _patched(step: Patched, resource: Resource, obj: Obj, around: Surroundings) -> Patch:
    written = _rendered(step.template, obj, around)
    if step.type == "json":
        operations = written if isinstance(written, list) else None
        if operations is None or not all(isinstance(each, dict) for each in operations):
            raise ValueError("the template gives no list of operations")
        under = f"/{step.root}" if step.root else ""
        rooted = [{**each, "path": f"{under}{each.get('path', '')}"} for each in operations]
        return _patch(resource, obj, rooted, "json", step.subresource)
    whole = {step.root: written} if step.root else written
    if not isinstance(whole, dict):
        raise ValueError("the template gives no object")
    by_itself = "strategic" if resource in (NODES, PODS) else "merge"
    meta = {**(whole.get("metadata") or {}), "uid": uid_of(obj)}
    patch = {**whole, "metadata": meta}
    return _patch(resource, obj, patch, _TYPES[step.type or by_itself], step.subresource)


def _applied(
    step: Applied, obj: Obj, around: Surroundings, resource_of: ResourceOf
) -> list[Action]:
    written = _rendered(step.template, obj, around)
    if not isinstance(written, dict) or not isinstance(written.get("metadata"), dict):
        raise ValueError("the template gives no object with metadata")
    resource = resource_of(str(written.get("apiVersion")), str(written.get("kind")))
    if resource is None:
        raise ValueError(f"nobody serves {written.get('apiVersion')} {written.get('kind')}")
    namespace = (namespace_of(written) or namespace_of(obj)) if resource.namespaced else ""
    if namespace:
        written = {**written, "metadata": {**written["metadata"], "namespace": namespace}}
    patch = Patch(
        resource, namespace, name_of(written), written, _TYPES[step.type], step.subresource
    )
    if step.subresource or step.type == "apply":
        return [patch]
    return [Create(resource, written, settled=(AlreadyExists,)), patch]


def _rendered(template: Template, obj: Obj, around: Surroundings) -> object:
    return first_document(template.rendered(obj, functions(around)))
