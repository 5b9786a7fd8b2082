"""Which plugins run, in which order. As upstream's recommended order.

Job: build the default chain from what the plugins need.
"""

import random

from sampan.apiserver.admission import (
    certificate_request,
    default_toleration_seconds,
    namespace_lifecycle,
    priority,
    service_account,
    taint_nodes_by_condition,
)
from sampan.apiserver.admission.chain import Find, FindAll, Plugin


def default_plugins(
    find: Find, find_all: FindAll, mount_tokens: bool, rng: random.Random
) -> list[Plugin]:
    return [
        namespace_lifecycle.plugin(find),
        service_account.plugin(find, mount_tokens, rng),
        taint_nodes_by_condition.PLUGIN,
        priority.plugin(find, find_all),
        default_toleration_seconds.PLUGIN,
        certificate_request.PLUGIN,
    ]
