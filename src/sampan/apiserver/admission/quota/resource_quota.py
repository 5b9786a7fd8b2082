"""ResourceQuota: the plugin.

Job: the way to quota_charges.py, which is loaded by the first quota that there is.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from sampan.api.resources import RESOURCE_QUOTAS
from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

if TYPE_CHECKING:
    from sampan.apiserver.admission.quota.quota_charges import Quotas


def plugin(initializer: PluginInitializer) -> Steps:
    kind, limited = (
        initializer.registry.kind(RESOURCE_QUOTAS),
        initializer.settings.limited_resources,
    )
    made: list[Quotas] = []

    def quotas() -> "Quotas":
        if not made:
            from sampan.apiserver.admission.quota.quota_charges import Quotas

            made.append(Quotas(initializer.registry, limited))
        return made[0]

    def mutate(attributes: Attributes) -> None:
        if attributes.resource is RESOURCE_QUOTAS:
            quotas().mutate(attributes)

    def validate(attributes: Attributes) -> Awaitable[None] | None:
        return quotas().validate(attributes)

    return Steps(mutate, validate, None if limited else kind)
