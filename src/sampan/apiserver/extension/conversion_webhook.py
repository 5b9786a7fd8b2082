"""ConversionReview: what a conversion webhook is asked, and what is taken of its answer. Pure.

Job: objects → a review; an answer → objects, or why it cannot be used.
Invariant: of metadata only labels and annotations are the webhook's to change.
Invariant: an answer that is not exactly what was asked for is refused whole.
"""

from collections.abc import Sequence
from typing import Any

from sampan.api.objects import Obj, meta_of

GROUP = "apiextensions.k8s.io"
TIMEOUT_SECONDS = 30.0
_CHANGEABLE = ("labels", "annotations")
_SAME = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))


class BadAnswer(Exception):
    """The webhook answered, and cannot be trusted; the text says why."""


def kind_text(obj: Obj) -> str:
    """`example.org/v1, Kind=Song`: how messages name what was to be converted."""
    return f"{obj.get('apiVersion')}, Kind={obj.get('kind')}"


def review_of(objects: Sequence[Obj], api_version: str, uid: str) -> Obj:
    return {
        "kind": "ConversionReview",
        "apiVersion": f"{GROUP}/v1",
        "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": list(objects)},
    }


def converted_of(answer: Obj, objects: Sequence[Obj], api_version: str, uid: str) -> list[Obj]:
    """Raises BadAnswer."""
    found = _converted_objects(answer, uid)
    subject = f"conversion webhook for {kind_text(objects[0])}"
    if len(found) != len(objects):
        raise BadAnswer(f"{subject} returned {len(found)} objects, expected {len(objects)}")
    out = []
    for at, (before, after) in enumerate(zip(objects, found, strict=True)):
        why = _wrong(before, after, api_version)
        if why:
            raise BadAnswer(f"{subject} returned invalid converted object at index {at}: {why}")
        out.append({**after, "metadata": _restore(meta_of(before), meta_of(after))})
    return out


def _converted_objects(answer: Obj, uid: str) -> list[Any]:
    if (answer.get("kind"), answer.get("apiVersion")) != ("ConversionReview", f"{GROUP}/v1"):
        got = f"{answer.get('apiVersion')}, Kind={answer.get('kind')}"
        raise BadAnswer(
            f"expected webhook response of {GROUP}/v1, Kind=ConversionReview, got {got}"
        )
    response = answer.get("response")
    if not isinstance(response, dict):
        raise BadAnswer("no response provided")
    if response.get("uid") != uid:
        raise BadAnswer(f'expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    result = response.get("result") or {}
    status = result.get("status") or ""
    if status != "Success":
        said = result.get("message")
        raise BadAnswer(said or f"response.result.status was '{status}', expected 'Success'")
    found = response.get("convertedObjects") or []
    return found if isinstance(found, list) else []


def _wrong(before: Obj, after: Any, api_version: str) -> str:
    if not isinstance(after, dict) or not isinstance(after.get("metadata"), dict):
        return "missing metadata in converted object"
    if after.get("apiVersion") != api_version:
        return f"invalid apiVersion: expected {api_version}, got {after.get('apiVersion')}"
    if after.get("kind") != before.get("kind"):
        return f"must have the same kind: {after.get('kind')} != {before.get('kind')}"
    for key, word in _SAME:
        one, other = meta_of(after).get(key) or "", meta_of(before).get(key) or ""
        if one != other:
            return f"must have the same {word}: {one} != {other}"
    return ""


def _restore(before: Obj, after: Obj) -> Obj:
    """As it was, but for what may change."""
    kept = {key: value for key, value in before.items() if key not in _CHANGEABLE}
    return kept | {key: after[key] for key in _CHANGEABLE if after.get(key)}
