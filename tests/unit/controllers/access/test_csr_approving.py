import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sampan.cmd.cluster import bootstrap
from sampan.controllers.access.csr_approving import serving_verdict

KEY = ec.generate_private_key(ec.SECP256R1())


def node(name, *addresses):
    found = [{"type": "InternalIP", "address": each} for each in addresses]
    return {"metadata": {"name": name}, "status": {"addresses": found}}


def request(name="n1", address="192.0.2.1", user="system:node:n1", **fields):
    csr = bootstrap.request_of(KEY, name, bootstrap.serving(name, [address]))
    csr["spec"] |= {"username": user, **fields}
    return csr


ME, OTHER = node("n1", "192.0.2.1"), node("n2", "192.0.2.2")


@pytest.mark.parametrize(
    ("csr", "nodes", "verdict"),
    [
        (request(), [ME, OTHER], "approve"),
        (request(), [OTHER], "wait"),
        (request(), [node("n1"), OTHER], "wait"),
        (request(address="192.0.2.2"), [ME, OTHER], ""),
        (request(address="127.0.0.1"), [node("n1", "127.0.0.1")], "wait"),
        (request(user="system:node:n2"), [ME, OTHER], ""),
        (request(user="somebody"), [ME], ""),
        (request(usages=["client auth"]), [ME], ""),
        (request(signerName="kubernetes.io/legacy-unknown"), [ME], ""),
    ],
    ids=["its own", "no node yet", "no address yet", "another's address", "loopback",
         "for another node", "no node asks", "other usages", "another signer"],
)  # fmt: skip
def test_a_node_s_server_gets_a_certificate_for_its_own_name_and_addresses(csr, nodes, verdict):
    assert serving_verdict(csr, nodes) == verdict


@pytest.mark.parametrize(
    "name",
    [
        "kubernetes", "kubernetes.default", "kubernetes.default.svc", "web.other.svc",
        "kubernetes.default.svc.cluster.local", "Kubernetes.Default.SVC", "localhost",
    ],
)  # fmt: skip
def test_no_node_is_called_like_a_service(name):
    """An attack: whoever joins chooses the name, and would be the API server to everybody else."""
    csr = request(name, user=f"system:node:{name}")
    assert serving_verdict(csr, [node(name, "192.0.2.1")]) == ""


def test_no_node_has_the_address_of_a_service():
    """An attack: a node says itself which addresses it has."""
    csr, mine = request(address="10.96.0.1"), [node("n1", "10.96.0.1")]
    assert serving_verdict(csr, mine, ["10.96.0.0/16", "fd00::/108"]) == ""
    assert serving_verdict(csr, mine, ["10.97.0.0/16"]) == "approve"


def test_a_machine_of_a_local_domain_is_no_service():
    csr = request("box.local", user="system:node:box.local")
    assert serving_verdict(csr, [node("box.local", "192.0.2.1")]) == "approve"
