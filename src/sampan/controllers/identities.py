"""User names of controllers: service accounts of kube-system, as upstream's; of one of our own that
may do anything, a user for whom nobody can make a token.

Job: a controller's name → its user name. Pure.
"""

_PUBLISHER = "kube-apiserver-serving-clustertrustbundle-publisher"
# Where the account is not called like the controller.
_ACCOUNTS = {
    "daemonset-controller": "daemon-set-controller",
    "endpoints-controller": "endpoint-controller",
    "endpointslice-mirroring-controller": "endpointslicemirroring-controller",
    "garbage-collector-controller": "generic-garbage-collector",
    "horizontal-pod-autoscaler-controller": "horizontal-pod-autoscaler",
    "node-ipam-controller": "node-controller",
    "node-lifecycle-controller": "node-controller",
    "persistentvolume-binder-controller": "persistent-volume-binder",
    "persistentvolumeclaim-protection-controller": "pvc-protection-controller",
    "persistentvolume-protection-controller": "pv-protection-controller",
    "pod-garbage-collector-controller": "pod-garbage-collector",
    "replicationcontroller-controller": "replication-controller",
    "resourceclaim-controller": "resource-claim-controller",
    "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
    "serviceaccount-controller": "service-account-controller",
    "service-cidr-controller": "service-cidrs-controller",
    "service-lb-controller": "service-controller",
    "persistentvolume-expander-controller": "expand-controller",
    "persistentvolume-attach-detach-controller": "attachdetach-controller",
    "taint-eviction-controller": "node-controller",
    "certificatesigningrequest-approving-controller": "certificate-controller",
    "certificatesigningrequest-signing-controller": "certificate-controller",
    "certificatesigningrequest-cleaner-controller": "certificate-controller",
    f"{_PUBLISHER}-controller": _PUBLISHER,
    "podcertificaterequest-cleaner-controller": "podcertificaterequestcleaner",
    "legacy-serviceaccount-token-cleaner-controller": "legacy-service-account-token-cleaner",
    "bootstrap-signer-controller": "bootstrap-signer",
    "token-cleaner-controller": "token-cleaner",
}


# Upstream's runs with the controller manager's own rights, which reach secrets everywhere.
_OWN_RIGHTS = frozenset({"serviceaccount-token-controller"})

STAGES_USER = "system:sampan:stages"
_USERS = {"stage-controller": STAGES_USER}


def account_name(controller: str) -> str:
    """In kube-system; empty: it acts as the controller manager itself."""
    return "" if controller in _OWN_RIGHTS else _ACCOUNTS.get(controller, controller)


def user_name(controller: str) -> str:
    if controller in _USERS:
        return _USERS[controller]
    account = account_name(controller)
    if not account:
        return "system:kube-controller-manager"
    return f"system:serviceaccount:kube-system:{account}"
