"""The processes of the control plane, each by itself.

Job: their flags, and the settings that they make.
"""

import argparse

from sampan.cmd.flags import common, values
from sampan.cmd.settings import ControllersSettings


def add_verbs(verbs: common.Verbs) -> None:
    text = "run the controllers, with an API server elsewhere"
    controllers = verbs.add_parser("controllers", help=text, description=text)
    add = controllers.add_argument
    add("--kubeconfig", metavar="FILE", default="", help="the API server, and who we are")
    common.controllers(controllers)
    add("--leader-elect", type=values.truth, default=True, metavar="BOOL",
        help="work only while no other process does (default: true)")  # fmt: skip
    add("--root-ca-file", metavar="FILE", default="",
        help="what pods verify the API server with (default: the kubeconfig's)")  # fmt: skip
    add("--cluster-signing-cert-file", metavar="FILE", default="", help="signs certificates")
    add("--cluster-signing-key-file", metavar="FILE", default="", help="its key")
    add(
        "--service-account-private-key-file",
        metavar="FILE",
        default="",
        help="signs the tokens that secrets hold",
    )
    add("--cluster-cidr", metavar="CIDR,…", type=values.names, default=(),
        help="nodes get their podCIDR from here (default: from nobody)")  # fmt: skip
    add("--ready-file", metavar="FILE", default="", help="written when it is started")
    common.log_level(controllers)


def controllers_settings(given: argparse.Namespace) -> ControllersSettings:
    return ControllersSettings(
        kubeconfig=given.kubeconfig,
        controllers=given.controllers,
        leader_elect=given.leader_elect,
        root_ca_file=given.root_ca_file,
        signing_cert_file=given.cluster_signing_cert_file,
        signing_key_file=given.cluster_signing_key_file,
        account_key_file=given.service_account_private_key_file,
        cluster_cidrs=given.cluster_cidr,
        ready_file=given.ready_file,
        log_level=given.log_level,
    )
