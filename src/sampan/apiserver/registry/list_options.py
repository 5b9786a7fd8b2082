"""ListOptions of lists and watches: which go together. Pure.

Job: the rules between resourceVersion, resourceVersionMatch, continue and sendInitialEvents.
"""

from sampan.api.calls import Options
from sampan.api.errors import (
    ApiError,
    FieldError,
    field_forbidden,
    invalid,
    invalid_value,
    not_supported,
)
from sampan.core.digits import all_digits

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
    if not all_digits(text):
        why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise _bad_options([invalid_value("resourceVersion", text, why)])
    if len(text) > 20 or int(text) > LARGEST_REVISION:
        why = f'strconv.ParseUint: parsing "{text}": value out of range'
        raise _bad_options([invalid_value("resourceVersion", text, why)])
    return int(text)


def _bad_options(causes: list[FieldError]) -> ApiError:
    return invalid("ListOptions", "meta.k8s.io", "", causes)
