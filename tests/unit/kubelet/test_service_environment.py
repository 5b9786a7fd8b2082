"""[N10] service variables"""

from sampan.kubelet.service_environment import service_variables
from sampan.testing.simulated_node import pod_named


def service(name, namespace="default", ip="10.0.0.1", *ports):
    listed = [{"port": number, "name": word} for number, word in ports or [(80, "")]]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": ip, "ports": listed},
    }


def pod(**spec):
    made = pod_named("web", **spec)
    made["metadata"]["namespace"] = "mine"
    return made


API = service("kubernetes", "default", "10.0.0.1", (443, "https"))
OURS = service("my-db", "mine", "10.0.0.2", (5432, "sql"), (9090, "metrics"))


def test_a_service_has_its_address_its_ports_and_its_links():
    assert service_variables(pod(), [OURS]) == {
        "MY_DB_SERVICE_HOST": "10.0.0.2",
        "MY_DB_SERVICE_PORT": "5432",
        "MY_DB_SERVICE_PORT_SQL": "5432",
        "MY_DB_SERVICE_PORT_METRICS": "9090",
        "MY_DB_PORT": "tcp://10.0.0.2:5432",
        "MY_DB_PORT_5432_TCP": "tcp://10.0.0.2:5432",
        "MY_DB_PORT_5432_TCP_PROTO": "tcp",
        "MY_DB_PORT_5432_TCP_PORT": "5432",
        "MY_DB_PORT_5432_TCP_ADDR": "10.0.0.2",
        "MY_DB_PORT_9090_TCP": "tcp://10.0.0.2:9090",
        "MY_DB_PORT_9090_TCP_PROTO": "tcp",
        "MY_DB_PORT_9090_TCP_PORT": "9090",
        "MY_DB_PORT_9090_TCP_ADDR": "10.0.0.2",
    }


def test_the_api_is_always_there_and_others_by_choice():
    links_off = service_variables(pod(enableServiceLinks=False), [API, OURS])
    assert links_off["KUBERNETES_SERVICE_HOST"] == "10.0.0.1"
    assert "MY_DB_SERVICE_HOST" not in links_off
    assert "MY_DB_SERVICE_HOST" in service_variables(pod(), [API, OURS])


def test_services_of_other_namespaces_and_those_without_an_address_are_left_out():
    foreign, headless = service("a", "theirs"), service("b", "mine", "None")
    assert service_variables(pod(), [foreign, headless]) == {}
