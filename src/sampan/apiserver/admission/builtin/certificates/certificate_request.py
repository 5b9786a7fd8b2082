"""Who asks for a certificate is written into the request by the server, never by the caller.

Job: spec.username, uid, groups and extra of a CertificateSigningRequest.
"""

from sampan.apiserver.admission.chain import Attributes, Steps
from sampan.apiserver.admission.parts import PluginParts

_FIELDS = ("username", "uid", "groups", "extra")


def plugin(_parts: PluginParts) -> Steps:
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
