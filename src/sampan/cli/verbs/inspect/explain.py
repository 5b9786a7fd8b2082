"""`explain`: the documentation of fields, from the server's OpenAPI v3.

Job: find the kind's schema, print what the path leads to.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Plain
from sampan.cli.flags import Flag, Values
from sampan.cli.objects.discovery import ApiResource, NoMatch
from sampan.cli.printers.schema_text import field_text
from sampan.cli.session import Session


def run(session: Session, values: Values) -> None:
    if not values.arguments:
        raise CliError(
            f'You must specify the type of resource to explain. Use "{session.program} '
            'api-resources" for a complete list of supported resources.\n'
        )
    if len(values.arguments) > 1:
        raise CliError("We accept only this format: explain RESOURCE\n")
    resource, fields = _resource(session, values.arguments[0], bool(values["api-version"]))
    if values["output"] == "plaintext-openapiv2":
        _explain_v2(session, values, resource, fields)
        return
    version = _asked_version(values.text("api-version"))
    if version:
        group, _, number = version.rpartition("/")
        resource = _moved(session, resource, group, number)
    document = _document(session, resource)
    if values["output"] != "plaintext":
        raise CliError(f"unrecognized format: {values['output']}")
    schemas = (document.get("components") or {}).get("schemas") or {}
    schema = _schema_of(schemas, resource)
    session.write(_head(resource))
    text = field_text(schemas, schema, fields, recursive=bool(values["recursive"]))
    if not text:
        raise CliError(f'field "{fields[-1]}" does not exist')
    session.write(f"{text}\n")


def _asked_version(text: str) -> str:
    if text.count("/") > 1:
        raise CliError(f"unexpected GroupVersion string: {text}")
    return text


def _moved(session: Session, resource: ApiResource, group: str, version: str) -> ApiResource:
    """In another group and version; of a kind of its own, if it is served there."""
    name = f"{group}/{version}" if group else version
    served = next(
        (
            one
            for one in session.discovery.resources
            if (one.api_version, one.plural) == (name, resource.plural)
        ),
        None,
    )
    own = (resource.plural, resource.singular, resource.namespaced)
    return served or ApiResource(group, version, "", *own)


def _explain_v2(session: Session, values: Values, resource: ApiResource, fields: list[str]) -> None:
    from sampan.cli.printers.schema_text_v2 import Definitions, Missing

    group, version = resource.group, resource.version
    if values["api-version"]:
        group, _, version = _asked_version(values.text("api-version")).rpartition("/")
    definitions = Definitions(session.api.json("GET", "/openapi/v2").get("definitions") or {})
    schema = definitions.of_kind(group, version, resource.kind)
    if schema is None:
        raise CliError(f'couldn\'t find resource for "{group}/{version}, Kind={resource.kind}"')
    name = f"{group}/{version}" if group else version
    heading = f"KIND:     {resource.kind}\nVERSION:  {name}"
    recursive = bool(values["recursive"])
    try:
        session.write(definitions.text(schema, fields, heading, recursive=recursive))
    except Missing as error:
        raise CliError(f'field "{error}" does not exist') from error


def _head(resource: ApiResource) -> str:
    group = f"GROUP:      {resource.group}\n" if resource.group else ""
    return f"{group}KIND:       {resource.kind}\nVERSION:    {resource.version}\n\n"


def _resource(session: Session, text: str, is_bare: bool) -> tuple[ApiResource, list[str]]:
    """The type may be given with its group, unless a version is given besides (`is_bare`)."""
    word = _nodes(text)[0]
    try:
        first = session.discovery.find(word)
    except NoMatch as error:
        raise Plain(str(error)) from error
    named = [
        one
        for one in session.discovery.preferred()
        if word.lower() in (one.plural, one.singular) or one == first
    ]
    for one in [] if is_bare else [first, *named]:
        if text.startswith(one.qualified):
            return one, _nodes(text[len(one.qualified) :])
    return first, _nodes(text)[1:]


def _nodes(text: str) -> list[str]:
    nodes = [node for node in text.split(".") if node]
    if any("[" in node for node in nodes):
        raise CliError("invalid jsonpath syntax, first node must be field node")
    return nodes


def _document(session: Session, resource: ApiResource) -> Obj:
    root = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
    try:
        return session.api.json("GET", f"/openapi/v3/{root}")
    except ApiError as error:
        if error.code != 404:
            raise
        where = f"{resource.group}/{resource.version}, Resource={resource.plural}"
        raise CliError(f'couldn\'t find resource for "{where}"') from error


def _schema_of(schemas: dict[str, Obj], resource: ApiResource) -> Obj:
    wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    for schema in schemas.values():
        if wanted in (schema.get("x-kubernetes-group-version-kind") or []):
            return schema
    where = f"{resource.group}/{resource.version}, Resource={resource.plural}"
    raise CliError(f"GVR ({where}) not found in OpenAPI schema")


EXPLAIN = Command(
    "explain", "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [-o|--output=plaintext|plaintext-openapiv2] [options]",
    "Describe fields and structure of various resources.", run,
    (Flag("api-version", usage="Use the given api-version (group/version) of the resource."),
     Flag("output", short="o", default="plaintext", usage="Format in which to render the schema."),
     switch("recursive", "Print the names of all fields at once.")),
)  # fmt: skip
