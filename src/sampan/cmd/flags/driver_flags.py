"""The flags of `sampan driver`: drivers of our own, each as a process of its own."""

import argparse
import os

from sampan.api.quantity import QuantityError, value_of
from sampan.cmd.flags import common
from sampan.drivers.csi.settings import NAME, DriverSettings
from sampan.drivers.device_plugin.settings import DevicePluginSettings
from sampan.drivers.dra.settings import NAME as DRA_NAME
from sampan.drivers.dra.settings import DraSettings


def add_verb(verbs: common.Verbs) -> None:
    text = "a small driver of sampan's own, for a node and for tests"
    driver = verbs.add_parser("driver", help=text, description=text)
    kinds = driver.add_subparsers(dest="kind", metavar="KIND", required=True)
    _add_csi(kinds.add_parser("csi", help="csi.sampan.dev: directories and loop devices"))
    text = "devices of a resource, as many as one likes, none of them real"
    _add_device_plugin(kinds.add_parser("device-plugin", help=text))
    text = "what a CSI driver needs beside it: provisioner, attacher, resizer, snapshotter"
    _add_sidecars(kinds.add_parser("csi-sidecars", help=text))
    _add_dra(kinds.add_parser("dra", help=f"{DRA_NAME}: made-up GPUs that pods claim"))


def _add_csi(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _places(parser)
    add("--node-id", required=True, metavar="NAME", help="how the driver calls this node")
    add("--root", required=True, metavar="DIR", help="volumes and snapshots are kept there")
    add("--name", default=NAME, help="of the driver (default: %(default)s)")
    add(
        "--capacity",
        type=_bytes,
        default=0,
        metavar="SIZE",
        help="of all volumes, as 10Gi; default: the disk",
    )
    add("--max-volumes", type=int, default=0, metavar="N", help="that the node can take")
    add("--attach", action="store_true", help="volumes are attached before they are staged")
    add("--no-stage", action="store_true", help="volumes are published without being staged")
    add("--mount-group", action="store_true", help="the driver gives files to fsGroup itself")
    add("--kubeconfig", default="", metavar="FILE",
        help="install it: its objects, and what csi-sidecars does, in this cluster")  # fmt: skip


def _add_sidecars(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--endpoint", required=True, metavar="SOCKET", help="where the driver listens")
    add("--kubeconfig", required=True, metavar="FILE", help="of a user that may do all of it")
    add("--node-name", required=True, metavar="NAME", help="the node beside which it runs")
    _process(parser)


def _add_device_plugin(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--directory", required=True, metavar="DIR", help="device-plugins of the kubelet")
    add("--resource", required=True, metavar="NAME", help="as example.com/gpu")
    add("--devices", type=int, default=4, metavar="N", help="how many (default: %(default)s)")
    add("--numa-nodes", type=int, default=0, metavar="N", help="that the devices are spread over")
    add("--device", default="/dev/null", metavar="PATH",
        help="what a container finds as /dev/NAME-ID (default: %(default)s)")  # fmt: skip
    add("--cdi-kind", default="", metavar="KIND",
        help="answer with CDI devices of that kind instead")  # fmt: skip
    add("--pre-start", action="store_true", help="be called before each start of a container")
    add("--prefer-last", action="store_true", help="prefer the devices with the highest ids")
    add("--health", default="", metavar="FILE",
        help="a JSON file: which device is Healthy or Unhealthy; watched")  # fmt: skip
    _common(parser)


def _add_dra(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _places(parser)
    add("--kubeconfig", required=True, metavar="FILE", help="of a user that may publish devices")
    add("--node-name", required=True, metavar="NAME", help="the node whose devices they are")
    add("--name", default=DRA_NAME, help="of the driver (default: %(default)s)")
    add("--devices", type=int, default=4, metavar="N", help="how many (default: %(default)s)")
    add("--partitions", type=int, default=0, metavar="N", help="that each device is offered in")
    add("--cdi-directory", default="/var/run/cdi", metavar="DIR",
        help="where a runtime looks for specifications (default: %(default)s)")  # fmt: skip
    add("--health", default="", metavar="FILE",
        help="a JSON file: which device is Healthy or Unhealthy; watched")  # fmt: skip
    add("--write-status", action="store_true",
        help="write a condition of each device into the claim")  # fmt: skip


def _places(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--endpoint", required=True, metavar="SOCKET", help="where the driver listens")
    add("--registration", default="", metavar="SOCKET",
        help="in plugins_registry of the kubelet: the driver registers itself")  # fmt: skip
    _common(parser)


def _common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--faults", default="", metavar="FILE",
        help="a JSON file of methods that fail, wait or die; read at each call")  # fmt: skip
    _process(parser)


def _process(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--ready-file", metavar="FILE", default="", help="written once it listens")
    add("--with-parent", action="store_true", help=argparse.SUPPRESS)
    common.log_level(parser)


def _bytes(written: str) -> int:
    try:
        return value_of(written).value()
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def csi_settings(given: argparse.Namespace) -> DriverSettings:
    return DriverSettings(
        node_id=given.node_id,
        root=given.root,
        name=given.name,
        capacity_bytes=given.capacity,
        most_volumes=given.max_volumes,
        attaches=given.attach,
        stages=not given.no_stage,
        gives_group=given.mount_group,
        faults=given.faults,
    )


def dra_settings(given: argparse.Namespace) -> DraSettings:
    return DraSettings(
        node_name=given.node_name,
        name=given.name,
        devices=given.devices,
        partitions=given.partitions,
        cdi_directory=os.path.abspath(given.cdi_directory),
        health=given.health,
        writes_status=given.write_status,
        faults=given.faults,
    )


def device_plugin_settings(given: argparse.Namespace) -> DevicePluginSettings:
    return DevicePluginSettings(
        resource=given.resource,
        directory=os.path.abspath(given.directory),
        count=given.devices,
        numa_nodes=given.numa_nodes,
        device=given.device,
        cdi_kind=given.cdi_kind,
        pre_start=given.pre_start,
        prefers_last=given.prefer_last,
        health=given.health,
        faults=given.faults,
    )
