"""What a Service may be called: a label that begins with a letter, or, relaxed, any label.

Job: the rule of a release, and whether an object goes by the relaxed one already. Pure.
"""

from collections.abc import Iterable

from sampan.api import features
from sampan.api.rules import names


def service_name(value: str) -> names.Complaints:
    return names.dns_label(value) if _is_relaxed() else names.dns_1035_label(value)


def name_rule(stored: Iterable[str]) -> names.NameRule:
    """`stored`: names that an object has already; where one is only good for the relaxed rule, that
    is the object's."""
    if _is_relaxed() or any(
        names.dns_1035_label(name) and not names.dns_label(name) for name in stored
    ):
        return names.dns_label
    return names.dns_1035_label


def _is_relaxed() -> bool:
    return features.enabled("RelaxedServiceNameValidation")
