"""AlwaysAdmit: nothing at all; it is there because upstream has it.

Job: none.
"""

from sampan.apiserver.admission.chain import Steps
from sampan.apiserver.admission.parts import PluginParts


def plugin(_parts: PluginParts) -> Steps:
    return Steps()
