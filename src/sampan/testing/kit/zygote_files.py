"""Where the zygote and whoever started it find each other's files.

Job: names below the kit's directory; both sides read them, and neither imports the other.
"""

KEYS = "pki"
LOG = "log"
KEPT = "kept"  # a file with this name: a cluster was left running, and its files with it
