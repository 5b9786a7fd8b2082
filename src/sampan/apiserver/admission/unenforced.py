"""Admission policies in CEL are stored, and that is all: whoever writes one is told so.

Job: a warning on every write of a policy or binding that nobody acts on yet.
"""

from sampan.apiserver.admission.chain import CREATE, UPDATE, Attributes, Plugin

_GROUP = "admissionregistration.k8s.io"
KINDS = frozenset(
    (_GROUP, f"{mode}AdmissionPolicy{binding}")
    for mode in ("Validating", "Mutating")
    for binding in ("", "Binding")
)


def _warn(attributes: Attributes) -> None:
    if not attributes.subresource:
        kind = attributes.resource.kind
        attributes.warnings.append(f"{kind} is stored, but not enforced: CEL is not supported yet")


PLUGIN = Plugin("UnenforcedPolicies", frozenset({CREATE, UPDATE}), validate=_warn, kinds=KINDS)
