"""Values as Go writes them: fmt's %v, %#v and %T, and encoding/json.

Job: JSON data → text. Pure.
"""

import json
from typing import Any

from sampan.api.go_quoting import escape_html

_LIST, _MAP = "[]interface {}", "map[string]interface {}"


def go_json(value: Any) -> str:
    """As encoding/json: keys by the alphabet, no spaces, and what HTML would read escaped."""
    match value:
        case str():
            return escape_html(json.dumps(value, ensure_ascii=False))
        case float():
            return _json_float(value)
        case dict():
            pairs = (f"{go_json(key)}:{go_json(value[key])}" for key in sorted(value))
            return f"{{{','.join(pairs)}}}"
        case list():
            return f"[{','.join(map(go_json, value))}]"
    return json.dumps(value)


def go_value(value: Any) -> str:
    """As %v."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return go_float(value)
        case dict():
            return f"map[{' '.join(f'{key}:{go_value(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(go_value, value))}]"
    return str(value)


def go_syntax(value: Any) -> str:
    """As %#v of an interface."""
    if isinstance(value, dict):
        fields = [f"{go_json(key)}:{go_syntax(value[key])}" for key in sorted(value)]
        return f"{_MAP}{{{', '.join(fields)}}}"
    if isinstance(value, list):
        return f"{_LIST}{{{', '.join(map(go_syntax, value))}}}"
    return go_json(value) if value is not None else "interface {}(nil)"


def go_type_name(value: Any) -> str:
    """As %T of an interface."""
    if isinstance(value, dict):
        return _MAP
    if isinstance(value, list):
        return _LIST
    names = {bool: "bool", int: "int64", float: "float64", str: "string"}
    return names.get(type(value), "<nil>")


def internal_type(group: str, kind: str) -> str:
    """As Go names upstream's own type of a kind: `core.Pod`."""
    return f"{group.partition('.')[0] or 'core'}.{kind}"


def go_float(value: float) -> str:
    """As %v: with an exponent from a million on, and below a ten thousandth."""
    digits, power = _shortest(value)
    if -4 <= power < 6:
        return _plain(value, digits, power)
    return _with_exponent(value, digits, power, 2)


def _json_float(value: float) -> str:
    digits, power = _shortest(value)
    if -6 <= power < 21:
        return _plain(value, digits, power)
    return _with_exponent(value, digits, power, 2 if power > 0 else 1)


def _shortest(value: float) -> tuple[str, int]:
    """The fewest digits that say it, and the power of ten of the first one."""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    written = f"{whole}{fraction}"
    digits = written.lstrip("0")
    power = int(exponent or "0") + len(whole) - 1 - (len(written) - len(digits))
    return digits.rstrip("0") or "0", power if digits else 0


def _plain(value: float, digits: str, power: int) -> str:
    sign = "-" if str(value).startswith("-") else ""
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    whole, fraction = digits[: power + 1].ljust(power + 1, "0"), digits[power + 1 :]
    return f"{sign}{whole}{'.' if fraction else ''}{fraction}"


def _with_exponent(value: float, digits: str, power: int, width: int) -> str:
    sign, rest = "-" if value < 0 else "", digits[1:]
    mark = "+" if power > 0 else "-"
    return f"{sign}{digits[0]}{'.' if rest else ''}{rest}e{mark}{abs(power):0{width}}"


def go_label_selector(selector: dict[str, Any] | None) -> str:
    """As %v of a metav1.LabelSelector."""
    if selector is None:
        return "nil"
    labels = "".join(
        f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items())
    )
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{term.get('key')},Operator:{term.get('operator')},"
        f"Values:[{' '.join(term.get('values') or ())}],}},"
        for term in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )
