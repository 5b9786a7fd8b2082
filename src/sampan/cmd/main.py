"""The command line of the cluster's own verbs.

Job: parse, call the verb, print a failure as one clear line, and choose the exit code.
"""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from sampan.cmd.cluster import cluster_names
from sampan.cmd.errors import CannotStart
from sampan.cmd.flags import defaults, release_flags
from sampan.cmd.flags.parser import parser_of_verbs
from sampan.version import GIT_VERSION, KUBERNETES_VERSION, VERSION

STARTING = (
    "up", "join", "kubelet", "service-proxy", "driver", "apiserver", "scheduler", "controllers",
    "certs", "service",
)  # fmt: skip
SERVING = ("up", "apiserver", "scheduler", "controllers")  # that show their flags


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = _join(sys.argv[1:] if arguments is None else arguments)
    parser = parser_of_verbs(arguments[0] if arguments else "")
    try:
        given = parser.parse_args(_with_defaults(parser, arguments))
        _find_cluster(given)
        if given.verb in SERVING:
            from sampan.cmd.flags.shown_flags import keep_flags

            keep_flags(parser, given)
        return _dispatch(given)
    except CannotStart as error:
        print(f"sampan: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    except OSError as error:
        # What the machine can cause, and no verb has said better.
        where = f"{error.filename}: " if error.filename else ""
        print(f"sampan: {where}{(error.strerror or str(error)).lower()}", file=sys.stderr)
        return 1


def _find_cluster(given: argparse.Namespace) -> None:
    """--data-dir and --name become the one directory, or the kubeconfig, that they mean."""
    if not hasattr(given, "cluster_name"):
        return
    if hasattr(given, "data_dir"):
        given.data_dir = str(_data_path(given))
    elif given.cluster_name:
        if given.kubeconfig:
            raise CannotStart("--kubeconfig and --name both say which cluster: give one")
        path = cluster_names.data_path("", given.cluster_name, os.environ, Path.cwd())
        given.kubeconfig = str(path / "kubeconfig")


def _data_path(given: argparse.Namespace) -> Path:
    """What starts something new never takes the place of another cluster by a guess."""
    here = Path.cwd()
    if given.data_dir or given.cluster_name or given.verb in STARTING:
        return cluster_names.data_path(given.data_dir, given.cluster_name, os.environ, here)
    from sampan.cmd.chosen_cluster import chosen_path

    return chosen_path(os.environ, here, os.path.expanduser("~"))


def _with_defaults(parser: argparse.ArgumentParser, arguments: list[str]) -> list[str]:
    """What a file and the environment say about the verb's flags, before what was given."""
    [verbs] = [
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    own = verbs.choices.get(arguments[0]) if arguments else None
    if own is None:
        return arguments
    inner = [action for action in own._actions if isinstance(action, argparse._SubParsersAction)]
    depth = 1
    if inner:  # as `image list`: the flags belong to the verb's own verbs
        own = inner[0].choices.get(arguments[1]) if len(arguments) > 1 else None
        depth = 2
    if own is None:
        return arguments
    return [
        *arguments[:depth],
        *defaults.arguments(own, arguments[depth:], os.environ),
        *arguments[depth:],
    ]


def _join(arguments: Sequence[str]) -> list[str]:
    """`--controllers -job` as `--controllers=-job`: a value that looks like a flag."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] == "--controllers":
            joined[-1] = f"--controllers={argument}"
        else:
            joined.append(argument)
    return joined


def _dispatch(given: argparse.Namespace) -> int:
    # Each verb imports what it needs when it runs: `sampan version` must not pay for a cluster.
    match given.verb:
        case "up" | "kubelet" | "join" | "service-proxy" | "driver":
            return _start(given)
        case "apiserver" | "scheduler" | "controllers" | "certs":
            return _control_plane(given)
        case "token":
            from sampan.cmd.verbs import token

            return token.run(given.data_dir, given.kubeconfig, given.server)
        case "down":
            from sampan.cmd.verbs import down

            return down.run(given.data_dir)
        case "reset":
            from sampan.cmd.verbs import reset

            return reset.run(given.data_dir, confirmed=given.yes)
        case "image":
            from sampan.cmd.verbs import image

            arguments = (getattr(given, name, "") for name in ("file", "target", "engine"))
            return image.run(given.action, given.data_dir, *arguments)
        case "service" | "upgrade" | "config" | "node":
            return _keep(given)
        case "fork" | "testserver" | "gates" | "diff-version" | "snapshot" | "lab" | "clock":
            return _try_out(given)
        case "status" | "doctor" | "log" | "kubeconfig" | "list":
            return _look(given)
        case "why" | "trace" | "schedule" | "tour" | "ui" | "docs":
            return _ask(given)
        case _:
            print(f"sampan {VERSION} (Kubernetes {KUBERNETES_VERSION}, {GIT_VERSION})")
            return 0


def _start(given: argparse.Namespace) -> int:
    """The verbs that run until they are told to stop."""
    from sampan.cmd.flags import node_process_flags

    if given.verb == "driver":
        from sampan.cmd.verbs.machine import driver

        return driver.run(given)
    if given.verb == "service-proxy":
        from sampan.cmd.verbs import service_proxy

        return service_proxy.run(node_process_flags.proxy_settings(given))
    # What a start imports and builds stays: looking through it for garbage, again and again,
    # costs a tenth of the start. process.settle_memory enables it.
    gc.disable()
    match given.verb:
        case "up":
            from sampan.cmd.flags import up_flags
            from sampan.cmd.verbs import up

            settings_of_up = up_flags.up_settings(given)
            if given.part:
                return up.run_part(settings_of_up, given.part)
            return up.run(settings_of_up, detach=given.detach)
        case "join":
            from sampan.cmd.verbs import join

            settings = node_process_flags.node_settings(given)
            return join.run(given.server, given.token, given.ca_hash, settings)
        case _:
            from sampan.cmd.verbs import kubelet

            return kubelet.run(node_process_flags.node_settings(given))


def _control_plane(given: argparse.Namespace) -> int:
    """Its processes, each by itself, and what they know each other by."""
    from sampan.cmd.flags import control_plane_flags

    if given.verb == "certs":
        from sampan.cmd.verbs import certs

        return certs.run(control_plane_flags.certs_settings(given))
    gc.disable()  # as in _start
    match given.verb:
        case "apiserver":
            from sampan.cmd.verbs import apiserver

            return apiserver.run(control_plane_flags.apiserver_settings(given))
        case "scheduler":
            from sampan.cmd.verbs import scheduler

            return scheduler.run(control_plane_flags.scheduler_settings(given))
        case _:
            from sampan.cmd.verbs import controllers

            return controllers.run(control_plane_flags.controllers_settings(given))


def _version(given: argparse.Namespace) -> int:
    """Of a version of Kubernetes that is chosen here."""
    release = release_flags.choices(given)
    if given.verb == "testserver":
        from sampan.cmd.flags.testserver_flags import beside_of
        from sampan.cmd.verbs import testserver

        return testserver.run(given.assets, given.kubeconfig, beside_of(given), release)
    from sampan.cmd.verbs.versions import gates

    return gates.run(release, given.data_dir, as_json=given.output == "json")


def _try_out(given: argparse.Namespace) -> int:
    """Clusters for tests and experiments."""
    match given.verb:
        case "fork":
            from sampan.cmd.verbs import fork

            return fork.run(given.data_dir, given.snapshot, given.to)
        case "testserver" | "gates":
            return _version(given)
        case "diff-version":
            from sampan.cmd.verbs.versions import diff_version

            as_json = given.output == "json"
            return diff_version.run(given.old, given.new, given.filename, as_json=as_json)
        case "snapshot":
            return _snapshot(given)
        case "clock":
            return _clock(given)
        case _:
            return _lab(given)


def _lab(given: argparse.Namespace) -> int:
    from sampan.cmd.verbs.simulation import lab

    if given.action == "record":
        return lab.record(given.kubeconfig, given.to, given.seconds)
    chosen = lab.RunChoices(
        given.workload, given.nodes_file, given.scheduler_config, given.compare, given.seed,
        given.output,
    )  # fmt: skip
    return lab.run(chosen)


def _clock(given: argparse.Namespace) -> int:
    from sampan.cmd.verbs.simulation import clock

    chosen = clock.ClockChoices(
        given.action or "",
        getattr(given, "duration", ""),
        getattr(given, "settle", False),
        tuple(getattr(given, "client", ())),
        getattr(given, "patience", ""),
    )
    return clock.run(chosen, given.kubeconfig)


def _snapshot(given: argparse.Namespace) -> int:
    from sampan.cmd.verbs import snapshot

    return snapshot.run(
        snapshot.SnapshotChoices(
            given.action,
            given.data_dir,
            getattr(given, "snapshot", ""),
            getattr(given, "from_kubeconfig", ""),
            getattr(given, "secrets", False),
            getattr(given, "store", ""),
        )
    )


def _keep(given: argparse.Namespace) -> int:
    """What surrounds a cluster on its machine."""
    from sampan.cmd.flags import machine_flags

    match given.verb:
        case "service":
            from sampan.cmd.verbs.machine import service

            machine_flags.check_up_flags(parser_of_verbs("up"), given.flags)
            return service.run(
                given.action, given.data_dir, given.flags, only_print=given.only_print
            )
        case "node":
            from sampan.cmd.verbs.machine import node

            return node.run(given.action, given.node, given.kubeconfig)
        case "upgrade":
            if given.to:
                from sampan.cmd.verbs.versions import upgrade_to

                keys = given.encryption_provider_config
                return upgrade_to.run(given.data_dir, given.to, keys, dry_run=given.dry_run)
            from sampan.cmd.verbs.machine import upgrade

            problems = machine_flags.problems_of(parser_of_verbs("up"), given.config)
            return upgrade.run(given.data_dir, problems)
        case _:
            from sampan.cmd.verbs.machine import config_explain

            up = machine_flags.parser_of_up(parser_of_verbs("up"))
            return config_explain.run(up, given.setting, as_schema=given.schema)


def _ask(given: argparse.Namespace) -> int:
    """Questions to a live cluster."""
    match given.verb:
        case "why":
            from sampan.cmd.verbs import why

            return why.run(
                given.what, given.namespace, given.kubeconfig, given.to,
                as_json=given.output == "json",
            )  # fmt: skip
        case "trace":
            from sampan.cmd.verbs import trace

            return trace.run(
                trace.Asked(
                    "/".join(given.what), given.namespace, given.kubeconfig, given.output,
                    given.follow, given.everything,
                )
            )  # fmt: skip
        case "tour":
            from sampan.cmd.verbs import tour

            image = {"image": given.image} if given.image else {}
            return tour.run(
                tour.Asked(given.namespace, given.kubeconfig, pause=given.pause, **image)
            )
        case "ui":
            from sampan.cmd.verbs.machine import ui

            return ui.run(given.kubeconfig, opens=not given.no_open)
        case "docs":
            from sampan.cmd.verbs.machine import docs

            return docs.run(given.port, given.to, opens=not given.no_open)
        case _:
            from sampan.cmd.verbs import schedule

            return schedule.run(
                given.file,
                dry=given.dry_run,
                cluster=given.cluster,
                namespace=given.namespace,
                kubeconfig_path=given.kubeconfig,
            )


def _look(given: argparse.Namespace) -> int:
    match given.verb:
        case "status":
            from sampan.cmd.verbs import status

            return status.run(given.data_dir, as_json=given.output == "json")
        case "doctor":
            from sampan.cmd.verbs.machine import doctor

            return doctor.run(given.data_dir, given.port, fix=given.fix)
        case "list":
            from sampan.cmd.verbs.machine import list as clusters

            return clusters.run(as_json=given.output == "json")
        case "log":
            from sampan.cmd.verbs.machine import log

            return log.run(given.data_dir, follow=given.follow, lines=given.tail)
        case _:
            from sampan.cmd.verbs import kubeconfig

            return kubeconfig.run(given.action, given.data_dir, given.file, given.context)


if __name__ == "__main__":
    sys.exit(main())
