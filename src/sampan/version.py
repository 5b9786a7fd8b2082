"""Which sampan this is, and which Kubernetes it speaks."""

VERSION = "0.2.0.dev0"  # the one place: the package is built with it
KUBERNETES_VERSION = "v1.35.0"
GIT_VERSION = f"{KUBERNETES_VERSION}+sampan-{VERSION}"
