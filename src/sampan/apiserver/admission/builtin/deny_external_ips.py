"""DenyServiceExternalIPs: no service gets an external IP that it does not have already.

Job: refuse new entries of spec.externalIPs.
"""

from sampan.apiserver.admission.chain import Attributes, Steps, rejection
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def plugin(_parts: PluginInitializer) -> Steps:
    return Steps(validate=_validate)


def _validate(attributes: Attributes) -> None:
    new = attributes.obj or {}
    had = set(((attributes.old or {}).get("spec") or {}).get("externalIPs") or ())
    if set((new.get("spec") or {}).get("externalIPs") or ()) - had:
        raise rejection(attributes, "Use of external IPs is denied by admission control.")
