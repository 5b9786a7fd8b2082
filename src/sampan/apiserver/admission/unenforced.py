"""Admission policies in CEL are stored, and that is all: whoever writes one is told so.

Job: a warning on every write of a policy or binding that nobody acts on yet.
"""

from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.parts import PluginParts


def plugin(_parts: PluginParts) -> Steps:
    return Steps(validate=_warn)


def _warn(attributes: Attributes) -> None:
    kind = attributes.resource.kind
    attributes.warnings.append(f"{kind} is stored, but not enforced: CEL is not supported yet")
