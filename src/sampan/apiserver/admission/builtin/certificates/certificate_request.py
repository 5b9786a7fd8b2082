"""CSR creation: the server sets the requesting user, groups and extra, never the caller.

Job: spec.username, uid, groups and extra of a CertificateSigningRequest.
"""

from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer

_FIELDS = ("username", "uid", "groups", "extra")


def plugin(_parts: PluginInitializer) -> Steps:
    return Steps(_fill_in)


def _fill_in(attributes: Attributes) -> None:
    if attributes.obj is None:
        return
    spec, user = attributes.obj.setdefault("spec", {}), attributes.user
    for field in _FIELDS:
        spec.pop(field, None)
    spec["username"] = user.name
    if user.uid:
        spec["uid"] = user.uid
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
