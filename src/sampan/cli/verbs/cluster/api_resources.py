"""`api-resources` and `api-versions`: what the server serves.

Job: discovery as a table or a list.
"""

from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError, UsageError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects.discovery import ApiResource
from sampan.cli.output import unknown_format
from sampan.cli.printers.tabs import align
from sampan.cli.session import Session

TITLES = ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]


def _choose(session: Session, values: Values) -> list[ApiResource]:
    discovery = session.discovery
    if not values["cached"]:
        discovery.refresh()
    found = []
    for resource in discovery.preferred():
        if not resource.verbs:
            continue
        if values.is_set("api-group") and resource.group != values["api-group"]:
            continue
        if values.is_set("namespaced") and resource.namespaced != values["namespaced"]:
            continue
        if not set(values["verbs"]) <= set(resource.verbs):
            continue
        if not set(values["categories"]) <= set(resource.categories):
            continue
        found.append(resource)
    if values["sort-by"] == "name":
        return sorted(found, key=lambda resource: resource.plural)
    if values["sort-by"] == "kind":
        return sorted(found, key=lambda resource: resource.kind)
    return sorted(found, key=lambda resource: (resource.group, resource.plural))


def run(session: Session, values: Values) -> None:
    if values.arguments:
        raise UsageError(f"unexpected arguments: [{' '.join(values.arguments)}]")
    output = values.text("output")
    _ = session.connection
    if output not in ("", "wide", "name", "json", "yaml", "kyaml"):
        raise unknown_format(output, ("json", "kyaml", "name", "wide", "yaml"))
    if values["sort-by"] not in ("", "name", "kind"):
        raise CliError("--sort-by accepts only name or kind")
    found = _choose(session, values)
    if output == "name":
        for resource in found:
            session.print(resource.qualified)
        return
    if output in ("json", "yaml", "kyaml"):
        _objects(session, found, output)
        return
    titles = [*TITLES, "VERBS", "CATEGORIES"] if output == "wide" else TITLES
    rows = [] if values["no-headers"] else [titles]
    for resource in found:
        row = [
            resource.plural, ",".join(resource.short_names), resource.api_version,
            "true" if resource.namespaced else "false", resource.kind,
        ]  # fmt: skip
        if output == "wide":
            row += [",".join(resource.verbs), ",".join(resource.categories)]
        rows.append(row)
    session.write(align(rows))


def _objects(session: Session, found: list[ApiResource], output: str) -> None:
    items = []
    for one in found:
        fields = {
            "name": one.plural, "singularName": one.singular, "namespaced": one.namespaced,
            "group": one.group, "version": one.version, "kind": one.kind, "verbs": list(one.verbs),
            "shortNames": list(one.short_names), "categories": list(one.categories),
        }  # fmt: skip
        always = ("name", "singularName", "namespaced", "kind", "verbs")
        items.append({key: value for key, value in fields.items() if value or key in always})
    whole = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "", "resources": items}
    if output == "json":
        from sampan.cli.printers.json_text import to_json

        session.write(to_json(whole, ordered=True))
    elif output == "yaml":
        from sampan.cli.printers.yaml_text import to_yaml

        session.write(to_yaml(whole))
    else:
        from sampan.cli.printers.kyaml_text import to_kyaml

        session.write(to_kyaml(whole))


def versions(session: Session, values: Values) -> None:
    if values.arguments:
        raise UsageError(f"unexpected arguments: [{' '.join(values.arguments)}]")
    resources = session.discovery.refresh()
    for version in sorted({resource.api_version for resource in resources}):
        session.print(version)


API_RESOURCES = Command(
    "api-resources", "api-resources [flags] [options]",
    "Print the supported API resources on the server.", run,
    (Flag("api-group", usage="Limit to resources in the specified API group."),
     switch("cached", "Use the cached list of resources if available."),
     Flag("categories", "slice", [], "Limit to resources that belong to the specified categories."),
     switch("namespaced", "Namespaced resources, or those that are not.", default=True),
     switch("no-headers", "Don't print headers."),
     switch("show-managed-fields", "Accepted: there are none."),
     Flag("output", short="o", usage="Output format: json, yaml, kyaml, name, wide."),
     Flag("sort-by", usage="Sort by name or kind."),
     Flag("verbs", "slice", [], "Limit to resources that support the specified verbs.")),
)  # fmt: skip
API_VERSIONS = Command(
    "api-versions", "api-versions [options]", "Print the supported API versions on the server.",
    versions,
)  # fmt: skip
