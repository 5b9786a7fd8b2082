"""As whom a node's network asks the API: a service account of its own, not the kubelet.

Job: the account, and the tokens of it that a kubelet may ask for: bound to its Node.
"""

from sampan.api.rules.account_token import NETWORK_ACCOUNT, NETWORK_NAMESPACE
from sampan.client.account_identity import Account

USER = f"system:serviceaccount:{NETWORK_NAMESPACE}:{NETWORK_ACCOUNT}"


def account_of(node_name: str) -> Account:
    return Account(NETWORK_NAMESPACE, NETWORK_ACCOUNT, bound_node=node_name)
