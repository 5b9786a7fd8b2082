"""`kustomize`: print what a kustomization builds.

Job: build, and write the objects as YAML documents.
"""

from sampan.cli.command import Command
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.kustomize.build import build
from sampan.cli.printers.yaml_text import to_yaml
from sampan.cli.session import Session


def run(session: Session, values: Values) -> None:
    if len(values.arguments) > 1:
        raise CliError("specify one path to kustomization.yaml")
    folder = values.arguments[0] if values.arguments else "."
    text = "---\n".join(to_yaml(obj) for obj in build(folder))
    if values["output"]:
        with open(values["output"], "w") as file:
            file.write(text)
    else:
        session.write(text)


KUSTOMIZE = Command(
    "kustomize",
    "kustomize DIR [flags] [options]",
    "Build a set of KRM resources using a 'kustomization.yaml' file.",
    run,
    (Flag("output", short="o", usage="If specified, write output to this path."),),
)
