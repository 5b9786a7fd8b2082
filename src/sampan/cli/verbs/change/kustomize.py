"""`kustomize`: print what a kustomization builds.

Job: build, and write the objects as YAML documents.
"""

from sampan.cli.command import Command
from sampan.cli.common_flags import switch
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.kustomize.build import build
from sampan.cli.kustomize.helm_charts import Helm
from sampan.cli.printers.yaml_text import to_yaml
from sampan.cli.session import Session


def run(session: Session, values: Values) -> None:
    if len(values.arguments) > 1:
        raise CliError("specify one path to kustomization.yaml")
    restrictor = values.text("load-restrictor")
    if restrictor not in ("", *RESTRICTORS):
        legal = " ".join(RESTRICTORS)
        raise CliError(
            f"illegal flag value --load-restrictor {restrictor}; legal values: [{legal}]"
        )
    folder = values.arguments[0] if values.arguments else "."
    helm = Helm(
        values["helm-command"],
        tuple(values["helm-api-versions"]),
        values["helm-kube-version"],
        values["helm-debug"],
    )
    chosen = helm if values["enable-helm"] else None
    is_open = restrictor == RESTRICTORS[1]
    built = build(folder, session.complain, chosen, is_open=is_open)
    text = "---\n".join(to_yaml(obj) for obj in built)
    if values["output"]:
        with open(values["output"], "w") as file:
            file.write(text)
    else:
        session.write(text)


RESTRICTORS = ("LoadRestrictionsRootOnly", "LoadRestrictionsNone")
_CONTAINERS = "For functions in containers, which are refused by name."
KUSTOMIZE = Command(
    "kustomize",
    "kustomize DIR [flags] [options]",
    "Build a set of KRM resources using a 'kustomization.yaml' file.",
    run,
    (
        switch("as-current-user", _CONTAINERS),
        switch("enable-alpha-plugins", "Plugins that are not kustomize's own are refused by name."),
        switch("enable-helm", "Make objects of helm charts, by helm."),
        Flag("env", "array", [], _CONTAINERS, short="e"),
        Flag("helm-api-versions", "array", [], "API versions that charts are told of."),
        Flag("helm-command", default="helm", usage="Which helm is started."),
        switch("helm-debug", "With helm's own words where it fails."),
        Flag("helm-kube-version", usage="The version of Kubernetes that charts are told of."),
        Flag(
            "load-restrictor",
            default="LoadRestrictionsRootOnly",
            usage="LoadRestrictionsNone: files outside of the kustomization's folder may be read.",
        ),
        Flag("mount", "array", [], _CONTAINERS),
        switch("network", _CONTAINERS),
        Flag("network-name", default="bridge", usage=_CONTAINERS),
        Flag("output", short="o", usage="If specified, write output to this path."),
    ),
)
