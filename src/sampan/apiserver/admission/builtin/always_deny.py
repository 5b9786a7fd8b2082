"""AlwaysDeny: nothing may be changed any more.

Job: refuse every write and every connection.
"""

from sampan.apiserver.admission.chain import Attributes, Steps, rejection
from sampan.apiserver.admission.parts import PluginParts


def plugin(_parts: PluginParts) -> Steps:
    return Steps(validate=_deny)


def _deny(attributes: Attributes) -> None:
    raise rejection(attributes, "admission control is denying all modifications")
