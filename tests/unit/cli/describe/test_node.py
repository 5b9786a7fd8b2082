"""cli/describe/node.py: pods of a node, and what they take of it, as kubectl shows them."""

from sampan.cli.describe.node import node
from sampan.cli.describe.writer import Writer

NODE = {
    "metadata": {"name": "n1", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {},
    "status": {"allocatable": {"cpu": "20", "memory": "64Gi", "pods": "110"}},
}
SIDECAR = {"restartPolicy": "Always"}
# What kubectl v1.35 wrote of these pods; what a pod asks for as a whole does not count there.
SHOWN = """\
  Namespace                   Name             CPU Requests  CPU Limits   Memory Requests  Memory Limits  Age
  ---------                   ----             ------------  ----------   ---------------  -------------  ---
  desc                        init-first       5 (25%)       6 (30%)      2Gi (3%)         1Gi (1%)       2s
  desc                        limits-only      2 (10%)       2 (10%)      1Gi (1%)         1Gi (1%)       2s
  desc                        nothing          0 (0%)        0 (0%)       0 (0%)           0 (0%)         2s
  desc                        overhead         1250m (6%)    2250m (11%)  1124Mi (1%)      0 (0%)         2s
  desc                        plain            1500m (7%)    2 (10%)      1536Mi (2%)      2Gi (3%)       2s
  desc                        pod-level        1 (5%)        0 (0%)       1Gi (1%)         0 (0%)         2s
  desc                        sidecar-first    6 (30%)       7 (35%)      2Gi (3%)         2Gi (3%)       2s
Allocated resources:
  (Total limits may be over 100 percent, i.e., overcommitted.)
  Resource           Requests      Limits
  --------           --------      ------
  cpu                16750m (83%)  19250m (96%)
  memory             8804Mi (13%)  6Gi (9%)
  ephemeral-storage  0 (0%)        0 (0%)
"""  # noqa: E501  # as wide as it is


def container(name, requests=None, limits=None, **rest):
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **rest}


def amounts(cpu, memory):
    return {"cpu": cpu, "memory": memory}


def pod(name, *containers, init=(), **spec):
    return {
        "metadata": {
            "name": name, "namespace": "desc", "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
    }  # fmt: skip


def pods():
    small, large = amounts("1", "1Gi"), amounts("5", "1Gi")
    init = container("i", large, amounts("6", "1Gi"))
    sidecar = container("s", small, small, **SIDECAR)
    whole = {"requests": amounts("3", "3Gi"), "limits": amounts("4", "4Gi")}
    return [
        pod(
            "plain",
            container("a", small, amounts("2", "2Gi")),
            container("b", amounts("500m", "512Mi")),
        ),
        pod("init-first", container("a", small), init=[init, sidecar]),
        pod("sidecar-first", container("a", small), init=[sidecar, init]),
        pod("overhead", container("a", small, {"cpu": "2"}), overhead=amounts("250m", "100Mi")),
        pod("pod-level", container("a", small), resources=whole),
        pod("limits-only", container("a", amounts("2", "1Gi"), amounts("2", "1Gi"))),
        pod("nothing", container("a")),
        {**pod("over", container("a", large)), "status": {"phase": "Succeeded"}},
    ]


def test_pods_of_a_node_are_counted_as_kubectl_counts_them():
    writer = Writer()
    node(writer, NODE, pods(), "none", 1767225602.0)
    assert SHOWN in writer.text()
