"""The verbs of a cluster that have few flags."""

from sampan.cmd.flags import common, release_flags, values
from sampan.cmd.settings import DEFAULT_PORT


def add_down(verbs: common.Verbs) -> None:
    common.verb(verbs, "down", "stop a cluster")


def add_reset(verbs: common.Verbs) -> None:
    reset = common.verb(verbs, "reset", "remove a cluster: data, containers, network")
    reset.add_argument("--yes", action="store_true", help="really do it")


def add_version(verbs: common.Verbs) -> None:
    verbs.add_parser("version", help="which sampan, which Kubernetes")


def add_gates(verbs: common.Verbs) -> None:
    text = "the feature gates of a version: stage, default, value, and whether sampan has them"
    gates = common.verb(verbs, "gates", text)
    gates.add_argument("-o", "--output", choices=("text", "json"), default="text")
    release_flags.add_flags(gates)


def add_diff_version(verbs: common.Verbs) -> None:
    text = "what another Kubernetes does with manifests: removed, refused, warned, defaulted"
    diff = verbs.add_parser("diff-version", help=text)
    diff.add_argument("old", metavar="OLD", help="a minor version: 1.35")
    diff.add_argument("new", metavar="NEW", help="another one: 1.37")
    diff.add_argument(
        "-f", "--filename", metavar="FILE", action="append", required=True,
        help="manifests: a file, a directory, or - for standard input; may be given again",
    )  # fmt: skip
    diff.add_argument("-o", "--output", choices=("text", "json"), default="text")


def add_image(verbs: common.Verbs) -> None:
    image = verbs.add_parser("image", help="the node's images")
    actions = image.add_subparsers(dest="action", metavar="ACTION", required=True)
    importing = actions.add_parser("import", help="load an OCI or docker archive")
    importing.add_argument("file", metavar="FILE", help="made by `docker save` or the like")
    common.data_dir(importing)
    common.data_dir(actions.add_parser("list", help="what is there"))
    loading = actions.add_parser("load", help="take an image from Docker or podman of this machine")
    loading.add_argument("file", metavar="IMAGE", help="its name there")
    loading.add_argument("--from", dest="engine", choices=("docker", "podman"), default="",
                         help="default: the first of them that is there")  # fmt: skip
    pulling = actions.add_parser("pull", help="from its registry, as a pod would")
    pulling.add_argument("file", metavar="IMAGE", help="its name")
    saving = actions.add_parser("save", help="write an OCI archive that `import` reads")
    saving.add_argument("file", metavar="IMAGE", help="its name, as `list` shows it")
    saving.add_argument("-f", "--file", dest="target", metavar="FILE", required=True)
    for parser in (loading, pulling, saving):
        common.data_dir(parser)
    removing = actions.add_parser(
        "rm", help="remove a name of an image; with the last one (or by id) the image"
    )
    removing.add_argument("file", metavar="IMAGE", help="a name or an id, as `list` shows it")
    common.data_dir(removing)


def add_snapshot(verbs: common.Verbs) -> None:
    snapshot = verbs.add_parser("snapshot", help="a cluster's state: save, bring back, compare")
    actions = snapshot.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action, text in (
        ("save", "keep all objects of the running cluster, at one revision, in one file"),
        ("restore", "make the stopped cluster's objects those of a snapshot"),
        ("rm", "remove a snapshot"),
        ("diff", "what is different in the running cluster"),
        ("import", "keep the objects of another cluster, any Kubernetes, as a snapshot"),
        ("list", "which snapshots there are"),
    ):
        parser = actions.add_parser(action, help=text, description=text)
        common.data_dir(parser)
        if action != "list":
            parser.add_argument("snapshot", metavar="NAME", help="or the path of a file, with a /")
        if action == "restore":
            parser.add_argument("--store", metavar="URL", default="", help="as of `sampan up`")
        if action == "import":
            parser.add_argument(
                "--from-kubeconfig", metavar="FILE", required=True, help="how it is reached"
            )
            parser.add_argument("--secrets", action="store_true", help="its Secrets, too")
    text = "start a second cluster that goes on from the state of one, on simulated nodes"
    fork = verbs.add_parser("fork", help=text, description=text)
    common.data_dir(fork)
    fork.add_argument("--snapshot", metavar="NAME", default="", help="default: as it is now")
    fork.add_argument("--to", metavar="DIR", required=True, help="the data directory of the other")


def add_looks(verbs: common.Verbs) -> None:
    status = common.verb(verbs, "status", "what runs: address, nodes, pods, memory, certificates")
    status.add_argument("-o", "--output", choices=("text", "json"), default="text")
    doctor = common.verb(verbs, "doctor", "is this machine fit for real containers")
    doctor.add_argument(
        "--port", type=values.port, default=DEFAULT_PORT, help="default: %(default)s"
    )
    doctor.add_argument("--fix", action="store_true", help="do what can be done")
    log = common.verb(verbs, "log", "what a cluster in the background wrote")
    log.add_argument("-f", "--follow", action="store_true", help="go on as it grows")
    log.add_argument("--tail", metavar="N", type=int, default=-1, help="only the last N lines")
    kubeconfig = common.verb(verbs, "kubeconfig", "the cluster's access: show, merge or remove")
    kubeconfig.add_argument(
        "action", choices=("show", "merge", "remove"), nargs="?", default="show"
    )
    kubeconfig.add_argument("--file", metavar="FILE", default="", help="default: as kubectl")
    kubeconfig.add_argument("--context", metavar="NAME", default="", help="what it is called there")
    clusters = verbs.add_parser("list", help="the clusters of this user")
    clusters.add_argument("-o", "--output", choices=("text", "json"), default="text")


def add_questions(verbs: common.Verbs) -> None:
    why = verbs.add_parser(
        "why",
        help="why a pod is Pending or not Ready, a Service or Ingress leads nowhere, a name "
        "does not resolve, a policy refuses a connection, or any other object is not well",
    )
    why.add_argument("what", metavar="KIND/NAME | name/HOST")
    why.add_argument("-o", "--output", choices=("text", "json"), default="text")
    why.add_argument("--to", metavar="[service/][NAMESPACE/]NAME:PORT[/UDP]", default="",
                     help="with pod/NAME: do NetworkPolicies let it connect there?")  # fmt: skip
    trace = verbs.add_parser("trace", help="every step of a pod's way, on one time axis")
    trace.add_argument("what", metavar="pod/NAME | deploy/NAME | ns/NAME | request/ID", nargs="+")
    trace.add_argument("-o", "--output", default="text",
                       choices=("text", "json", "otlp", "perfetto", "svg"))  # fmt: skip
    trace.add_argument("-f", "--follow", action="store_true", help="as it happens, until Ready")
    trace.add_argument("--all", dest="everything", action="store_true",
                       help="also the parts of requests that took no time")  # fmt: skip
    ui = verbs.add_parser("ui", help="the page of a cluster, opened and logged in")
    ui.add_argument("--no-open", action="store_true", help="only print the link")
    ui.add_argument("--kubeconfig", metavar="FILE", default="", help="default: as kubectl")
    common.cluster_name(ui)
    docs = verbs.add_parser("docs", help="the documentation of this version, in a browser")
    docs.add_argument("--no-open", action="store_true", help="only serve it")
    docs.add_argument("--port", metavar="N", type=values.port, default=0, help="default: any")
    docs.add_argument("--to", metavar="DIR", default="", help="write the pages there instead")
    schedule = verbs.add_parser("schedule", help="where pods would go, without creating them")
    schedule.add_argument("--dry-run", action="store_true", help="only ask (there is no other way)")
    schedule.add_argument(
        "-f", "--file", metavar="FILE", action="append", required=True,
        help="pods, or what makes pods; - reads standard input",
    )  # fmt: skip
    schedule.add_argument(
        "--cluster", metavar="FILE", default="", help="a saved cluster instead of the live one"
    )
    text = "the way of one pod, step by step: what happens, who does it, what the original does"
    tour = verbs.add_parser("tour", help=text, description=text)
    tour.add_argument("--no-pause", dest="pause", action="store_false",
                      help="all steps at once, without waiting for Enter")  # fmt: skip
    tour.add_argument("--image", default="", help="of the pod (default: the pause image)")
    for item in (why, trace, schedule, tour):
        item.add_argument("-n", "--namespace", default="default", help="default: %(default)s")
        item.add_argument("--kubeconfig", metavar="FILE", default="", help="default: as kubectl")
        common.cluster_name(item)
