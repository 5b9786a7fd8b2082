"""Who asks for a certificate is written into the request by the server, never by the caller.

Job: spec.username, uid, groups and extra of a CertificateSigningRequest.
"""

from sampan.api.resources import by_kind
from sampan.apiserver.admission.chain import CREATE, Attributes, Plugin

REQUESTS = by_kind("certificates.k8s.io/v1", "CertificateSigningRequest")
_FIELDS = ("username", "uid", "groups", "extra")


def admit(attributes: Attributes) -> None:
    assert REQUESTS is not None
    if attributes.obj is None or not attributes.is_main(REQUESTS):
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


PLUGIN = Plugin("CertificateRequester", frozenset({CREATE}), mutate=admit)
