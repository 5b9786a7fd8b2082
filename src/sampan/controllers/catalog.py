"""Every controller that sampan has, in one list.

Job: build them from the settings that some of them need. To add one: add a line.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field

from sampan.api import features
from sampan.api.rules.device_taints import served_taint_rules
from sampan.controllers.access.account_tokens import Sign, account_tokens_controller
from sampan.controllers.access.bootstrap_signer import bootstrap_signer_controller
from sampan.controllers.access.clusterrole_aggregation import clusterrole_aggregation_controller
from sampan.controllers.access.csr_approving import csr_approving_controller
from sampan.controllers.access.csr_cleaner import csr_cleaner_controller
from sampan.controllers.access.csr_signing import Ca, csr_signing_controller
from sampan.controllers.access.legacy_token_cleaner import legacy_token_cleaner_controller
from sampan.controllers.access.pod_certificate_cleaner import pod_certificate_cleaner
from sampan.controllers.access.root_ca import root_ca_controller
from sampan.controllers.access.serviceaccount import serviceaccount_controller
from sampan.controllers.access.token_cleaner import token_cleaner_controller
from sampan.controllers.access.trust_bundle_publisher import trust_bundle_publisher
from sampan.controllers.autoscaling.horizontal_pod_autoscaler import (
    horizontal_pod_autoscaler_controller,
)
from sampan.controllers.cluster.garbage_collector import garbage_collector
from sampan.controllers.cluster.namespace import namespace_controller
from sampan.controllers.cluster.resource_quota import resource_quota_controller
from sampan.controllers.cluster.small_statuses import (
    service_cidr_controller,
    validating_admission_policy_status_controller,
)
from sampan.controllers.cluster.storage_version_migrator import (
    served_migrations,
    storage_version_migrator_controller,
)
from sampan.controllers.controller import Controller, selected_controllers
from sampan.controllers.jobs.cronjob import cronjob_controller
from sampan.controllers.jobs.job import job_controller
from sampan.controllers.jobs.ttl_after_finished import ttl_after_finished_controller
from sampan.controllers.nodes.node_ipam import node_ipam_controller
from sampan.controllers.nodes.node_lifecycle import GRACE_SECONDS, node_lifecycle_controller
from sampan.controllers.nodes.node_ttl import ttl_controller
from sampan.controllers.nodes.pod_gc import pod_gc_controller
from sampan.controllers.nodes.taint_eviction import taint_eviction_controller
from sampan.controllers.services.endpoints import endpoints_controller
from sampan.controllers.services.endpointslice import endpointslice_controller
from sampan.controllers.services.endpointslice_mirroring import endpointslice_mirroring_controller
from sampan.controllers.services.service_lb import service_lb_controller
from sampan.controllers.storage.attach_detach import attach_detach_controller
from sampan.controllers.storage.device_taint_eviction import device_taint_eviction_controller
from sampan.controllers.storage.ephemeral_volumes import ephemeral_volume_controller
from sampan.controllers.storage.local_provisioner import local_provisioner
from sampan.controllers.storage.persistent_volumes import persistent_volume_binder
from sampan.controllers.storage.resource_claims import resource_claim_controller
from sampan.controllers.storage.volume_expansion import volume_expansion_controller
from sampan.controllers.storage.volume_protection import (
    attributes_class_protection_controller,
    claim_protection_controller,
    volume_protection_controller,
)
from sampan.controllers.workloads.daemonset import daemonset_controller
from sampan.controllers.workloads.deployment import deployment_controller
from sampan.controllers.workloads.disruption import disruption_controller
from sampan.controllers.workloads.replicaset import replicaset_controller, replication_controller
from sampan.controllers.workloads.statefulset import statefulset_controller
from sampan.core.clock import Clock, SystemClock
from sampan.core.fast_dataclass import dataclass

# Those that are left out where nobody can sign, or where what they care for is not served.
NOT_ALWAYS = (
    "device-taint-eviction-controller",
    "storage-version-migrator-controller",
    "svm",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    "podcertificaterequest-cleaner-controller",
    "certificatesigningrequest-signing-controller",
    "csrsigning",
    "serviceaccount-token-controller",
    "serviceaccount-token",
)


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    root_ca: str  # PEM, what pods verify the API server with
    ca: Ca | None = None  # signs certificates; None: nobody does
    sign_account_token: Sign | None = None  # for secrets that hold tokens
    cluster_cidrs: tuple[str, ...] = ()  # nodes get their podCIDR from here; empty: from nobody
    node_grace_seconds: float = GRACE_SECONDS  # that a node may be silent
    clock: Clock = field(default_factory=SystemClock)  # of who runs them
    attended: Callable[[str], bool] = lambda _node: False  # nodes that cannot fall silent unnoticed
    further: tuple[Controller, ...] = ()  # whatever --controllers says


def all_controllers(settings: ControllerSettings) -> list[Controller]:
    return [
        namespace_controller(),
        serviceaccount_controller(),
        root_ca_controller(settings.root_ca),
        garbage_collector(),
        replicaset_controller(),
        replication_controller(),
        deployment_controller(),
        node_lifecycle_controller(
            settings.clock.now, settings.node_grace_seconds, settings.attended
        ),
        taint_eviction_controller(),
        ttl_controller(),
        pod_gc_controller(),
        endpointslice_controller(),
        endpoints_controller(),
        job_controller(),
        daemonset_controller(),
        statefulset_controller(),
        cronjob_controller(settings.clock.now),
        ttl_after_finished_controller(),
        disruption_controller(),
        persistent_volume_binder(),
        attach_detach_controller(),
        claim_protection_controller(),
        volume_protection_controller(),
        attributes_class_protection_controller(),
        local_provisioner(),
        volume_expansion_controller(),
        horizontal_pod_autoscaler_controller(),
        resource_quota_controller(),
        endpointslice_mirroring_controller(),
        ephemeral_volume_controller(),
        resource_claim_controller(),
        validating_admission_policy_status_controller(),
        service_cidr_controller(),
        service_lb_controller(),
        node_ipam_controller(settings.cluster_cidrs),
        clusterrole_aggregation_controller(),
        csr_approving_controller(),
        csr_cleaner_controller(),
        legacy_token_cleaner_controller(),
        bootstrap_signer_controller(),
        token_cleaner_controller(),
        *_sometimes(settings),
    ]


def _sometimes(settings: ControllerSettings) -> Iterator[Controller]:
    """Those of NOT_ALWAYS that are there."""
    migrations = served_migrations()
    if features.enabled("DRADeviceTaints"):
        yield device_taint_eviction_controller(served_taint_rules())
    if migrations is not None:
        yield storage_version_migrator_controller(migrations)
    if settings.root_ca and features.enabled("ClusterTrustBundle"):
        yield trust_bundle_publisher(settings.root_ca)
    if features.enabled("PodCertificateRequest"):
        yield pod_certificate_cleaner()
    if settings.ca is not None:
        yield csr_signing_controller(settings.ca)
    if settings.sign_account_token is not None:
        yield account_tokens_controller(settings.sign_account_token, settings.root_ca)


def chosen_controllers(settings: ControllerSettings, names: Iterable[str]) -> list[Controller]:
    """By --controllers. Raises UnknownController."""
    chosen = selected_controllers(all_controllers(settings), names, NOT_ALWAYS)
    return [*chosen, *settings.further]
