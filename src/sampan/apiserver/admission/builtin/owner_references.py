"""OwnerReferencesPermissionEnforcement: changing owners takes the right to delete the object.

Job: ask for the right to delete, and for blockOwnerDeletion the right to finalize the owner.
"""

from collections.abc import Awaitable

from sampan.api.objects import Obj, meta_of
from sampan.apiserver.admission.chain import Attributes, Steps, rejection
from sampan.apiserver.admission.plugin_initializer import PluginInitializer
from sampan.apiserver.authz.chain import Attributes as Asked


def plugin(initializer: PluginInitializer) -> Steps:
    authorization, kinds = initializer.authorization, initializer.registry.kinds

    async def check(attributes: Attributes, changed: list[Obj]) -> None:
        user, resource = attributes.user, attributes.resource
        delete = Asked(
            user, "delete", resource.group, resource.plural, "", attributes.namespace,
            attributes.name,
        )  # fmt: skip
        if not (await authorization.decide(delete))[0]:
            why = "cannot set an ownerRef on a resource you can't delete"
            raise rejection(attributes, why)
        for item in changed:
            owner = kinds.by_kind(item.get("apiVersion") or "", item.get("kind") or "")
            if not item.get("blockOwnerDeletion") or owner is None:
                continue
            asked = Asked(
                user, "update", owner.group, owner.plural, "finalizers",
                attributes.namespace if owner.namespaced else "", item.get("name") or "",
            )  # fmt: skip
            if not (await authorization.decide(asked))[0]:
                why = (
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you "
                    "can't set finalizers on"
                )
                raise rejection(attributes, why)

    def validate(attributes: Attributes) -> Awaitable[None] | None:
        new = meta_of(attributes.obj or {}).get("ownerReferences") or []
        old = meta_of(attributes.old or {}).get("ownerReferences") or []
        changed = [item for item in new if item not in old]
        return check(attributes, changed) if changed else None

    return Steps(validate=validate)
