"""Which ports of a cluster without root are on the machine, and what comes through them."""

import asyncio

from sampan.cmd.rootless.outside import Outside
from sampan.cmd.rootless.published_ports import PublishedPorts, wanted_ports
from sampan.core.clock import SystemClock


def service(kind, *ports):
    return {"spec": {"type": kind, "ports": list(ports)}}


def pod(phase, *ports):
    return {"spec": {"containers": [{"ports": list(ports)}]}, "status": {"phase": phase}}


def test_ports_of_services_and_pods():
    services = [
        service("ClusterIP", {"port": 1}),
        service("NodePort", {"port": 80, "nodePort": 30001},
                {"port": 53, "nodePort": 30002, "protocol": "UDP"}),
        service("LoadBalancer", {"port": 8000, "nodePort": 30003, "protocol": "TCP"}),
        {"spec": {"type": "ExternalName", "externalName": "x"}},
    ]  # fmt: skip
    pods = [
        pod("Running", {"containerPort": 1, "hostPort": 2001}, {"containerPort": 2}),
        pod("Running", {"containerPort": 1, "hostPort": 2002, "protocol": "UDP"}),
        pod("Failed", {"containerPort": 1, "hostPort": 2003}),
        {"spec": {}},
    ]
    assert wanted_ports(services, pods) == {
        ("TCP", 30001), ("UDP", 30002), ("TCP", 30003), ("TCP", 8000), ("TCP", 2001),
        ("UDP", 2002),
    }  # fmt: skip


def test_connections_are_led_inside_until_a_port_is_not_wanted_any_more():
    async def story():
        async def echo(reader, writer):
            writer.write(await reader.read())
            writer.close()

        inside = await asyncio.start_server(echo, "127.0.0.2", 0)
        port = inside.sockets[0].getsockname()[1]
        outside = Outside()
        ports = PublishedPorts(outside, "127.0.0.1", "127.0.0.2", SystemClock())
        try:
            await ports._follow({("TCP", port)})
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello")
            writer.write_eof()
            assert await reader.read() == b"hello"
            writer.close()
            taken = await asyncio.start_server(echo, "127.0.0.1", 0)
            port = taken.sockets[0].getsockname()[1]
            await ports._follow({("TCP", port)})  # somebody else's: left
            assert not ports._servers
            taken.close()
        finally:
            await ports._tasks.stop()
            outside.close()
            inside.close()

    asyncio.run(story())
