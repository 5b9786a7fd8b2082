"""Which objects a command is about: kubectl's resource builder.

Job: arguments, selectors and files to objects, one by one, with kubectl's checks and words.
Invariant: what is wrong with the arguments is said before anything is asked of the server.
Invariant: an object that is not there, in a namespace that is not there, is the namespace's fault.
"""

from collections.abc import Callable, Iterator, Sequence

from sampan.api.errors import ApiError
from sampan.api.objects import Obj, labels_of
from sampan.cli.errors import CliError, ConfigInvalid, Several, raise_all
from sampan.cli.flags import Values
from sampan.cli.objects import manifests
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.objects.infos import (
    PAGE,
    Form,
    Found,
    Info,
    Validate,
    get_object,
    info_of,
    items_of,
    list_answers,
    map_object,
)
from sampan.cli.session import Session
from sampan.client.blocking import NoAnswer
from sampan.core.fast_dataclass import dataclass

NOTHING_GIVEN = (
    "You must provide one or more resources by argument or filename.\n"
    "Example resource specifications include:\n"
    "   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n   '<resource> <name>'\n   '<resource>'"
)
_MAPPING_TRIES = 4  # how often kubectl asks what a type is before it gives up


class Builder:
    """Collects what was said, in any order; `do` makes a Result of it."""

    def __init__(self, session: Session, *, continue_on_error: bool = False) -> None:
        self._session, self.continue_on_error = session, continue_on_error
        self._failures: list[Exception] = []
        self._sources: list[manifests.Source] = []
        self._types: list[str] = []
        self._names: list[str] = []
        self._tuples: list[tuple[str, str]] = []
        self.label_selector: str | None = None
        self.field_selector: str | None = None
        self._is_all = False
        self.namespace = ""
        self._all_namespaces = False
        self.requires_namespace = False
        self._is_single_type, self.latest, self.requires_object = False, False, True
        self.is_local = False
        self.typed = False  # only what kubectl has a Go type for
        self.stdin_in_use = False
        self.validate: Validate | None = None
        self.subresource, self.chunk = "", PAGE
        self.form = Form()
        self._expansions = 0  # types that kubectl looks up as categories first

    def in_namespace(self, *, everywhere: bool = False) -> "Builder":
        """Of the flags and the context; `everywhere` is -A."""
        self._all_namespaces = everywhere
        self.namespace = "" if everywhere else self._session.namespace
        return self

    def files(self, values: Values) -> "Builder":
        """-f, -k and -R. A namespace that is given is required of what they hold."""
        try:
            self._sources += manifests.sources(
                self._session, values, stdin_in_use=self.stdin_in_use
            )
        except Several as several:
            self._failures += several.failures
        self.requires_namespace = self._session.namespace_is_given
        return self

    def labels(self, selector: str) -> "Builder":
        text = selector.strip()
        if text and self._is_all:
            self.fail(
                f"found non-empty label selector \"{selector}\" with previously set 'all' "
                "parameter. "
            )
        elif text:
            self.label_selector = text
        return self

    def fields(self, selector: str) -> "Builder":
        text = selector.strip()
        if text and self._is_all:
            self.fail(
                f"found non-empty field selector \"{text}\" with previously set 'all' parameter. "
            )
        elif text:
            self.field_selector = text
        return self

    def all(self, is_all: bool) -> "Builder":
        if is_all and (self.label_selector is not None or self.field_selector is not None):
            self.fail("setting 'all' parameter but found a non empty selector. ")
        else:
            self._is_all = is_all
        return self

    def types(self, *types: str) -> "Builder":
        self._types += types
        return self

    def single_type(self) -> "Builder":
        self._is_single_type = True
        return self

    def names(self, kind: str, words: list[str]) -> "Builder":
        """Names of one kind, unless a word says another one: `TYPE/NAME`."""
        for word in words:
            try:
                pair = split_name(word)
            except CliError as error:
                self._failures.append(error)
                return self
            if pair is None and not kind:
                self.fail(f'the argument "{word}" must be RESOURCE/NAME')
            else:
                self._tuples.append(pair or (kind, word))
        return self

    def arguments(self, words: list[str], *, allow_empty_selector: bool = False) -> "Builder":
        """`TYPE[,TYPE] [NAME …]` or `TYPE/NAME …`."""
        words = _normalized(words)
        slashes = sum("/" in word for word in words)
        if slashes:
            try:
                self._tuples += _pairs(words, slashes)
            except CliError as error:
                self._failures.append(error)
            return self
        if not words:
            return self
        kinds = self._without_categories(words[0])
        self._types += kinds
        self._names += words[1:]
        if len(words) == 1 and self.label_selector is None and allow_empty_selector:
            self.label_selector = ""
        return self

    def do(self, nothing: str = NOTHING_GIVEN) -> "Result":
        """Raises what is wrong with what was said."""
        raise_all(self._failures)
        if self._is_all:
            self.label_selector = ""
        if self._sources:
            return self._by_sources()
        if self.label_selector is not None or self.field_selector is not None:
            return self._by_selector()
        if self._tuples:
            return self._by_tuples()
        if self._names:
            return self._by_names()
        if self._types:
            for kind in self._types:
                self.mapping(kind)
            raise CliError("resource(s) were provided, but no name was specified")
        raise CliError(nothing)

    def mapping(self, kind: str) -> ApiResource:
        try:
            return self._session.discovery.find(kind)
        except ConfigInvalid as error:
            raise Several([error]) from error
        except NoAnswer as error:
            self._session.unreachable(error, self._expansions + _MAPPING_TRIES)
            raise

    def fail(self, why: str) -> None:
        self._failures.append(CliError(why))

    def _without_categories(self, word: str) -> list[str]:
        kinds: list[str] = []
        for kind in dict.fromkeys(word.split(",")):
            self._expansions += 1
            try:
                members = self._session.discovery.of_category(kind)
            except ConfigInvalid as error:
                raise Several([error]) from error
            except NoAnswer:
                members = []  # the mapping tells it
            kinds += [member.qualified for member in members] or [kind]
        return kinds

    def _by_sources(self) -> "Result":
        if self._types:
            raise CliError(
                "when paths, URLs, or stdin is provided as input, you may not specify resource "
                "arguments as well"
            )
        if self._names:
            raise CliError("name cannot be provided when a path is specified")
        if self._tuples:
            raise CliError("resource/name arguments cannot be provided when a path is specified")
        matches = _matcher(self.label_selector)
        visits = [self._visit_source(source, matches) for source in self._sources]
        is_single = len(self._sources) == 1 and self._sources[0].is_alone
        return Result(self, visits, is_single=is_single, of_sources=True)

    def _visit_source(
        self, source: manifests.Source, matches: "Callable[[Obj], bool] | None"
    ) -> "Iterator[Found | _OfSource]":
        for manifest in source.manifests():
            try:
                if self.validate is not None:
                    self.validate(self._session, manifest)
                info = map_object(
                    self._session, manifest, local=self.is_local, typed=self.typed,
                    default_namespace=self.namespace, enforced=self.requires_namespace,
                )  # fmt: skip
            except CliError as error:
                yield _OfSource(error)
                continue
            for item in info:
                one: Found | _OfSource = item
                if isinstance(item, Info) and self.latest:
                    one = self._latest(item)
                if matches is None or not isinstance(one, Info) or matches(one.obj):
                    yield one

    def _latest(self, info: Info) -> "Found | _OfSource":
        if not info.name:
            return info
        one = info.resource
        if one.namespaced and not info.namespace:
            what = f"{one.group}/{one.version}, Resource={one.plural}"
            return _OfSource(CliError(f'no namespace set on resource {what} "{info.name}"'))
        try:
            return get_object(
                self._session, info.resource, info.namespace, info.name, source=info.source,
                form=self.form,
            )  # fmt: skip
        except (ApiError, CliError) as error:
            return _OfSource(error)

    def _by_selector(self) -> "Result":
        if self._names:
            raise CliError("name cannot be provided when a selector is specified")
        if self._tuples:
            raise CliError(
                "selectors and the all flag cannot be used when passing resource/name arguments"
            )
        if not self._types:
            raise CliError("at least one resource must be specified to use a selector")
        if self.subresource:
            raise CliError("subresource cannot be used when bulk resources are specified")
        resources = self._resources()
        query = {}
        if self.label_selector:
            query["labelSelector"] = self.label_selector
        if self.field_selector:
            query["fieldSelector"] = self.field_selector
        query["limit"] = str(self.chunk)
        visits = [self._visit_list(resource, query) for resource in resources]
        return Result(self, visits, resources=resources, of_sources=True)

    def _visit_list(self, resource: ApiResource, query: dict[str, str]) -> Iterator[Found]:
        namespace = self.namespace
        for answer in list_answers(self._session, resource, namespace, query, self.form):
            if self.typed:
                _require_registered(resource.api_version, resource.kind, list_of=True)
            if answer.get("kind") == "Table":
                yield Info(resource, namespace if resource.namespaced else "", "", answer)
                continue
            for obj in items_of(resource, answer):
                yield info_of(resource, obj, namespace)

    def _resources(self) -> list[ApiResource]:
        if len(self._types) > 1 and self._is_single_type:
            raise CliError("you may only specify a single resource type")
        found: dict[tuple[str, str], ApiResource] = {}
        for kind in self._types:
            resource = self.mapping(kind)
            found.setdefault((resource.api_version, resource.kind), resource)
        return list(found.values())

    def _by_tuples(self) -> "Result":
        if self._types:
            raise CliError(
                "you may not specify individual resources and bulk resources in the same call"
            )
        mappings = {kind: self.mapping(kind) for kind, _ in self._tuples}
        if self._is_single_type and len({one.qualified for one in mappings.values()}) > 1:
            raise CliError("you may only specify a single resource type")
        pairs = [(mappings[kind], name) for kind, name in self._tuples]
        return self._by_pairs(pairs)

    def _by_names(self) -> "Result":
        if not self._types:
            raise CliError("you must provide a resource and a resource name together")
        if len(self._types) > 1:
            raise CliError("you must specify only one resource")
        resource = self._resources()[0]
        return self._by_pairs([(resource, name) for name in self._names])

    def _by_pairs(self, pairs: list[tuple[ApiResource, str]]) -> "Result":
        for resource, _ in pairs:
            if resource.namespaced and not self.namespace:
                raise CliError(
                    "a resource cannot be retrieved by name across all namespaces"
                    if self._all_namespaces
                    else "namespace may not be empty when retrieving a resource by name"
                )
        visits = [self._visit_name(resource, name) for resource, name in pairs]
        resources = list(dict.fromkeys(resource for resource, _ in pairs))
        return Result(self, visits, resources=resources, is_single=len(pairs) == 1)

    def _visit_name(self, resource: ApiResource, name: str) -> Iterator[Found]:
        if not self.requires_object:
            namespace = self.namespace if resource.namespaced else ""
            yield Info(resource, namespace, name, {})
            return
        yield get_object(
            self._session, resource, self.namespace, name, subresource=self.subresource,
            form=self.form,
        )  # fmt: skip


class Result:
    """What a command is about."""

    def __init__(
        self,
        builder: Builder,
        visits: "Sequence[Iterator[Found | _OfSource]]",
        *,
        resources: list[ApiResource] | None = None,
        is_single: bool = False,
        of_sources: bool = False,
    ) -> None:
        self._builder, self._visits = builder, visits
        self._of_sources = of_sources  # what fails is told as a failure of its source
        self.resources = resources or []
        self.count = len(visits)  # of names, types or files
        self.is_single = is_single  # one object is meant, and printed by itself

    def visit(self) -> Iterator[Found]:
        """Every object, one by one. With `continue_on_error` a failure takes the place of its
        object (and of the rest of its source); else the first one is raised."""
        of_sources: list[Exception] = []
        for visit in self._visits:
            while True:
                try:
                    found = next(visit)
                except StopIteration:
                    break
                except (ApiError, CliError) as error:
                    found = _OfSource(error) if self._of_sources else error
                if isinstance(found, Info) and self._builder.typed and not found.source:
                    found = _typed(found)
                if isinstance(found, _OfSource):
                    of_sources.append(found.error)
                    found = found.error
                    if self._builder.continue_on_error:
                        continue
                if isinstance(found, Exception) and not self._builder.continue_on_error:
                    raise found
                yield found
        if of_sources:
            yield Several(of_sources)

    def infos(self) -> list[Info]:
        """All of them; raises every failure."""
        every = list(self.visit())
        found = [item for item in every if isinstance(item, Info)]
        failures = [item for item in every if isinstance(item, Exception)]
        raise_all(failures)
        return found


@dataclass(frozen=True, slots=True)
class _OfSource:
    """A failure of a file or a list, which kubectl tells together with others of its kind."""

    error: Exception


def _typed(info: Info) -> Found:
    """Only what kubectl has a Go type for."""
    try:
        _require_registered(info.resource.api_version, info.resource.kind)
    except CliError as error:
        return error
    return info


def _require_registered(version: str, kind: str, *, list_of: bool = False) -> None:
    """Raises CliError."""
    from sampan.cli.objects.typed import is_registered, unregistered

    if not is_registered(version, kind):
        raise unregistered(version, f"{kind}List" if list_of else kind)


def split_name(word: str) -> tuple[str, str] | None:
    """`TYPE/NAME`; None for a word without a slash."""
    if "/" not in word:
        return None
    parts = word.split("/")
    if len(parts) != 2:
        raise CliError("arguments in resource/name form may not have more than one slash")
    kind, name = parts
    if not kind or not name or len(dict.fromkeys(kind.split(","))) != 1:
        raise CliError("arguments in resource/name form must have a single resource and name")
    return kind, name


def _pairs(words: list[str], slashes: int) -> list[tuple[str, str]]:
    if slashes != len(words):
        raise CliError(
            "there is no need to specify a resource type as a separate argument when passing "
            "arguments in resource/name form (e.g. 'kubectl get resource/<resource_name>' "
            "instead of 'kubectl get resource resource/<resource_name>'"
        )
    return [pair for word in words if (pair := split_name(word)) is not None]


def _normalized(words: list[str]) -> list[str]:
    """`a,b x` is `a/x b/x`."""
    if len(words) < 2:
        return list(words)
    kinds = list(dict.fromkeys(words[0].split(",")))
    if len(kinds) < 2:
        return list(words)
    return [f"{kind}/{name}" for kind in kinds for name in words[1:]]


def _matcher(selector: str | None) -> "Callable[[Obj], bool] | None":
    if not selector:
        return None
    from sampan.api.rules.selectors import SelectorError, parse_label_selector

    try:
        parsed = parse_label_selector(selector)
    except SelectorError as error:
        raise CliError(f'the provided selector "{selector}" is not valid: {error}') from error
    return lambda obj: bool(parsed.matches(labels_of(obj)))
