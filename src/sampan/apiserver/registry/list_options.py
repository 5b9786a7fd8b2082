"""ListOptions of lists and watches: which go together. Pure.

Job: the rules between resourceVersion, resourceVersionMatch, continue and sendInitialEvents.
"""

from sampan.api.calls import Call, Options
from sampan.api.errors import (
    ApiError,
    Failure,
    FieldError,
    field_forbidden,
    invalid,
    invalid_value,
    not_supported,
)
from sampan.core.digits import all_digits
from sampan.core.fast_dataclass import replace

LARGEST_REVISION = 2**64 - 1


def check_list_options(options: Options, watch: bool) -> None:
    """The rules between resourceVersion, resourceVersionMatch, continue and sendInitialEvents."""
    match, revision = options.resource_version_match, options.resource_version
    wrong = []
    if watch:
        wrong += _wrong_with_watch(options)
    elif match:
        if options.continue_token:
            wrong.append(
                field_forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden when continue is provided",
                )
            )
        if not revision:
            wrong.append(
                field_forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                )
            )
        if match not in ("Exact", "NotOlderThan"):
            wrong.append(
                not_supported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""])
            )
        elif match == "Exact" and revision == "0":
            wrong.append(
                field_forbidden(
                    "resourceVersionMatch",
                    'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
                )
            )
    if not watch and options.send_initial_events is not None:
        wrong.append(
            field_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
        )
    if wrong:
        raise _bad_options(wrong)


def check_listing(call: Call) -> None:
    """Of a list or a watch; by the old path a watch says what a list says. Raises Invalid."""
    if call.verb == "watch" and not call.options.watch_path:
        check_list_options(with_watch_defaults(call.options), watch=True)
    else:
        check_list_options(call.options, watch=False)


def _wrong_with_watch(options: Options) -> list[FieldError]:
    match, initial = options.resource_version_match, options.send_initial_events
    path, wrong = "resourceVersionMatch", []
    if initial is not None and match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        wrong.append(field_forbidden(path, why))
    if match and initial is None:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        wrong.append(field_forbidden(path, why))
    if match and match != "NotOlderThan":
        wrong.append(not_supported(path, match, ["NotOlderThan"]))
    if match and options.continue_token:
        why = "resourceVersionMatch is forbidden when continue is provided"
        wrong.append(field_forbidden(path, why))
    return wrong


def revision_number(text: str) -> int:
    """Raises Failure: as upstream, which takes what is none for a failure of its own."""
    wrong = revision_complaint(text)
    if wrong:
        raise Failure(wrong)
    return int(text)


def revision_complaint(text: str) -> str:
    if not all_digits(text):
        why = "invalid syntax"
    elif len(text.lstrip("0")) > 20 or int(text) > LARGEST_REVISION:
        why = "value out of range"
    else:
        return ""
    parsing = f'strconv.ParseUint: parsing "{text}": {why}'
    return str(invalid_value("resourceVersion", text, parsing))


def with_watch_defaults(options: Options) -> Options:
    """Who watches from now on and says nothing else is sent what is there first."""
    if options.send_initial_events is not None or options.resource_version_match:
        return options
    if options.resource_version not in ("", "0"):
        return options
    return replace(options, send_initial_events=True, resource_version_match="NotOlderThan")


def _bad_options(causes: list[FieldError]) -> ApiError:
    return invalid("ListOptions", "meta.k8s.io", "", causes)
