"""As whom the parts of a node beside the kubelet ask the API: each a service account of its own;
as whom the ingress controller does.

Job: the accounts, and the tokens of them that a kubelet may ask for: bound to its Node.
"""

from sampan.api.rules.tokens.account_token import NETWORK_ACCOUNT, NODE_ACCOUNTS_NAMESPACE
from sampan.client.account_identity import Account

INGRESS_USER = "system:sampan:ingress"
NETWORK_USER = f"system:serviceaccount:{NODE_ACCOUNTS_NAMESPACE}:{NETWORK_ACCOUNT}"


def account_of(account: str, node_name: str) -> Account:
    return Account(NODE_ACCOUNTS_NAMESPACE, account, bound_node=node_name)
