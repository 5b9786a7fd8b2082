"""Selection by a verb's flags: the builder, set up as most verbs do it.

Job: one call for what a verb's flags and arguments say; targets for verbs that ask by themselves.
"""

from collections.abc import Iterator

from sampan.api.objects import Obj
from sampan.cli.flags import Values
from sampan.cli.objects.builder import NOTHING_GIVEN, Builder
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.infos import Found, Validate, list_pages
from sampan.cli.session import Session
from sampan.core.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A resource, and one name of it or all."""

    resource: ApiResource
    name: str = ""


def targets(session: Session, words: list[str], values: Values | None = None) -> list[Target]:
    """What the words name: `TYPE[,TYPE] [NAME …]` or `TYPE/NAME …`; `values` may select."""
    builder = Builder(session).in_namespace(everywhere=_everywhere(values))
    if values is not None:
        builder.labels(labels_flag(values)).fields(_fields(values))
    builder.requires_object = False
    builder.arguments(words, allow_empty_selector=True)
    result = builder.do()
    if builder.label_selector is not None or builder.field_selector is not None:
        return [Target(resource) for resource in result.resources]
    return [Target(info.resource, info.name) for info in result.infos()]


def builder_of(
    session: Session,
    values: Values,
    words: list[str],
    *,
    all_objects: bool = False,
    continue_on_error: bool = True,
) -> Builder:
    """-f, -l, --field-selector, --all, -A and arguments, as the verb has these flags."""
    builder = Builder(session, continue_on_error=continue_on_error)
    builder.in_namespace(everywhere=_everywhere(values))
    if "filename" in values:
        builder.files(values)
    builder.labels(labels_flag(values)).fields(_fields(values))
    builder.arguments(words, allow_empty_selector=all_objects)
    builder.latest = True
    return builder


def live(
    session: Session,
    values: Values,
    words: list[str],
    *,
    all_objects: bool = False,
    nothing: str = NOTHING_GIVEN,
) -> Iterator[Found]:
    """The objects as the server has them, one by one; a failure takes the place of its object."""
    builder = builder_of(session, values, words, all_objects=all_objects)
    yield from builder.do(nothing).visit()


def from_files(
    session: Session,
    values: Values,
    *,
    validate: Validate | None = None,
    selector: str = "",
    continue_on_error: bool = True,
) -> Iterator[Found]:
    """The objects of the manifests, with the namespace that they will be in."""
    builder = Builder(session, continue_on_error=continue_on_error).in_namespace()
    builder.files(values).labels(selector)
    builder.validate = validate
    yield from builder.do().visit()


def namespace_of(session: Session, values: Values) -> str:
    """Empty: all of them."""
    return "" if values["all-namespaces"] else session.namespace


def query_of(values: Values) -> dict[str, str]:
    query = {"labelSelector": labels_flag(values).strip(), "fieldSelector": _fields(values).strip()}
    return {name: text for name, text in query.items() if text}


def labels_flag(values: Values) -> str:
    flag = values.flags.get("selector")
    return values.text("selector") if flag is not None and flag.short == "l" else ""


def _fields(values: Values) -> str:
    return values.text("field-selector") if "field-selector" in values else ""


def _everywhere(values: Values | None) -> bool:
    return bool(values is not None and values.get("all-namespaces"))


def list_objects(
    session: Session, resource: ApiResource, namespace: str, query: dict[str, str]
) -> list[Obj]:
    """All objects, page by page."""
    return [item for page in list_pages(session, resource, namespace, query) for item in page]
