"""What the functions of the libraries may cost at worst, by the sizes of what they are given.

Job: the table that the API server's own estimator has; a function that is not in it costs what the
    language says, or one step.
Invariant: these figures decide which rules a definition may have: they are upstream's, also where
    upstream's are odd (a function that is not called on a value is not looked at).
"""

from collections.abc import Sequence
from math import ceil

from sampan.api.cel.language.cost import LIST_COST, REGEX_FACTOR, STRING_FACTOR, STRUCT_COST
from sampan.api.cel.language.estimator import (
    CallEstimate,
    CallEstimator,
    Operand,
    SizeAt,
    search_cost,
)
from sampan.api.cel.language.sizes import LARGEST, UNKNOWN, Size, capped, priced

_Given = Sequence[Operand]
_CHECK_COST = 350_000  # of an authorizer: two of them fit into one expression
_NAME_REGEX = 128
_ADDRESS = Size(4, 16)  # bytes of an address
_FORMAT_NAME = 64
_AT_ONCE = (
    "serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed",
    "reason", "error", "errored", "masked", "prefixLength", "family", "isUnspecified",
    "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "format.named",
    "sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan",
    "compareTo", "add", "sub", "major", "minor", "patch", "getScheme", "getHostname", "getHost",
    "getPort", "getEscapedPath", "getQuery",
)  # fmt: skip
_CHEAP_EQUALITY = frozenset({
    "net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver",
    "kubernetes.authorization.Authorizer", "kubernetes.authorization.PathCheck",
    "kubernetes.authorization.GroupCheck", "kubernetes.authorization.ResourceCheck",
    "kubernetes.authorization.Decision",
})  # fmt: skip


def _fixed(cost: int) -> CallEstimator:
    return lambda _target, _given, _size_at: CallEstimate(cost)


def _read(size: Size, factor: float = STRING_FACTOR) -> int:
    return size.cost(factor)


def _item_size(target: Operand, size_at: SizeAt) -> Size:
    return (size_at((*target.path, "@items")) if target.path else None) or UNKNOWN


def _over_list(target: Operand | None, _given: _Given, size_at: SizeAt) -> CallEstimate | None:
    if target is None:
        return None
    if not target.type.parameters:  # a text
        return CallEstimate(_read(target.size))
    each = 1
    if target.type.parameters[0].name in ("string", "bytes"):
        each += _read(_item_size(target, size_at))
    return CallEstimate(capped(target.size.most * each))


def _of_argument(_target: Operand | None, given: _Given, _size_at: SizeAt) -> CallEstimate | None:
    if len(given) != 1:
        return None
    return CallEstimate(_read(given[0].size), given[0].size)


def _same_length(target: Operand | None, _given: _Given, _size_at: SizeAt) -> CallEstimate | None:
    return None if target is None else CallEstimate(_read(target.size), target.size)


def _replace(target: Operand | None, given: _Given, _size_at: SizeAt) -> CallEstimate | None:
    if target is None or len(given) < 2:
        return None
    text, old, new = target.size, given[0].size, given[1].size
    longest = _replacements(text.most, old.least, new.most, grows=new.most > old.least)
    shortest = _replacements(text.least, old.most, new.least, grows=old.most > new.least)
    return CallEstimate(_read(text, 2 * STRING_FACTOR), Size(shortest, longest))


def _replacements(text: int, old: int, new: int, *, grows: bool) -> int:
    """How long a text becomes when everything that may be replaced in it is."""
    if old == 0:  # the replacement comes between all characters
        return capped(capped(text + 1) * new + text)
    return capped(ceil(text / old) * new) if grows else text


def _split(target: Operand | None, given: _Given, _size_at: SizeAt) -> CallEstimate | None:
    if target is None:
        return None
    most = target.size.most
    if len(given) > 1 and type(given[1].value) is int:
        most = given[1].value % (LARGEST + 1)
    return CallEstimate(_read(target.size, 2 * STRING_FACTOR), Size(0, most))


def _join(target: Operand | None, given: _Given, size_at: SizeAt) -> CallEstimate | None:
    if target is None:
        return None
    count = target.size
    size = count.times(_item_size(target, size_at)) if target.type.parameters else Size(0, 0)
    if given:
        between = Size(max(count.least - 1, 0), max(count.most - 1, 0))
        size = size.plus(given[0].size.times(between))
    return CallEstimate(_read(size), size)


def _find(target: Operand | None, given: _Given, _size_at: SizeAt) -> CallEstimate | None:
    if target is None or not given:
        return None
    return CallEstimate(search_cost(target.size, given[0].size), Size(0, target.size.most))


def _parse_on_value(target: Operand | None, given: _Given, _at: SizeAt) -> CallEstimate | None:
    if target is None or not given:
        return None
    return CallEstimate(_read(given[0].size))


def _address(target: Operand | None, given: _Given, _size_at: SizeAt) -> CallEstimate | None:
    """`ip(text)` is not looked at; `cidr.ip()` is a field."""
    return None if target is None or given else CallEstimate(1)


def _contains_address(is_range: bool) -> CallEstimator:
    def estimate(target: Operand | None, given: _Given, _size_at: SizeAt) -> CallEstimate | None:
        if target is None or not given:
            return None
        cost = _read(_ADDRESS.plus(_ADDRESS))
        if is_range:
            cost += _read(_ADDRESS) + 1
        if given[0].type.name == "string":
            cost += _read(given[0].size)
        return CallEstimate(capped(cost))

    return estimate


def _validate(target: Operand | None, given: _Given, _size_at: SizeAt) -> CallEstimate | None:
    if target is None or not given:
        return None
    return CallEstimate(priced(_read(given[0].size), _NAME_REGEX * REGEX_FACTOR))


def _selector(_target: Operand | None, given: _Given, _size_at: SizeAt) -> CallEstimate | None:
    """A selector is read into requirements, the shortest of which are two characters."""
    if len(given) != 1:
        return None
    count = priced(given[0].size.most, 0.5)
    cost = LIST_COST + _read(given[0].size) + priced(count, LIST_COST + STRUCT_COST)
    return CallEstimate(capped(cost))


def _equals(_target: Operand | None, given: _Given, _size_at: SizeAt) -> CallEstimate | None:
    first, second = given
    if first.type != second.type:
        return None
    if first.type.name in _CHEAP_EQUALITY:
        return CallEstimate(1)
    if first.type.name == "kubernetes.NamedFormat":
        return CallEstimate(priced(_FORMAT_NAME, STRING_FACTOR))
    if first.type.name == "kubernetes.URL":
        return CallEstimate(1 if second.size == UNKNOWN else _read(second.size))
    return None


def _product(factor: int) -> CallEstimator:
    def estimate(_target: Operand | None, given: _Given, _size_at: SizeAt) -> CallEstimate:
        return CallEstimate(capped(given[0].size.times(given[1].size).most * factor + 1))

    return estimate


CALL_ESTIMATES: dict[str, CallEstimator] = {
    **dict.fromkeys(_AT_ONCE, _fixed(1)),
    "check": _fixed(_CHECK_COST),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _over_list),
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _of_argument),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _same_length),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("isIP", "isCIDR", "cidr", "quantity", "isQuantity", "semver", "isSemver",
                     "ip.isCanonical"), _parse_on_value),
    "ip": _address,
    "containsIP": _contains_address(False),
    "containsCIDR": _contains_address(True),
    "validate": _validate,
    "_==_": _equals,
    "sets.contains": _product(1),
    "sets.intersects": _product(1),
    "sets.equivalent": _product(2),
}  # fmt: skip
