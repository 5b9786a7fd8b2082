"""AlwaysAdmit: admits every request; a no-op, as upstream.

Job: none.
"""

from sampan.apiserver.admission.chain import Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(_parts: PluginInitializer) -> Steps:
    return Steps()
