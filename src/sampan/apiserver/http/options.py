"""Options of a call, from its query. Pure.

Job: GetOptions, ListOptions, CreateOptions … as upstream's parameter codec and its validation read
    them: what a verb has no use for is not looked at.
Invariant: of a parameter that is there several times the first counts (of dryRun all); an empty
    value is a value, and only an absent one is none.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from sampan.api.apply.managed_fields import manager_errors, patch_errors
from sampan.api.calls import DEFAULT_OPTIONS, Options
from sampan.api.errors import BadRequest, FieldError, invalid, invalid_value, not_supported
from sampan.apiserver.http.request import is_true
from sampan.core.digits import all_digits
from sampan.core.fast_dataclass import replace
from sampan.core.http.query import query_values

MOST_REMEMBERED = 1024  # characters of a query
_NAMES = {
    "create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions",
    "delete": "DeleteOptions", "deletecollection": "DeleteOptions",
}  # fmt: skip
_PROPAGATIONS = ("Foreground", "Background", "Orphan")
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
Values = Mapping[str, Sequence[str]]


def options_of(query: str, verb: str, patch_type: str = "") -> Options:
    """Clients repeat the same few, so they are remembered. Raises BadRequest, Invalid."""
    if len(query) > MOST_REMEMBERED:
        return _options_of.__wrapped__(query, verb, patch_type)
    return _options_of(query, verb, patch_type)


@lru_cache(maxsize=512)
def _options_of(query: str, verb: str, patch_type: str) -> Options:
    given = query_values(query)
    if not given and not patch_type:
        return DEFAULT_OPTIONS
    match verb:
        case "get":
            return Options(resource_version=_text(given, "resourceVersion"))
        case "list" | "watch":
            return _list_options(given)
        case "delete":
            return _delete_options(given, DEFAULT_OPTIONS)
        case "deletecollection":
            return _delete_options(given, _list_options(given))
        case "create" | "update" | "patch":
            return _write_options(given, verb, patch_type)
    return DEFAULT_OPTIONS


def _list_options(given: Values) -> Options:
    timeout = _number(given, "timeoutSeconds")
    return Options(
        resource_version=_text(given, "resourceVersion"),
        resource_version_match=_text(given, "resourceVersionMatch"),
        label_selector=_text(given, "labelSelector"),
        field_selector=_text(given, "fieldSelector"),
        limit=max(0, _number(given, "limit") or 0),  # as upstream: negative is none
        continue_token=_text(given, "continue"),
        timeout_seconds=timeout or 0,
        allow_bookmarks=_truth(given, "allowWatchBookmarks") or False,
        send_initial_events=_truth(given, "sendInitialEvents"),
    )


def _write_options(given: Values, verb: str, patch_type: str) -> Options:
    manager, dry_run = _text(given, "fieldManager"), given.get("dryRun", ())
    validation = _text(given, "fieldValidation")
    force = _truth(given, "force") if verb == "patch" else None
    wrong = patch_errors(patch_type, force, manager) if patch_type else manager_errors(manager)
    wrong += dry_run_errors(dry_run)
    if validation not in _VALIDATIONS:
        wrong.append(not_supported("fieldValidation", validation, _VALIDATIONS))
    if wrong:
        raise invalid(_NAMES[verb], "meta.k8s.io", "", wrong)
    return Options(
        dry_run=bool(dry_run),
        field_manager=manager,
        field_validation=validation or "Warn",
        patch_type=patch_type,
        force=force,
    )


def _delete_options(given: Values, of_list: Options) -> Options:
    grace, orphan = _number(given, "gracePeriodSeconds"), _truth(given, "orphanDependents")
    policy = given["propagationPolicy"][0] if "propagationPolicy" in given else None
    dry_run = given.get("dryRun", ())
    check_delete_options(policy, orphan, dry_run)
    return replace(
        of_list,
        dry_run=bool(dry_run),
        grace_seconds=grace,
        precondition_uid=_text(given, "uid"),
        precondition_resource_version=_text(given, "resourceVersion"),
        propagation=propagation_of(policy, orphan),
    )


def check_delete_options(policy: str | None, orphan: bool | None, dry_run: Sequence[str]) -> None:
    """Of a query or a body. Raises Invalid."""
    wrong: list[FieldError] = []
    if policy is not None and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        wrong.append(invalid_value("propagationPolicy", policy, why))
    if policy is not None and policy not in _PROPAGATIONS:
        wrong.append(not_supported("propagationPolicy", policy, [*_PROPAGATIONS, "nil"]))
    wrong += dry_run_errors(dry_run)
    if wrong:
        raise invalid("DeleteOptions", "meta.k8s.io", "", wrong)


def propagation_of(policy: str | None, orphan: bool | None) -> str:
    if policy is None and orphan is not None:
        return "Orphan" if orphan else "Background"
    return policy or ""


def dry_run_errors(given: Sequence[str]) -> list[FieldError]:
    """The only stage that there is, however often."""
    if all(stage == "All" for stage in given):
        return []
    return [not_supported("dryRun", list(given), ["All"])]


def _text(given: Values, key: str) -> str:
    return given[key][0] if key in given else ""


def _truth(given: Values, key: str) -> bool | None:
    return is_true(given[key][0]) if key in given else None


def _number(given: Values, key: str) -> int | None:
    """Raises BadRequest."""
    if key not in given:
        return None
    text = given[key][0]
    # What int() takes besides (spaces, underscores, other scripts' digits) is none of these.
    if not all_digits(text[1:] if text[:1] in ("-", "+") else text):
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text.lstrip("+-0")) > 19 or not -(2**63) <= int(text) < 2**63:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)
