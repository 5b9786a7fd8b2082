"""The Runtime contract over CRI, against a made-up runtime behind a real gRPC socket."""

import asyncio
import json
from dataclasses import replace

import grpc
import grpc.aio
import pytest
from google.protobuf.any_pb2 import Any
from google.protobuf.timestamp_pb2 import Timestamp

from sampan.core.clock import SystemClock
from sampan.cri.gen import containerd_events_pb2 as containerd
from sampan.cri.gen import containerd_tasks_pb2 as tasks
from sampan.cri.gen import runtime_pb2 as cri
from sampan.kubelet.contracts.runtime import (
    ContainerSpec,
    ContainerState,
    HostFile,
    ImageNotFound,
    PortMapping,
    RuntimeFailure,
    RuntimeUnavailable,
    SandboxSpec,
)
from sampan.kubelet.runtime.cri_runtime import CriRuntime

LABELS = {"io.kubernetes.pod.uid": "u1", "io.kubernetes.pod.name": "web"}
META = cri.PodSandboxMetadata(name="web", namespace="shop", uid="u1")


class Hurrying(SystemClock):
    """It is 40 s later whenever somebody looks: the second time, a minute is over."""

    seconds = 0.0

    def monotonic(self):
        self.seconds += 40
        return self.seconds


class MadeUp:
    """Answers what it was told to; the rest is UNIMPLEMENTED."""

    def __init__(self, path):
        self.path = str(path)
        self.answers = {
            "Version": cri.VersionResponse(runtime_name="containerd", runtime_version="9"),
            "Status": cri.StatusResponse(
                status=cri.RuntimeStatus(
                    conditions=[
                        cri.RuntimeCondition(type="RuntimeReady", status=True),
                        cri.RuntimeCondition(
                            type="NetworkReady", status=False, message="no CNI config"
                        ),
                    ]
                )
            ),
        }
        self.asked = []
        self.events = []

    async def __aenter__(self):
        self.server = grpc.aio.server()
        self.server.add_generic_rpc_handlers((self,))
        self.server.add_insecure_port(f"unix://{self.path}")
        await self.server.start()
        self.runtime = CriRuntime(self.path, SystemClock())
        return self

    async def __aexit__(self, *_):
        await self.runtime.close()
        await self.server.stop(None)

    def service(self, call):
        method = call.method.rpartition("/")[2]
        if method == "Subscribe":
            return grpc.unary_stream_rpc_method_handler(
                self.subscribe,
                request_deserializer=containerd.SubscribeRequest.FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
        if method not in self.answers:
            return None

        async def handle(request, context):
            self.asked.append((method, request))
            answer = self.answers[method]
            if callable(answer):
                answer = answer(request)
            if isinstance(answer, tuple):
                await context.abort(*answer)
            return answer

        names = {"PodSandboxStatus": "PodSandboxStatusRequest"}
        request = getattr(cri, names.get(method, f"{method}Request"))
        return grpc.unary_unary_rpc_method_handler(
            handle,
            request_deserializer=request.FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )

    async def subscribe(self, request, context):
        for event in self.events:
            yield event


def told(tmp_path, tell):
    async def run():
        async with MadeUp(tmp_path / "s") as other:
            await tell(other)

    asyncio.run(run())


def exit_event(container_id, code):
    ended = tasks.TaskExit(
        container_id=container_id,
        id=container_id,
        exit_status=code,
        exited_at=Timestamp(seconds=77),
    )
    return containerd.Envelope(topic="/tasks/exit", event=Any(value=ended.SerializeToString()))


def running_pod(other, state=cri.CONTAINER_RUNNING):
    sandbox = cri.PodSandbox(id="s1", metadata=META, labels=LABELS, created_at=1)
    container = cri.Container(id="c1", pod_sandbox_id="s1", labels=LABELS, state=state)
    other.answers |= {
        "ListPodSandbox": cri.ListPodSandboxResponse(items=[sandbox]),
        "ListContainers": cri.ListContainersResponse(containers=[container]),
        "PodSandboxStatus": cri.PodSandboxStatusResponse(
            status=cri.PodSandboxStatus(id="s1", metadata=META)
        ),
        "ContainerStatus": cri.ContainerStatusResponse(
            status=cri.ContainerStatus(id="c1", state=state, labels=LABELS)
        ),
    }


def test_the_runtime_s_conditions_are_told_with_their_reasons(tmp_path):
    """[R1]"""

    async def tell(other):
        info = await other.runtime.info()
        assert (info.name, info.ready, info.network_ready) == ("containerd", True, False)
        assert info.message == "no CNI config"

    told(tmp_path, tell)


def test_an_announced_end_is_believed_before_cri_admits_it(tmp_path):
    """[R2]"""

    async def tell(other):
        running_pod(other)
        other.events = [exit_event("c1", 5)]
        await other.runtime.pods()
        event = await anext(other.runtime.events())
        assert (event.uid, event.container_id, event.exit_code) == ("u1", "c1", 5)
        assert event.exited_at == 77.0
        container = (await other.runtime.pod("u1")).containers[0]
        assert (container.state, container.exit_code) == (ContainerState.EXITED, 5)
        assert (container.reason, container.finished_at) == ("Error", 77.0)

    told(tmp_path, tell)


def test_the_stream_s_end_is_an_error_that_says_look_at_everything(tmp_path):
    async def tell(other):
        with pytest.raises(RuntimeUnavailable):
            await anext(other.runtime.events())

    told(tmp_path, tell)


def test_the_end_of_an_unknown_container_is_told_without_a_pod(tmp_path):
    async def tell(other):
        other.events = [exit_event("stranger", 0)]
        assert (await anext(other.runtime.events())).uid == ""

    told(tmp_path, tell)


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("StopPodSandbox", lambda runtime: runtime.stop_sandbox("x")),
        ("RemovePodSandbox", lambda runtime: runtime.remove_sandbox("x")),
        ("StopContainer", lambda runtime: runtime.stop_container("x", 1)),
        ("RemoveContainer", lambda runtime: runtime.remove_container("x")),
        ("RemoveImage", lambda runtime: runtime.remove_image("x")),
    ],
)
def test_what_is_gone_already_counts_as_done(tmp_path, method, call):
    async def tell(other):
        other.answers[method] = (grpc.StatusCode.NOT_FOUND, "gone")
        await call(other.runtime)

    told(tmp_path, tell)


def test_failures_read_as_upstream_prints_them(tmp_path):
    async def tell(other):
        other.answers["StartContainer"] = (grpc.StatusCode.FAILED_PRECONDITION, "no such file")
        with pytest.raises(RuntimeFailure) as caught:
            await other.runtime.start_container("c1")
        text = "rpc error: code = FailedPrecondition desc = no such file"
        assert str(caught.value) == text
        other.answers["PullImage"] = (grpc.StatusCode.NOT_FOUND, "no tag")
        with pytest.raises(ImageNotFound):
            await other.runtime.pull_image("a:1", None)

    told(tmp_path, tell)


@pytest.mark.parametrize(("grace", "asked"), [(0, 0), (0.2, 1), (1.0, 1), (1.5, 2), (30, 30)])
def test_a_grace_is_never_rounded_away(tmp_path, grace, asked):
    async def tell(other):
        other.answers["StopContainer"] = cri.StopContainerResponse()
        await other.runtime.stop_container("c1", grace)
        assert other.asked[-1][1].timeout == asked

    told(tmp_path, tell)


def test_log_directory_and_files_are_there_before_the_container_is_made(tmp_path):
    def check(request):
        assert (tmp_path / "logs" / "c").is_dir()
        assert (tmp_path / "etc-hosts").read_text() == "content"
        return cri.CreateContainerResponse(container_id="c1")

    async def tell(other):
        other.answers["CreateContainer"] = check
        spec = ContainerSpec(
            "c",
            0,
            "sha256:1",
            "app:1",
            log_path="c/0.log",
            host_files=(HostFile(str(tmp_path / "etc-hosts"), "content", 0o600),),
        )
        sandbox = SandboxSpec("p", "ns", "u1", 0, "p", str(tmp_path / "logs"))
        assert await other.runtime.create_container("s1", spec, sandbox) == "c1"
        assert (tmp_path / "etc-hosts").stat().st_mode & 0o777 == 0o600

    told(tmp_path, tell)


def test_where_one_network_does_everything_no_pod_needs_another(tmp_path):
    async def tell(other):
        other.answers["RunPodSandbox"] = lambda _: cri.RunPodSandboxResponse(pod_sandbox_id="s1")
        runtime = CriRuntime(other.path, SystemClock(), one_network=True)
        ports = SandboxSpec("p", "ns", "u1", 0, "p", "/l", port_mappings=(PortMapping(80, 8080),))
        limited = replace(ports, annotations={"kubernetes.io/ingress-bandwidth": "1M"})
        for spec in (ports, limited):
            await runtime.run_sandbox(spec)
        await runtime.close()
        assert [request.runtime_handler for _, request in other.asked] == ["", ""]

    told(tmp_path, tell)


def test_host_ports_use_their_own_handler_only_where_there_is_one(tmp_path):
    def run(request):
        if request.runtime_handler:
            return (grpc.StatusCode.UNKNOWN, 'no runtime for "host-ports" is configured')
        return cri.RunPodSandboxResponse(pod_sandbox_id="s1")

    async def tell(other):
        other.answers["RunPodSandbox"] = run
        spec = SandboxSpec("p", "ns", "u1", 0, "p", "/l", port_mappings=(PortMapping(80, 8080),))
        for _ in range(2):
            assert await other.runtime.run_sandbox(spec) == "s1"
        handlers = [request.runtime_handler for _, request in other.asked]
        assert handlers == ["host-ports", "", ""]

    told(tmp_path, tell)


def test_a_container_that_goes_while_we_look_is_left_out(tmp_path):
    async def tell(other):
        running_pod(other)
        other.answers["ContainerStatus"] = (grpc.StatusCode.NOT_FOUND, "gone")
        pod = await other.runtime.pod("u1")
        assert (len(pod.sandboxes), len(pod.containers)) == (1, 0)

    told(tmp_path, tell)


def test_a_runtime_without_cri_v1_is_told_apart_from_none(tmp_path):
    """[R1] and what to do about it is said"""

    async def tell(other):
        other.answers.pop("Version", None)
        hurried = CriRuntime(other.path, Hurrying())
        with pytest.raises(RuntimeFailure, match=r"does not speak CRI v1.*disabled_plugins"):
            await hurried.connect(60)
        await hurried.close()

    told(tmp_path, tell)


@pytest.mark.parametrize(
    ("answers", "driver"),
    [
        ({"RuntimeConfig": cri.RuntimeConfigResponse(
            linux={"cgroup_driver": cri.SYSTEMD})}, "systemd"),
        ({"RuntimeConfig": cri.RuntimeConfigResponse(
            linux={"cgroup_driver": cri.CGROUPFS})}, "cgroupfs"),
        ({"Status": cri.StatusResponse(info={"config": json.dumps(
            {"containerd": {"runtimes": {"runc": {"options": {"SystemdCgroup": True}}}}})})},
         "systemd"),
        ({"Status": cri.StatusResponse()}, ""),
    ],
)  # fmt: skip
def test_the_cgroup_driver_is_the_runtimes_word(tmp_path, answers, driver):
    """[N16] newer ones are asked; containerd 1.6 shows it in its configuration"""

    async def tell(other):
        other.answers |= answers
        assert await other.runtime.cgroup_driver() == driver

    told(tmp_path, tell)
