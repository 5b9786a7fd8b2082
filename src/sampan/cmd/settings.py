"""What a user can choose about `sampan up`, as one frozen value.

Job: hold the choices, with their defaults. Flags become this in cmd/main.py and nowhere else.
"""

from dataclasses import dataclass
from typing import Literal

RuntimeChoice = Literal["auto", "cri", "simulated", "none"]
DEFAULT_DATA_DIR = "./sampan-data"
DEFAULT_PORT = 6443
SERVICE_CIDR = "10.96.0.0/12"
CLUSTER_DOMAIN = "cluster.local"


@dataclass(frozen=True, slots=True)
class UpSettings:
    data_dir: str = DEFAULT_DATA_DIR
    kubeconfig: str = ""  # also write it here; it is always in the data dir
    bind_address: str = "127.0.0.1"
    port: int = DEFAULT_PORT  # 0: the one of last time if it is free, else any
    store: str = ""  # empty: SQLite in the data dir
    runtime: RuntimeChoice = "auto"
    nodes: int = 1  # simulated ones
    cri_socket: str = ""
    node_name: str = ""
    node_ip: str = ""
    ready_file: str = ""
    log_level: str = "warning"
    keep_pods: bool = False
