from sampan.kubelet.container_spec.service_environment import service_variables


def service(name, namespace="shop", address="10.96.0.7", ports=({"port": 80},)):
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": address, "ports": list(ports)},
    }


KUBERNETES = service("kubernetes", "default", "10.96.0.1", ({"port": 443, "name": "https"},))


def test_a_service_has_the_variables_that_upstream_gives_it():
    ports = (
        {"port": 80, "name": "web-ui", "protocol": "TCP"},
        {"port": 53, "protocol": "UDP"},
    )
    assert service_variables([service("my-db", ports=ports)], "shop", service_links=True) == {
        "MY_DB_SERVICE_HOST": "10.96.0.7",
        "MY_DB_SERVICE_PORT": "80",
        "MY_DB_SERVICE_PORT_WEB_UI": "80",
        "MY_DB_PORT": "tcp://10.96.0.7:80",
        "MY_DB_PORT_80_TCP": "tcp://10.96.0.7:80",
        "MY_DB_PORT_80_TCP_PROTO": "tcp",
        "MY_DB_PORT_80_TCP_PORT": "80",
        "MY_DB_PORT_80_TCP_ADDR": "10.96.0.7",
        "MY_DB_PORT_53_UDP": "udp://10.96.0.7:53",
        "MY_DB_PORT_53_UDP_PROTO": "udp",
        "MY_DB_PORT_53_UDP_PORT": "53",
        "MY_DB_PORT_53_UDP_ADDR": "10.96.0.7",
    }


def test_the_api_server_is_always_there_and_the_rest_only_with_links():
    services = [KUBERNETES, service("db")]
    without = service_variables(services, "shop", service_links=False)
    assert without["KUBERNETES_SERVICE_HOST"] == "10.96.0.1"
    assert not any(name.startswith("DB_") for name in without)
    assert "DB_SERVICE_HOST" in service_variables(services, "shop", service_links=True)


def test_a_namespace_s_own_kubernetes_comes_before_the_default_one():
    own = service("kubernetes", address="10.96.0.99")
    for services in ([own, KUBERNETES], [KUBERNETES, own]):
        found = service_variables(services, "shop", service_links=True)
        assert found["KUBERNETES_SERVICE_HOST"] == "10.96.0.99"


def test_services_without_an_address_and_of_other_namespaces_are_left_out():
    services = [service("a", address="None"), service("b", address=""), service("c", "other")]
    assert service_variables(services, "shop", service_links=True) == {}


def test_an_ipv6_address_is_bracketed_in_urls_only():
    found = service_variables([service("a", address="fd00::7")], "shop", service_links=True)
    assert found["A_PORT"] == "tcp://[fd00::7]:80"
    assert found["A_SERVICE_HOST"] == "fd00::7"


def test_the_kubernetes_service_stays_in_its_own_namespace_without_links():
    found = service_variables([KUBERNETES], "default", service_links=False)
    assert found["KUBERNETES_SERVICE_PORT_HTTPS"] == "443"
