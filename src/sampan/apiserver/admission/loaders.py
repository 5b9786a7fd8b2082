"""Where each admission plugin is: one function per plugin, which imports it when first asked.

Job: parts in, the plugin's steps out. The import is inside the function, because a start that loads
    forty modules that no request has needed yet is a slow start.
"""

from sampan.apiserver.admission.chain import Steps
from sampan.apiserver.admission.parts import PluginParts


def certificate_request(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.certificates import certificate_request as module

    return module.plugin(parts)


def role_escalation(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import role_escalation as module

    return module.plugin(parts)


def device_admin_access(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import device_admin_access as module

    return module.plugin(parts)


def always_admit(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import always_admit as module

    return module.plugin(parts)


def namespace_auto_provision(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import namespace_auto_provision as module

    return module.plugin(parts)


def namespace_lifecycle(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import namespace_lifecycle as module

    return module.plugin(parts)


def namespace_exists(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import namespace_exists as module

    return module.plugin(parts)


def limit_hard_anti_affinity(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.pods import limit_hard_anti_affinity as module

    return module.plugin(parts)


def limit_ranger(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.pods import limit_ranger as module

    return module.plugin(parts)


def service_account(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.pods import service_account as module

    return module.plugin(parts)


def node_restriction(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import node_restriction as module

    return module.plugin(parts)


def taint_nodes_by_condition(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import taint_nodes_by_condition as module

    return module.plugin(parts)


def always_pull_images(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.pods import always_pull_images as module

    return module.plugin(parts)


def image_policy_webhook(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.pods import image_policy_webhook as module

    return module.plugin(parts)


def pod_security(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.pod_security import pod_security as module

    return module.plugin(parts)


def pod_node_selector(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.pods import pod_node_selector as module

    return module.plugin(parts)


def priority(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.pods import priority as module

    return module.plugin(parts)


def default_toleration_seconds(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.pods import default_toleration_seconds as module

    return module.plugin(parts)


def pod_toleration_restriction(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.pods import pod_toleration_restriction as module

    return module.plugin(parts)


def event_rate_limit(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import event_rate_limit as module

    return module.plugin(parts)


def extended_resource_toleration(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.pods import extended_resource_toleration as module

    return module.plugin(parts)


def default_storage_class(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import default_storage_class as module

    return module.plugin(parts)


def storage_in_use_protection(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import storage_in_use_protection as module

    return module.plugin(parts)


def owner_references(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import owner_references as module

    return module.plugin(parts)


def claim_resize(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import claim_resize as module

    return module.plugin(parts)


def runtime_class(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.pods import runtime_class as module

    return module.plugin(parts)


def certificate_approval(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.certificates import certificate_approval as module

    return module.plugin(parts)


def certificate_signing(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.certificates import certificate_signing as module

    return module.plugin(parts)


def cluster_trust_bundle_attest(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.certificates import (
        cluster_trust_bundle_attest as module,
    )

    return module.plugin(parts)


def certificate_subject_restriction(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.certificates import (
        certificate_subject_restriction as module,
    )

    return module.plugin(parts)


def default_ingress_class(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import default_ingress_class as module

    return module.plugin(parts)


def deny_external_ips(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import deny_external_ips as module

    return module.plugin(parts)


def pod_topology_labels(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin.pods import pod_topology_labels as module

    return module.plugin(parts)


def mutating_policies(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.policies import mutating_policies as module

    return module.plugin(parts)


def mutating_webhooks(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.webhooks import mutating_webhooks as module

    return module.plugin(parts)


def validating_policies(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.policies import validating_policies as module

    return module.plugin(parts)


def validating_webhooks(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.webhooks import validating_webhooks as module

    return module.plugin(parts)


def resource_quota(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.quota import resource_quota as module

    return module.plugin(parts)


def always_deny(parts: PluginParts) -> Steps:
    from sampan.apiserver.admission.builtin import always_deny as module

    return module.plugin(parts)
