"""Where the kit's processes and whoever started them find each other's files.

Job: names below the kit's directories; both sides read them, and neither imports the other.
"""

KEYS = "pki"
LOG = "log"
KEPT = "kept"  # a file with this name: a cluster was left running, and its files with it
DATA = "data"  # of a cluster with a real node, in its directory
