"""AlwaysDeny: denies every write.

Job: refuse every write and every connection.
"""

from sampan.apiserver.admission.chain import Attributes, Steps, rejection
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(_parts: PluginInitializer) -> Steps:
    return Steps(validate=_deny)


def _deny(attributes: Attributes) -> None:
    raise rejection(attributes, "admission control is denying all modifications")
