"""create deployment, job, cronjob.

Job: pods' templates from images and a command.
"""

import random
import re

from sampan.api.objects import Obj, copy_of
from sampan.cli.create.generator import Kind, generator
from sampan.cli.create.parts import container_name, metadata, single_name
from sampan.cli.errors import CliError
from sampan.cli.flags import Flag, Values
from sampan.cli.objects.builder import Builder
from sampan.cli.objects.changing import go_type
from sampan.cli.session import Session

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def _command(values: Values) -> list[str]:
    if values.dash < 0:
        return []
    return values.arguments[values.dash :]


def deployment(session: Session, values: Values) -> Obj:
    name = single_name(values)
    images, command = values["image"], _command(values)
    if len(images) > 1 and command:
        raise CliError("cannot specify multiple --image options and command")
    containers = [_container(image) for image in images]
    if command and containers:
        containers[0]["command"] = command
    if values["port"] >= 0 and containers:
        containers[0]["ports"] = [{"containerPort": values["port"]}]
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(name, labels),
        "spec": {
            "replicas": values["replicas"],
            "selector": {"matchLabels": dict(labels)},
            "strategy": {},
            "template": {"metadata": {"labels": dict(labels)}, "spec": {"containers": containers}},
        },
        "status": {},
    }


def _container(image: str) -> Obj:
    name = container_name(image)
    cleaned = re.sub(r"[_.]", "-", name)
    if cleaned != name:  # as kubectl: then it is made a name of its own
        tail = "".join(random.SystemRandom().choice(_SUFFIX_LETTERS) for _ in range(5))
        cleaned = f"{cleaned}-{tail}"
    return {"name": cleaned, "image": image, "resources": {}}


def job(session: Session, values: Values) -> Obj:
    name = single_name(values)
    if values["image"] and values["from"]:
        raise CliError("either --image or --from must be specified")
    if not values["image"] and not values["from"]:
        raise CliError("either --image or --from must be specified")
    if values["from"]:
        if _command(values):
            raise CliError("cannot specify --from and command")
        return _job_of(session, name, values.text("from"))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(name),
        "spec": {"template": _template(name, values, "Never")},
        "status": {},
    }


def _template(name: str, values: Values, restart: str) -> Obj:
    container: Obj = {"name": name, "image": values.text("image"), "resources": {}}
    command = _command(values)
    if command:
        container["command"] = command
    return {"metadata": {}, "spec": {"containers": [container], "restartPolicy": restart}}


def _job_of(session: Session, name: str, source: str) -> Obj:
    builder = Builder(session).in_namespace().arguments([source])
    builder.typed = builder.latest = True
    found = builder.do().infos()
    if len(found) != 1:
        raise CliError("from must be an existing cronjob")
    if found[0].resource.kind != "CronJob":
        raise CliError(f"unknown object type {go_type(found[0])}")
    cron = found[0].obj
    template = copy_of(cron["spec"]["jobTemplate"])
    meta = template.get("metadata") or {}
    generated: Obj = {"name": name}
    generated["annotations"] = {
        "cronjob.kubernetes.io/instantiate": "manual", **(meta.get("annotations") or {})
    }  # fmt: skip
    if meta.get("labels"):
        generated["labels"] = meta["labels"]
    generated["ownerReferences"] = [
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "name": cron["metadata"]["name"],
            "uid": cron["metadata"]["uid"],
            "controller": True,
        }
    ]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": generated,
        "spec": template["spec"],
        "status": {},
    }


def cron_job(session: Session, values: Values) -> Obj:
    name = single_name(values)
    restart = values.text("restart") or "OnFailure"
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata(name),
        "spec": {
            "schedule": values.text("schedule"),
            "jobTemplate": {
                "metadata": {"name": name},
                "spec": {"template": _template(name, values, restart)},
            },
        },
        "status": {},
    }


DEPLOYMENT = generator(
    "deployment",
    "deployment NAME --image=image -- [COMMAND] [args...] [options]",
    "Create a deployment with the specified name",
    deployment,
    Kind("deployments", "deployment", "apps", aliases=("deploy",)),
    (
        Flag("image", "slice", [], "Image names to run; several make several containers.",
             required=True),
        Flag("port", "int32", -1, "The container port that this deployment exposes."),
        Flag("replicas", "int32", 1, "Number of replicas to create.", short="r"),
    ))  # fmt: skip
JOB = generator(
    "job",
    "job NAME --image=image [--from=cronjob/name] -- [COMMAND] [args...] [options]",
    "Create a job with the specified name",
    job,
    Kind("jobs", "job", "batch"),
    (
        Flag("image", usage="Image name to run."),
        Flag("from", usage="The resource to create a job from (only cronjob is supported)."),
    ),
)
CRON_JOB = generator(
    "cronjob",
    "cronjob NAME --image=image --schedule='0/5 * * * ?' -- [COMMAND] [args...] [flags] [options]",
    "Create a cron job with the specified name",
    cron_job,
    Kind("cronjobs", "cronjob", "batch", aliases=("cj",)),
    (
        Flag("image", usage="Image name to run.", required=True),
        Flag("restart", usage="The job's restart policy: OnFailure, Never."),
        Flag("schedule", usage="A schedule in the Cron format the job should be run with.",
             required=True),
    ))  # fmt: skip
