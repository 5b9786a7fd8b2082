"""The ConfigMap in which a cluster says its ranges of addresses to nodes that join. Pure.

Job: its name, for whoever writes, reads and allows it; kubeadm's is `kubeadm-config`.
"""

NAMESPACE, NAME = "kube-system", "sampan-config"
