"""Which sampan this is, and which Kubernetes it speaks."""

VERSION = "0.1.0"
KUBERNETES_VERSION = "v1.35.0"
GIT_VERSION = f"{KUBERNETES_VERSION}+sampan-{VERSION}"
