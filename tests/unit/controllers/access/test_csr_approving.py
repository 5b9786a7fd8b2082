import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sampan.cmd.cluster import bootstrap
from sampan.controllers.access.csr_approving import serving_verdict

KEY = ec.generate_private_key(ec.SECP256R1())


def node(name, *addresses):
    found = [{"type": "InternalIP", "address": each} for each in addresses]
    return {"metadata": {"name": name}, "status": {"addresses": found}}


def request(name="n1", address="192.0.2.1", user="system:node:n1", **fields):
    csr = bootstrap.request_of(KEY, name, bootstrap.serving(name, address))
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
