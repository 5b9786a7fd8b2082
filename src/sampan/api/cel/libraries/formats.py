"""Named formats: `format.dns1123Label().validate('x')` gives nothing, or what is wrong.

Job: Kubernetes' library of name and value formats.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable
from datetime import date

from sampan.api.cel.language import cost
from sampan.api.cel.language.errors import EvaluationError
from sampan.api.cel.language.functions import Library
from sampan.api.cel.language.types import opaque_type
from sampan.api.cel.language.values import ABSENT, OptionalValue
from sampan.api.cel.libraries.addresses import is_url
from sampan.api.cel.libraries.times import parse_timestamp
from sampan.api.rules import names
from sampan.api.rules.names import Complaints
from sampan.core.fast_dataclass import dataclass
from sampan.core.patterns import lazy_pattern

_NAME = "kubernetes.NamedFormat"
FORMATS = Library("format", types=(opaque_type(_NAME),))
_UUID = lazy_pattern(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.I)


@dataclass(frozen=True, slots=True)
class Format:
    cel_type = opaque_type(_NAME)
    name: str


def _uri(text: str) -> Complaints:
    return () if is_url(text) else (f'parse "{text}": invalid URI for request',)


def _uuid(text: str) -> Complaints:
    return () if _UUID.fullmatch(text) else ("does not match the UUID format",)


def _byte(text: str) -> Complaints:
    try:
        b64decode(text, validate=True)
    except (NotBase64, ValueError):
        return ("invalid base64",)
    return ()


def _date(text: str) -> Complaints:
    try:
        date.fromisoformat(text)
    except ValueError:
        return ("invalid date",)
    return () if len(text) == 10 else ("invalid date",)


def _datetime(text: str) -> Complaints:
    try:
        parse_timestamp(text.replace("t", "T").replace("z", "Z"))
    except EvaluationError:
        return ("invalid datetime",)
    return ()


def _prefix_rule(rule: Callable[[str], Complaints]) -> Callable[[str], Complaints]:
    """The start of a name that a suffix will follow."""
    return lambda text: rule(re.sub("-$", "a", text))


_RULES: dict[str, Callable[[str], Complaints]] = {
    "dns1123Label": names.dns_label,
    "dns1123LabelPrefix": _prefix_rule(names.dns_label),
    "dns1123Subdomain": names.dns_subdomain,
    "dns1123SubdomainPrefix": _prefix_rule(names.dns_subdomain),
    "dns1035Label": names.dns_1035_label,
    "dns1035LabelPrefix": _prefix_rule(names.dns_1035_label),
    "qualifiedName": names.qualified_name,
    "labelValue": names.label_value,
    "uri": _uri,
    "uuid": _uuid,
    "byte": _byte,
    "date": _date,
    "datetime": _datetime,
}


def _declare(name: str) -> None:
    made = Format(name)

    @FORMATS.function(f"format.{name}", to=_NAME)
    def named() -> Format:
        return made


for _one in _RULES:
    _declare(_one)


@FORMATS.function("format.named", "string", to=f"optional({_NAME})")
def _format_called(name: str) -> OptionalValue:
    return OptionalValue(Format(name)) if name in _RULES else ABSENT


@FORMATS.member(_NAME, "validate", "string", to="optional(list(string))", cost=cost.second_read)
def _validate(form: Format, text: str) -> OptionalValue:
    wrong = _RULES[form.name](text)
    return OptionalValue(list(wrong)) if wrong else ABSENT
