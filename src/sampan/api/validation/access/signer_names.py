"""Names of signers, and what may be said to them.

Job: what must hold of a signerName, of the name of a ClusterTrustBundle, and of the annotations
    that a pod has for its signer.
"""

from sampan.api.errors import FieldError, invalid_value, required_value, too_long
from sampan.api.go_quoting import quoted
from sampan.api.rules import names
from sampan.api.validation.metadata import ANNOTATIONS_LIMIT_BYTES

Errors = list[FieldError]
_LONGEST_DOMAIN = 253
_LONGEST = 253 + 1 + 63 + 1 + 253
DAY_SECONDS = 24 * 3600
KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
LEAST_SECONDS, MOST_SECONDS = 3600, 91 * DAY_SECONDS


def validate_signer_name(name: str, path: str, errors: Errors) -> None:
    """A domain and a path in it: `example.com/clients`."""
    if not name:
        errors.append(required_value(path))
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errors.append(invalid_value(path, name, why))
        return
    if names.size_of(domain) > _LONGEST_DOMAIN:
        errors.append(too_long(path, _LONGEST_DOMAIN))
    _validate_segment(domain, names.dns_label, path, errors)
    if "." not in domain:
        why = "should be a domain with at least two segments separated by dots"
        errors.append(invalid_value(path, domain, why))
    _validate_segment(rest, names.dns_subdomain, path, errors)
    if names.size_of(name) > _LONGEST:
        errors.append(too_long(path, _LONGEST))


def _validate_segment(segment: str, rule: names.NameRule, path: str, errors: Errors) -> None:
    for label in segment.split("."):
        wrong = rule(label)
        if wrong:  # what else is wrong would read the same
            errors += [
                invalid_value(path, segment, f"validating label {quoted(label)}: {why}")
                for why in wrong
            ]
            return


def longest_seconds(signer: str) -> int:
    """Kubernetes' own signers give certificates for a day at most."""
    domain = signer.partition("/")[0]
    own = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return DAY_SECONDS if own else MOST_SECONDS


def bundle_name_rule(signer: str) -> names.NameRule:
    """Of a ClusterTrustBundle: its name begins with its signer's, where it has one."""

    def rule(name: str) -> names.Complaints:
        if not signer:
            if ":" in name:
                return ('ClusterTrustBundle without signer name must not have ":" in its name',)
            return names.dns_subdomain(name)
        prefix = signer.replace("/", ":") + ":"
        if not name.startswith(prefix):
            return (
                f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}",
            )
        return names.dns_subdomain(name.removeprefix(prefix))

    return rule


def signer_of_bundle_name(name: str) -> str:
    """The signer that a name speaks of; empty: of none."""
    return name.rpartition(":")[0].replace(":", "/")


def validate_user_annotations(annotations: dict[str, str], path: str, errors: Errors) -> None:
    total = 0
    for key, value in annotations.items():
        total += names.size_of(key) + names.size_of(value or "")
        shown = key.lower()
        if not shown:
            errors.append(required_value(path))
            continue
        wrong = names.label_key(shown)
        errors += [invalid_value(path, shown, why) for why in wrong]
        if not wrong and "/" not in shown:
            why = 'must be a domain-prefixed key (such as "acme.io/foo")'
            errors.append(invalid_value(path, shown, why))
    if total > ANNOTATIONS_LIMIT_BYTES:
        errors.append(too_long(path, ANNOTATIONS_LIMIT_BYTES))
