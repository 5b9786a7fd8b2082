"""The forms that names, label keys, ports and the like may have, and what is wrong with a bad one.

Job: from a text or number to the sentences that say what is wrong with it; none where it is good.
Invariant: no function raises, whatever the text.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from sampan.core.patterns import lazy_pattern

# What is wrong with a value, in upstream's words; empty where nothing is.
Complaints = tuple[str, ...]
NameRule = Callable[[str], Complaints]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"
_PERCENT = "[0-9]+%"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"

_LABEL_FORM = lazy_pattern(_LABEL)
_SUBDOMAIN_FORM = lazy_pattern(_SUBDOMAIN)
_WILDCARD_FORM = lazy_pattern(_WILDCARD)
_LABEL_1035_FORM = lazy_pattern(_LABEL_1035)
_QUALIFIED_FORM = lazy_pattern(_QUALIFIED)
_LABEL_VALUE_FORM = lazy_pattern(_LABEL_VALUE)
_CONFIG_KEY_FORM = lazy_pattern(_CONFIG_KEY)
_HEADER_FORM = lazy_pattern(_HEADER)
_PERCENT_FORM = lazy_pattern(_PERCENT)
_HTTP_PATH_FORM = lazy_pattern(_HTTP_PATH)
_PORT_CHARSET_FORM = lazy_pattern("[-a-z0-9]+")
_LETTER_FORM = lazy_pattern("[a-z]")
_PRINTABLE_ENV_FORM = lazy_pattern(r"[ -<>-~]+")


def size_of(text: str) -> int:
    """Lengths are counted in bytes, as Go counts them."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def too_many_bytes(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def too_many_characters(limit: int) -> str:
    """Names of DNS say so, and count bytes all the same."""
    return f"must be no more than {limit} characters"


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def regex_complaint(message: str, pattern: str, *examples: str) -> str:
    if not examples:
        return f"{message} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_COMPLAINT = regex_complaint(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and"
    " must start and end with an alphanumeric character",
    _LABEL, "my-name", "123-abc",
)  # fmt: skip
_SUBDOMAIN_COMPLAINT = regex_complaint(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character",
    _SUBDOMAIN, "example.com",
)  # fmt: skip
_LABEL_1035_COMPLAINT = regex_complaint(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an"
    " alphabetic character, and end with an alphanumeric character",
    _LABEL_1035, "my-name", "abc-123",
)  # fmt: skip
_WILDCARD_COMPLAINT = regex_complaint(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which"
    " must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric"
    " character",
    _WILDCARD, "*.example.com",
)  # fmt: skip
_QUALIFIED_COMPLAINT = regex_complaint(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character",
    _QUALIFIED, "MyName", "my.name", "123-abc",
)  # fmt: skip
_LABEL_VALUE_COMPLAINT = regex_complaint(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character",
    _LABEL_VALUE, "MyValue", "my_value", "12345",
)  # fmt: skip
_CONFIG_KEY_COMPLAINT = regex_complaint(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY, "key.name", "KEY_NAME", "key-name",
)  # fmt: skip


def dns_label(value: str) -> Complaints:
    if _LABEL_FORM.fullmatch(value) and len(value) <= 63:
        return ()
    found = [too_many_characters(63)] if size_of(value) > 63 else []
    if not _LABEL_FORM.fullmatch(value):
        found.append(
            "must not contain dots" if _SUBDOMAIN_FORM.fullmatch(value) else _LABEL_COMPLAINT
        )
    return tuple(found)


def dns_subdomain(value: str) -> Complaints:
    if len(value) <= 253 and _SUBDOMAIN_FORM.fullmatch(value):
        return ()
    found = [too_many_characters(253)] if size_of(value) > 253 else []
    if not _SUBDOMAIN_FORM.fullmatch(value):
        found.append(_SUBDOMAIN_COMPLAINT)
    return tuple(found)


def dns_1035_label(value: str) -> Complaints:
    found = [too_many_characters(63)] if size_of(value) > 63 else []
    if not _LABEL_1035_FORM.fullmatch(value):
        found.append(_LABEL_1035_COMPLAINT)
    return tuple(found)


def wildcard_subdomain(value: str) -> Complaints:
    found = [too_many_bytes(253)] if size_of(value) > 253 else []
    if not _WILDCARD_FORM.fullmatch(value):
        found.append(_WILDCARD_COMPLAINT)
    return tuple(found)


def qualified_name(value: str) -> Complaints:
    """Label keys, annotation keys, taint keys, resource names: `[prefix/]name`."""
    if len(value) <= 63 and _QUALIFIED_FORM.fullmatch(value):
        return ()
    # The same few keys come with every object; what is too long to be one is not worth keeping.
    long = len(value) > 317
    found = _qualified_name.__wrapped__(value) if long else _qualified_name(value)
    if not found or not _has_own_words():
        return found
    return tuple(
        item.replace("a qualified name must", "a valid label key must", 1) for item in found
    )


def _has_own_words() -> bool:
    """Of labels. Names are looked at by every command, the tables of versions by few: reading these
    takes as long as a verb's own start."""
    from sampan.api import features

    return features.changed("LabelWords")


label_key = qualified_name


@lru_cache(maxsize=4096)
def _qualified_name(value: str) -> Complaints:
    parts = value.split("/")
    if len(parts) > 2:
        return (
            f"a qualified name {_QUALIFIED_COMPLAINT} with an optional DNS subdomain prefix and"
            " '/' (e.g. 'example.com/MyName')",
        )
    found: list[str] = []
    if len(parts) == 2:
        prefix = parts[0]
        wrong = dns_subdomain(prefix) if prefix else ("must be non-empty",)
        found.extend(f"prefix part {item}" for item in wrong)
    name = parts[-1]
    if not name:
        found.append("name part must be non-empty")
    elif size_of(name) > 63:
        found.append(f"name part {too_many_bytes(63)}")
    if not _QUALIFIED_FORM.fullmatch(name):
        found.append(f"name part {_QUALIFIED_COMPLAINT}")
    return tuple(found)


def are_label_values(values: Sequence[str]) -> bool:
    """All of them, of which a selector may have a hundred thousand: no call of ours for each."""
    if len(values) == 1:
        return not label_value(values[0])
    return all(map(_LABEL_VALUE_FORM.fullmatch, values)) and max(map(len, values), default=0) <= 63


def label_value(value: str) -> Complaints:
    if len(value) <= 63 and _LABEL_VALUE_FORM.fullmatch(value):
        return ()
    told = too_many_bytes if _has_own_words() else too_many_characters
    found = [told(63)] if size_of(value) > 63 else []
    if not _LABEL_VALUE_FORM.fullmatch(value):
        found.append(_LABEL_VALUE_COMPLAINT)
    return tuple(found)


def is_label(key: str, value: str) -> bool:
    """Whether there is nothing to complain about."""
    return len(key) <= 317 and len(value) <= 63 and _is_label_pair(key, value)


@lru_cache(maxsize=4096)
def _is_label_pair(key: str, value: str) -> bool:
    """A pod's labels come with each of its writes."""
    return not qualified_name(key) and not label_value(value)


def env_name(value: str) -> Complaints:
    """Any printable ASCII but `=` (RelaxedEnvironmentVariableValidation)."""
    if _PRINTABLE_ENV_FORM.fullmatch(value):
        return ()
    if not value:
        return ("environment variable name must be non-empty",)
    return (
        "a valid environment variable name must consist only of printable ASCII characters other"
        " than '='",
    )


def config_key(value: str) -> Complaints:
    found = [too_many_bytes(253)] if size_of(value) > 253 else []
    if not _CONFIG_KEY_FORM.fullmatch(value):
        found.append(_CONFIG_KEY_COMPLAINT)
    if value == ".":
        found.append("must not be '.'")
    elif value == "..":
        found.append("must not be '..'")
    elif value.startswith(".."):
        found.append("must not start with '..'")
    return tuple(found)


def header_name(value: str) -> Complaints:
    if _HEADER_FORM.fullmatch(value):
        return ()
    message = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return (regex_complaint(message, _HEADER, "X-Header-Name"),)


def percent(value: str) -> Complaints:
    if _PERCENT_FORM.fullmatch(value):
        return ()
    message = "a valid percent string must be a numeric string followed by an ending '%'"
    return (regex_complaint(message, _PERCENT, "1%", "93%"),)


def port_number(value: int) -> Complaints:
    return () if 1 <= value <= 65535 else (between(1, 65535),)


def port_name(value: str) -> Complaints:
    found = [too_many_characters(15)] if size_of(value) > 15 else []
    if not _PORT_CHARSET_FORM.fullmatch(value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _LETTER_FORM.search(value):
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return tuple(found)


def user_id(value: int) -> Complaints:
    return () if 0 <= value <= 0x7FFFFFFF else (between(0, 0x7FFFFFFF),)


def path_segment(value: str) -> Complaints:
    """Names that only have to fit into a URL: RBAC's."""
    if value in (".", ".."):
        return (f"may not be '{value}'",)
    return tuple(f"may not contain '{bad}'" for bad in ("/", "%") if bad in value)


def http_path(value: str) -> Complaints:
    return (
        () if _HTTP_PATH_FORM.fullmatch(value) else (regex_complaint("Invalid path", _HTTP_PATH),)
    )


def any_name(value: str) -> Complaints:
    return ()


def as_generated(rule: NameRule, prefix: str) -> Complaints:
    """A generateName is checked as if its trailing dash were followed by a letter."""
    if len(prefix) > 1 and prefix.endswith("-"):
        prefix = prefix[:-2] + "a"
    return rule(prefix)
