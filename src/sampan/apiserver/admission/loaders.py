"""Plugin loaders: one function per admission plugin, which imports it when first asked.

Job: parts in, the plugin's steps out. The import is inside the function, because a start that loads
    forty modules that no request has needed yet is a slow start.
"""

from sampan.apiserver.admission.chain import Steps
from sampan.apiserver.admission.plugin_initializer import PluginInitializer


def certificate_request(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.certificates import certificate_request as module

    return module.plugin(initializer)


def role_escalation(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import role_escalation as module

    return module.plugin(initializer)


def pod_certificate_signing(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.certificates import pod_certificate_signing as module

    return module.plugin(initializer)


def device_admin_access(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import device_admin_access as module

    return module.plugin(initializer)


def always_admit(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import always_admit as module

    return module.plugin(initializer)


def namespace_auto_provision(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import namespace_auto_provision as module

    return module.plugin(initializer)


def namespace_lifecycle(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import namespace_lifecycle as module

    return module.plugin(initializer)


def namespace_exists(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import namespace_exists as module

    return module.plugin(initializer)


def limit_hard_anti_affinity(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import limit_hard_anti_affinity as module

    return module.plugin(initializer)


def limit_ranger(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import limit_ranger as module

    return module.plugin(initializer)


def service_account(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import service_account as module

    return module.plugin(initializer)


def node_restriction(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import node_restriction as module

    return module.plugin(initializer)


def taint_nodes_by_condition(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import taint_nodes_by_condition as module

    return module.plugin(initializer)


def always_pull_images(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import always_pull_images as module

    return module.plugin(initializer)


def image_policy_webhook(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import image_policy_webhook as module

    return module.plugin(initializer)


def pod_security(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.pod_security import pod_security as module

    return module.plugin(initializer)


def pod_node_selector(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import pod_node_selector as module

    return module.plugin(initializer)


def priority(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import priority as module

    return module.plugin(initializer)


def default_toleration_seconds(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import default_toleration_seconds as module

    return module.plugin(initializer)


def pod_toleration_restriction(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import pod_toleration_restriction as module

    return module.plugin(initializer)


def event_rate_limit(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import event_rate_limit as module

    return module.plugin(initializer)


def extended_resource_toleration(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import extended_resource_toleration as module

    return module.plugin(initializer)


def default_storage_class(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import default_storage_class as module

    return module.plugin(initializer)


def storage_in_use_protection(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import storage_in_use_protection as module

    return module.plugin(initializer)


def owner_references(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import owner_references as module

    return module.plugin(initializer)


def claim_resize(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import claim_resize as module

    return module.plugin(initializer)


def claim_status_rights(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import claim_status_rights as module

    return module.plugin(initializer)


def runtime_class(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import runtime_class as module

    return module.plugin(initializer)


def certificate_approval(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.certificates import certificate_approval as module

    return module.plugin(initializer)


def certificate_signing(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.certificates import certificate_signing as module

    return module.plugin(initializer)


def cluster_trust_bundle_attest(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.certificates import (
        cluster_trust_bundle_attest as module,
    )

    return module.plugin(initializer)


def certificate_subject_restriction(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.certificates import (
        certificate_subject_restriction as module,
    )

    return module.plugin(initializer)


def default_ingress_class(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import default_ingress_class as module

    return module.plugin(initializer)


def deny_external_ips(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import deny_external_ips as module

    return module.plugin(initializer)


def pod_topology_labels(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import pod_topology_labels as module

    return module.plugin(initializer)


def node_declared_feature_validator(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin.pods import node_declared_feature_validator as module

    return module.plugin(initializer)


def mutating_policies(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.policies import mutating_policies as module

    return module.plugin(initializer)


def mutating_webhooks(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.webhooks import mutating_webhooks as module

    return module.plugin(initializer)


def validating_policies(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.policies import validating_policies as module

    return module.plugin(initializer)


def validating_webhooks(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.webhooks import validating_webhooks as module

    return module.plugin(initializer)


def resource_quota(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.quota import resource_quota as module

    return module.plugin(initializer)


def always_deny(initializer: PluginInitializer) -> Steps:
    from sampan.apiserver.admission.builtin import always_deny as module

    return module.plugin(initializer)
