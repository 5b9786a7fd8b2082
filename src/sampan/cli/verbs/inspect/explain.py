"""`explain`: the documentation of fields, from the server's OpenAPI v3.

Job: find the kind's schema, print what the path leads to.
"""

from sampan.api.errors import ApiError
from sampan.api.objects import Obj
from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, Plain, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.printers.schema_text import field_text
from sampan.cli.session import Session


def run(session: Session, values: Values) -> None:
    if not values.arguments:
        session.complain(
            f'You must specify the type of resource to explain. Use "{session.program} '
            'api-resources" for a complete list of supported resources.\n'
        )
        raise UsageError("Required resource not specified.")
    if len(values.arguments) > 1:
        raise UsageError("We accept only this format: explain RESOURCE")
    if values["output"] == "plaintext-openapiv2":
        raise CliError("--output=plaintext-openapiv2 is not there: plaintext shows the same fields")
    if values["output"] != "plaintext":
        raise CliError(f"unrecognized format: {values['output']}")
    word, *fields = values.arguments[0].split(".")
    resource, fields = _resource(session, word, fields)
    if values["api-version"]:
        resource = _in_version(session, resource, values.text("api-version"))
    document = _document(session, resource)
    schemas = document["components"]["schemas"]
    session.write(_head(resource))
    schema = _schema_of(schemas, resource)
    text = field_text(schemas, schema, fields, recursive=bool(values["recursive"]))
    if not text:
        raise CliError(f'field "{fields[-1]}" does not exist')
    session.write(f"{text}\n")


def _head(resource: ApiResource) -> str:
    group = f"GROUP:      {resource.group}\n" if resource.group else ""
    return f"{group}KIND:       {resource.kind}\nVERSION:    {resource.version}\n\n"


def _resource(session: Session, word: str, fields: list[str]) -> tuple[ApiResource, list[str]]:
    """The kind may be qualified: `deployments.apps.spec` and `deployments.v1.apps.spec`."""
    for count in range(len(fields), 0, -1):
        candidate = ".".join([word, *fields[:count]])
        try:
            found = session.discovery._lookup(candidate)
        except CliError:
            found = None
        if found is not None and found.group and found.group in candidate:
            return found, fields[count:]
    try:
        return session.discovery.find(word), fields
    except CliError as error:
        raise Plain(str(error)) from error


def _in_version(session: Session, resource: ApiResource, version: str) -> ApiResource:
    found = session.discovery.of_kind(version, resource.kind)
    if found is None:
        group, _, number = version.rpartition("/")
        raise CliError(f'couldn\'t find resource for "{group}/{number}, Kind={resource.kind}"')
    return found


def _document(session: Session, resource: ApiResource) -> Obj:
    root = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
    try:
        return session.api.json("GET", f"/openapi/v3/{root}")
    except ApiError as error:
        raise CliError(
            f"couldn't find resource for {resource.api_version}: {error.message}"
        ) from error


def _schema_of(schemas: dict[str, Obj], resource: ApiResource) -> Obj:
    wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    for schema in schemas.values():
        if wanted in (schema.get("x-kubernetes-group-version-kind") or []):
            return schema
    raise CliError(f'Couldn\'t find resource for "{resource.api_version}, Kind={resource.kind}"')


EXPLAIN = Command(
    "explain", "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [-o|--output=plaintext|plaintext-openapiv2] [options]",
    "Describe fields and structure of various resources.", run,
    (Flag("api-version", usage="Use the given api-version (group/version) of the resource."),
     Flag("output", short="o", default="plaintext", usage="Format in which to render the schema."),
     switch("recursive", "Print the names of all fields at once.")),
)  # fmt: skip
