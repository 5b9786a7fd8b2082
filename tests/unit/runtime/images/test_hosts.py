"""Which hosts are asked for the images of a registry: certs.d as containerd reads it."""

import asyncio

import pytest

from sampan.core.clock import SystemClock
from sampan.core.http.messages import Response
from sampan.core.http.server import Server
from sampan.core.tls import server_context
from sampan.runtime.images.content import ImageError
from sampan.runtime.images.hosts import Encryption, Host, hosts_of
from sampan.runtime.images.registry_client import RegistryClient, contexts_of
from tests.support.parts.certificates import Authority


def written(root, registry, text):
    (root / registry).mkdir(parents=True)
    (root / registry / "hosts.toml").write_text(text)


def apis(registry, *roots):
    return [host.api for host in hosts_of(registry, roots)]


def test_only_this_machine_is_asked_without_encryption():
    assert apis("127.0.0.1:5000") == ["http://127.0.0.1:5000/v2"]
    assert apis("localhost") == ["http://localhost/v2"]
    assert apis("ghcr.io") == ["https://ghcr.io/v2"]
    assert apis("docker.io") == ["https://registry-1.docker.io/v2"]


def test_mirrors_come_in_their_order_and_the_registry_last(tmp_path):
    lines = '[host."http://first.example/"]\n[host."https://second.example"]\n'
    written(tmp_path, "docker.io", lines)
    found = hosts_of("docker.io", (tmp_path,))
    assert [host.api for host in found] == [
        "http://first.example/v2", "https://second.example/v2", "https://registry-1.docker.io/v2",
    ]  # fmt: skip
    assert [host.is_mirror_of("docker.io") for host in found] == [True, True, False]


def test_a_file_says_all_of_a_host(tmp_path):
    written(tmp_path, "example.com", """
server = "https://upstream.example"
ca = "own.pem"
[host."mirror.example/images"]
  capabilities = ["pull"]
  ca = ["a.pem", "/etc/b.pem"]
  client = [["c.cert", "c.key"], "both.pem"]
  skip_verify = true
  override_path = true
  dial_timeout = "500ms"
  [host."mirror.example/images".header]
    X-Team = ["a", "b"]
[host."http://plain.example/v2"]
""")  # fmt: skip
    first, second, last = hosts_of("example.com", (tmp_path,))
    here = tmp_path / "example.com"
    assert first == Host(
        "https://mirror.example/images",
        frozenset({"pull"}),
        Encryption(
            (f"{here}/a.pem", "/etc/b.pem"),
            ((f"{here}/c.cert", f"{here}/c.key"), (f"{here}/both.pem", "")),
            True,
        ),
        (("x-team", "a"), ("x-team", "b")),
        0.5,
    )
    assert second == Host("http://plain.example/v2")
    assert last == Host("https://upstream.example/v2", encryption=Encryption((f"{here}/own.pem",)))


def test_a_directory_is_found_with_and_without_its_port_and_for_all(tmp_path):
    written(tmp_path / "a", "example.com_5000_", 'server = "https://with-port"\n')
    written(tmp_path / "b", "example.com:5000", 'server = "https://with-colon"\n')
    written(tmp_path / "c", "_default", 'server = "https://for-all"\n')
    assert apis("example.com:5000", tmp_path / "a") == ["https://with-port/v2"]
    assert apis("example.com:5000", tmp_path / "none", tmp_path / "b") == ["https://with-colon/v2"]
    assert apis("anything", tmp_path / "c") == ["https://for-all/v2"]


def test_certificates_alone_are_those_of_the_registry(tmp_path):
    place = tmp_path / "example.com"
    place.mkdir()
    for name in ("ca.crt", "me.cert", "me.key"):
        (place / name).touch()
    (found,) = hosts_of("example.com", (tmp_path,))
    assert found.encryption == Encryption(
        (f"{place}/ca.crt",), ((f"{place}/me.cert", f"{place}/me.key"),)
    )
    (place / "me.key").unlink()
    with pytest.raises(ImageError, match="lacks its key"):
        hosts_of("example.com", (tmp_path,))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("server = ", "cannot be read"),
        ('[host."x"]\ncapability = ["pull"]', "unknown: capability"),
        ('[host."x"]\ncapabilities = ["fly"]', "unknown capability fly"),
        ('[host."x"]\nca = 3', "not as it should be"),
        ('[host."x"]\nclient = [["a"]]', "not as it should be"),
        ('[host."x"]\ndial_timeout = "soon"', "no duration"),
        ('[host."https://"]', "no URL of a host"),
        ("host = 3", "not as it should be"),
    ],
)
def test_a_file_that_cannot_be_understood_stops_the_pull(tmp_path, text, sentence):
    written(tmp_path, "example.com", text)
    with pytest.raises(ImageError, match=sentence):
        hosts_of("example.com", (tmp_path,))


def test_a_registry_with_certificates_of_its_own(tmp_path):
    """Its authority is trusted for it alone; it wants to see a certificate."""
    authority = Authority(tmp_path)
    own, client = authority.issue("registry"), authority.issue("me")
    ca = str(authority.ca_path)
    seen = []

    async def answer(request):
        seen.append((request.path, request.query, request.headers.get("x-team")))
        return Response(200, (), b"{}")

    async def ask(port, **settings):
        host = Host(f"https://127.0.0.1:{port}/v2", **settings)
        client = RegistryClient(host, contexts_of(host.encryption), "example.com", "team/app", None)
        try:
            return (await client.get("manifests/1", "*/*")).status
        finally:
            await client.close()

    async def story():
        context = server_context(own.cert_path, own.key_path, ca, require_client_cert=True)
        server = Server(answer, clock=SystemClock(), name="registry", ssl_context=context)
        port = await server.start("127.0.0.1", 0)
        pair = ((str(client.cert_path), str(client.key_path)),)
        try:
            known = Encryption((ca,), pair)
            headers = (("x-team", "a"),)
            assert await ask(port, encryption=known, headers=headers) == 200
            assert await ask(port, encryption=Encryption((), pair, True)) == 200
            for wrong in (Encryption((), pair), Encryption((ca,))):
                with pytest.raises(OSError, match=r"(?i)certificate|closed|reset|ssl"):
                    await ask(port, encryption=wrong)
        finally:
            await server.stop(0)

    asyncio.run(story())
    assert seen[0] == ("/v2/team/app/manifests/1", "ns=example.com", "a")
    assert len(seen) == 2
    with pytest.raises(ImageError, match="cannot be used"):
        contexts_of(Encryption(("/no/such",)))
