"""Tasks › Configure Pods and Containers, walked on real containers."""

import base64
import json

import pytest

from tests.e2e.tasks.objects import WEB, container, pod

pytestmark = [pytest.mark.containerd, pytest.mark.kubectl, pytest.mark.slow]
page = pytest.mark.page
CONFIGURE = "tasks/configure-pod-container"


@page(f"{CONFIGURE}/assign-memory-resource")
def test_memory_requests_and_limits(reader):
    memory = {"requests": {"memory": "50Mi"}, "limits": {"memory": "100Mi"}}
    reader.run_pod("memory-demo", container_fields={"resources": memory})
    assert reader.get("pod", "memory-demo")["spec"]["containers"][0]["resources"] == memory
    hungry = {"resources": {"requests": {"memory": "16Mi"}, "limits": {"memory": "32Mi"}}}
    reader.create(pod("memory-demo-2", "tail", "/dev/zero", container_fields=hungry))
    ended = ".status.containerStatuses[0]..terminated.reason"
    reader.sees(lambda: "OOMKilled" in reader.field("pod memory-demo-2", ended))
    greedy = {"resources": {"requests": {"memory": "1000Gi"}, "limits": {"memory": "1000Gi"}}}
    reader.create(pod("memory-demo-3", container_fields=greedy))
    reader.sees(lambda: "FailedScheduling" in reader.reasons("memory-demo-3"))
    assert reader.field("pod memory-demo-3", ".status.phase") == "Pending"
    assert "Insufficient memory" in reader("describe", "pod", "memory-demo-3")


@page(f"{CONFIGURE}/assign-cpu-resource")
def test_cpu_requests_and_limits(reader):
    cpu = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
    busy = ("sh", "-c", "while :; do :; done")
    reader.run_pod("cpu-demo", *busy, container_fields={"resources": cpu})
    reader.create(pod("cpu-demo-2", container_fields={"resources": {"requests": {"cpu": "100"}}}))
    reader.sees(lambda: "FailedScheduling" in reader.reasons("cpu-demo-2"))
    assert "Insufficient cpu" in reader("describe", "pod", "cpu-demo-2")


@page(f"{CONFIGURE}/assign-pod-level-resources")
def test_resources_of_the_whole_pod(reader):
    resources = {"requests": {"memory": "50Mi"}, "limits": {"memory": "100Mi", "cpu": "500m"}}
    reader.run_pod("pod-resources-demo", resources=resources)
    spec = reader.get("pod", "pod-resources-demo")["spec"]
    assert spec["resources"]["limits"] == {"memory": "100Mi", "cpu": "500m"}


@page(f"{CONFIGURE}/resize-container-resources")
@pytest.mark.kubectl_since(32)
def test_cpu_is_resized_in_place_and_memory_by_a_restart(reader):
    policy = [
        {"resourceName": "cpu", "restartPolicy": "NotRequired"},
        {"resourceName": "memory", "restartPolicy": "RestartContainer"},
    ]
    before = {"limits": {"memory": "100Mi", "cpu": "100m"}}
    before["requests"] = before["limits"]
    reader.run_pod("resize-demo", container_fields={"resources": before, "resizePolicy": policy})

    def resize(**limits):
        found = {"requests": limits, "limits": limits}
        patch = {"spec": {"containers": [{"name": "main", "resources": found}]}}
        reader("patch", "pod", "resize-demo", "--subresource", "resize", "-p", json.dumps(patch))

    status = ".status.containerStatuses[0]"
    resize(cpu="200m")
    reader.sees(lambda: reader.field("pod resize-demo", f"{status}.resources.limits.cpu") == "200m")
    assert reader.field("pod resize-demo", f"{status}.restartCount") == "0"
    resize(memory="150Mi")
    reader.sees(lambda: reader.field("pod resize-demo", f"{status}.restartCount") == "1")
    resize(cpu="1000")
    infeasible = '.status.conditions[?(@.type=="PodResizePending")].reason'
    reader.sees(lambda: reader.field("pod resize-demo", infeasible) == "Infeasible")


@page(f"{CONFIGURE}/configure-volume-storage")
def test_an_empty_dir_outlives_its_container(reader):
    storage = {"volumeMounts": [{"name": "storage", "mountPath": "/data/redis"}]}
    volumes = [{"name": "storage", "emptyDir": {}}]
    loop = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
    reader.run_pod("redis", *loop, container_fields=storage, volumes=volumes)
    reader.exec("redis", "sh", "-c", "echo Hello > /data/redis/test-file")
    reader.exec("redis", "kill", "1")
    restarts = ".status.containerStatuses[0].restartCount"
    reader.sees(lambda: reader.field("pod redis", restarts) == "1")
    reader.ready("pod/redis")
    assert reader.exec("redis", "cat", "/data/redis/test-file") == "Hello\n"


@page(f"{CONFIGURE}/configure-persistent-volume-storage")
def test_a_claim_finds_the_volume_of_its_class(reader, folder):
    (folder / "index.html").write_text("Hello from Kubernetes storage\n")
    name = f"task-pv-{reader.namespace}"
    spec = {
        "storageClassName": "manual", "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"], "hostPath": {"path": str(folder)},
        "claimRef": {"namespace": reader.namespace, "name": "task-pv-claim"},
    }  # fmt: skip
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}}
    reader.create({**volume, "spec": spec})
    assert reader.field(f"pv {name}", ".status.phase") in ("Pending", "Available")
    claim = {
        "storageClassName": "manual", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "500Mi"}},
    }  # fmt: skip
    meta = {"name": "task-pv-claim"}
    reader.create(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim}
    )
    reader.sees(lambda: reader.field("pvc task-pv-claim", ".status.phase") == "Bound")
    mount = {"volumeMounts": [{"name": "storage", "mountPath": "/usr/share/html"}]}
    claimed = [{"name": "storage", "persistentVolumeClaim": {"claimName": "task-pv-claim"}}]
    reader.run_pod("task-pv-pod", container_fields=mount, volumes=claimed)
    shown = reader.exec("task-pv-pod", "cat", "/usr/share/html/index.html")
    assert shown == "Hello from Kubernetes storage\n"
    reader("delete", "pod", "task-pv-pod", "--now")
    reader("delete", "pvc", "task-pv-claim")
    reader.sees(lambda: reader.field(f"pv {name}", ".status.phase") == "Released")
    reader("delete", "pv", name)


@page(f"{CONFIGURE}/configure-projected-volume-storage")
def test_two_secrets_in_one_directory(reader):
    reader("create", "secret", "generic", "user", "--from-literal=username=admin")
    reader("create", "secret", "generic", "pass", "--from-literal=password=1f2d1e2e67df")
    sources = [{"secret": {"name": "user"}}, {"secret": {"name": "pass"}}]
    volumes = [{"name": "all-in-one", "projected": {"sources": sources}}]
    mount = {"name": "all-in-one", "mountPath": "/projected-volume", "readOnly": True}
    reader.run_pod("test-projected", container_fields={"volumeMounts": [mount]}, volumes=volumes)
    assert reader.exec("test-projected", "ls", "/projected-volume/").split() == [
        "password", "username",
    ]  # fmt: skip


@page(f"{CONFIGURE}/security-context")
def test_users_groups_and_capabilities(reader):
    context = {"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [4000]}
    mount = {"volumeMounts": [{"name": "vol", "mountPath": "/data/demo"}]}
    reader.run_pod(
        "security-context-demo", container_fields=mount, securityContext=context,
        volumes=[{"name": "vol", "emptyDir": {}}],
    )  # fmt: skip
    identity = reader.exec("security-context-demo", "id")
    assert identity.startswith("uid=1000 gid=3000 groups=")
    assert {"2000", "3000", "4000"} <= set(identity.strip().split("groups=")[1].split(","))
    reader.exec("security-context-demo", "sh", "-c", "echo hello > /data/demo/testfile")
    listed = reader.exec("security-context-demo", "ls", "-ln", "/data/demo").split()
    assert "2000" in listed
    more = {"securityContext": {"runAsUser": 2000, "allowPrivilegeEscalation": False}}
    reader.run_pod("security-context-demo-2", container_fields=more, securityContext=context)
    assert reader.exec("security-context-demo-2", "id", "-u") == "2000\n"
    reader.run_pod("plain")
    able = {"securityContext": {"capabilities": {"add": ["NET_ADMIN", "SYS_TIME"]}}}
    reader.run_pod("security-context-demo-4", container_fields=able)

    def bounding(name):
        status = reader.exec(name, "cat", "/proc/1/status")
        [line] = [line for line in status.splitlines() if line.startswith("CapBnd")]
        return int(line.split()[1], 16)

    net_admin, sys_time = 1 << 12, 1 << 25
    assert not bounding("plain") & (net_admin | sys_time)
    assert bounding("security-context-demo-4") & net_admin
    assert bounding("security-context-demo-4") & sys_time


@page(f"{CONFIGURE}/configure-service-account")
def test_a_service_account_and_its_tokens(reader):
    reader.sees(lambda: "default" in reader("get", "serviceaccounts"))
    reader("create", "serviceaccount", "build-robot")
    bare = {"automountServiceAccountToken": False, "serviceAccountName": "build-robot"}
    reader.run_pod("no-token", **bare)
    reader.fails("exec", "no-token", "--", "ls", "/var/run/secrets/kubernetes.io/serviceaccount")
    token = reader("create", "token", "build-robot", "--duration=10m").strip()
    claims = token.split(".")[1]
    shown = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert shown["sub"] == f"system:serviceaccount:{reader.namespace}:build-robot"
    assert shown["exp"] - shown["iat"] == 600
    kind = {"kubernetes.io/service-account.name": "build-robot"}
    reader.create({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "build-robot-secret", "annotations": kind},
    })  # fmt: skip
    reader.sees(lambda: reader.field("secret build-robot-secret", ".data.token") != "")
    source = {
        "serviceAccountToken": {
            "path": "vault-token",
            "expirationSeconds": 7200,
            "audience": "vault",
        }
    }
    volumes = [{"name": "vault-token", "projected": {"sources": [source]}}]
    mount = {"volumeMounts": [{"name": "vault-token", "mountPath": "/var/run/secrets/tokens"}]}
    reader.run_pod(
        "projected", serviceAccountName="build-robot", volumes=volumes, container_fields=mount
    )
    assert reader.exec("projected", "cat", "/var/run/secrets/tokens/vault-token").count(".") == 2


@page(f"{CONFIGURE}/configure-liveness-readiness-startup-probes")
def test_liveness_readiness_and_startup_probes(reader):
    fast = {"periodSeconds": 1, "failureThreshold": 1}
    healthy = {"exec": {"command": ["cat", "/tmp/healthy"]}, "initialDelaySeconds": 1, **fast}
    script = "mkdir -p /tmp; touch /tmp/healthy; sleep 4; rm -f /tmp/healthy; sleep 600"
    reader.run_pod("liveness-exec", "sh", "-c", script, container_fields={"livenessProbe": healthy})
    restarts = ".status.containerStatuses[0].restartCount"
    reader.sees(lambda: int(reader.field("pod liveness-exec", restarts)) >= 1, 90)
    reader.sees(lambda: {"Unhealthy", "Killing"} <= reader.reasons("liveness-exec"))
    web = {
        "image": WEB, "ports": [{"name": "http", "containerPort": 80}],
        "startupProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1},
        "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1},
        "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1},
    }  # fmt: skip
    reader.create(pod("goproxy", container_fields={**web, "command": None}))
    reader.ready("pod/goproxy")


@page(f"{CONFIGURE}/assign-pods-nodes")
def test_a_node_is_chosen_by_its_label_and_by_its_name(reader):
    [node] = reader.get("nodes")["items"]
    name = node["metadata"]["name"]
    disk = f"disk-{reader.namespace}"
    reader("label", "nodes", name, f"{disk}=ssd")
    assert disk in reader("get", "nodes", "--show-labels")
    reader.run_pod("nginx", nodeSelector={disk: "ssd"})
    assert name in reader("get", "pods", "-o", "wide")
    reader.run_pod("by-name", nodeName=name)
    reader("label", "nodes", name, f"{disk}-")


@page(f"{CONFIGURE}/assign-pods-nodes-using-node-affinity")
def test_node_affinity(reader):
    [node] = reader.get("nodes")["items"]
    disk = f"disk-{reader.namespace}"
    reader("label", "nodes", node["metadata"]["name"], f"{disk}=ssd")
    term = {"matchExpressions": [{"key": disk, "operator": "In", "values": ["ssd"]}]}
    rule = "requiredDuringSchedulingIgnoredDuringExecution"
    reader.run_pod("required", affinity={"nodeAffinity": {rule: {"nodeSelectorTerms": [term]}}})
    other = {"matchExpressions": [{"key": disk, "operator": "In", "values": ["hdd"]}]}
    reader.create(pod("nowhere", affinity={"nodeAffinity": {rule: {"nodeSelectorTerms": [other]}}}))
    reader.sees(lambda: "FailedScheduling" in reader.reasons("nowhere"))
    wish = "preferredDuringSchedulingIgnoredDuringExecution"
    preference = [{"weight": 1, "preference": other}]
    reader.run_pod("preferred", affinity={"nodeAffinity": {wish: preference}})
    reader("label", "nodes", node["metadata"]["name"], f"{disk}-")


@page(f"{CONFIGURE}/configure-pod-initialization")
def test_an_init_container_prepares_a_volume(reader):
    work = {"volumeMounts": [{"name": "workdir", "mountPath": "/work-dir"}]}
    script = "echo hello from init > /work-dir/index.html"
    first = container("install", "sh", "-c", script, **work)
    html = {"volumeMounts": [{"name": "workdir", "mountPath": "/usr/share/html"}]}
    volumes = [{"name": "workdir", "emptyDir": {}}]
    reader.run_pod("init-demo", container_fields=html, initContainers=[first], volumes=volumes)
    assert reader.exec("init-demo", "cat", "/usr/share/html/index.html") == "hello from init\n"


@page(f"{CONFIGURE}/attach-handler-lifecycle-event")
def test_handlers_at_start_and_stop(reader):
    hooks = {
        "postStart": {"exec": {"command": ["sh", "-c", "echo Hello from postStart > /message"]}},
        "preStop": {"exec": {"command": ["sh", "-c", "echo bye > /message"]}},
    }
    reader.run_pod("lifecycle-demo", container_fields={"lifecycle": hooks})
    assert reader.exec("lifecycle-demo", "cat", "/message") == "Hello from postStart\n"


@page(f"{CONFIGURE}/configure-pod-configmap")
def test_config_maps_as_environment_and_as_files(reader, folder):
    (folder / "game.properties").write_text("enemies=aliens\nlives=3\n")
    (folder / "ui.properties").write_text("color.good=purple\n")
    reader("create", "configmap", "game-config", f"--from-file={folder}")
    assert set(reader.get("configmap", "game-config")["data"]) == {
        "game.properties", "ui.properties",
    }  # fmt: skip
    (folder / "env").write_text("ENEMIES=aliens\n# a comment\nLIVES=3\n")
    reader("create", "configmap", "from-env", f"--from-env-file={folder / 'env'}")
    assert reader.get("configmap", "from-env")["data"] == {"ENEMIES": "aliens", "LIVES": "3"}
    literals = ("--from-literal=special.how=very", "--from-literal=special.type=charm")
    reader("create", "configmap", "special-config", *literals)
    how = {"name": "special-config", "key": "special.how"}
    environment = [{"name": "SPECIAL_LEVEL_KEY", "valueFrom": {"configMapKeyRef": how}}]
    fields = {"env": environment, "envFrom": [{"configMapRef": {"name": "from-env"}}]}
    script = 'echo "$SPECIAL_LEVEL_KEY $ENEMIES"'
    reader.run_pod(
        "dapi", "sh", "-c", script, container_fields=fields, until="Succeeded",
        restartPolicy="Never",
    )  # fmt: skip
    assert reader.logs("dapi") == "very aliens\n"
    items = [{"key": "special.how", "path": "keys"}]
    volume = {"name": "config", "configMap": {"name": "special-config", "items": items}}
    mount = {"volumeMounts": [{"name": "config", "mountPath": "/etc/config"}]}
    reader.run_pod("files", container_fields=mount, volumes=[volume])
    assert reader.exec("files", "cat", "/etc/config/keys") == "very"
    optional = {"name": "none", "key": "akey", "optional": True}
    absent = {"env": [{"name": "MAYBE", "valueFrom": {"configMapKeyRef": optional}}]}
    reader.run_pod("optional", container_fields=absent)


@page(f"{CONFIGURE}/share-process-namespace")
def test_containers_of_a_pod_see_each_others_processes(reader):
    shell = container("shell", "sleep", "3600", stdin=True, tty=True)
    web = container("nginx", image=WEB)
    reader.create({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nginx"},
        "spec": {"shareProcessNamespace": True, "containers": [web, shell],
                 "terminationGracePeriodSeconds": 1},
    })  # fmt: skip
    reader.ready("pod/nginx")
    assert "httpd" in reader("exec", "nginx", "-c", "shell", "--", "ps")


@page(f"{CONFIGURE}/quality-service-pod")
@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({"limits": {"memory": "50Mi", "cpu": "70m"}}, "Guaranteed"),
        ({"limits": {"memory": "50Mi"}, "requests": {"memory": "25Mi"}}, "Burstable"),
        ({}, "BestEffort"),
    ],
)
def test_quality_of_service(reader, resources, quality):
    reader.run_pod("qos-demo", container_fields={"resources": resources})
    assert reader.field("pod qos-demo", ".status.qosClass") == quality


@page(f"{CONFIGURE}/extended-resource")
@page("tasks/administer-cluster/extended-resource-node")
def test_extended_resources_that_an_administrator_advertises(reader):
    [node] = reader.get("nodes")["items"]
    name = f"example.com/dongle-{reader.namespace}"
    escaped = name.replace("/", "~1")
    add = [{"op": "add", "path": f"/status/capacity/{escaped}", "value": "4"}]
    target = ("node", node["metadata"]["name"], "--subresource=status", "--type=json")
    reader("patch", *target, "-p", json.dumps(add))
    allocatable = ".status.allocatable.example\\.com/" + name.partition("/")[2]
    node_field = f"node {node['metadata']['name']}"
    reader.sees(lambda: reader.field(node_field, allocatable) == "4")
    three = {"resources": {"requests": {name: 3}, "limits": {name: 3}}}
    reader.run_pod("extended-resource-demo", container_fields=three)
    two = {"resources": {"requests": {name: 2}, "limits": {name: 2}}}
    reader.create(pod("extended-resource-demo-2", container_fields=two))
    reader.sees(lambda: "FailedScheduling" in reader.reasons("extended-resource-demo-2"))
    remove = [{"op": "remove", "path": f"/status/capacity/{escaped}"}]
    reader("patch", *target, "-p", json.dumps(remove))


@page(f"{CONFIGURE}/enforce-standards-namespace-labels")
@page("tutorials/security/ns-level-pss")
def test_pod_security_standards_by_labels(reader):
    label = "pod-security.kubernetes.io/enforce"
    reader("label", "namespace", reader.namespace, f"{label}=baseline")
    privileged = {"securityContext": {"privileged": True}}
    refused = reader.fails(
        "create", "-f", "-", stdin=json.dumps(pod("bad", container_fields=privileged))
    )
    assert 'violates PodSecurity "baseline:latest": privileged' in refused
    reader.run_pod("good")
    warned = reader("label", "namespace", reader.namespace, f"{label}=restricted", "--overwrite")
    assert "labeled" in warned
    assert "restricted" in reader.fails("create", "-f", "-", stdin=json.dumps(pod("plain")))


@page(f"{CONFIGURE}/pull-image-private-registry")
def test_a_secret_for_a_private_registry(reader):
    """The secret as the page makes it; pulling with it is in tests/e2e/test_node_images.py."""
    login = ("--docker-server=localhost:1", "--docker-username=me", "--docker-password=secret")
    reader("create", "secret", "docker-registry", "regcred", *login)
    data = reader.field("secret regcred", r".data.\.dockerconfigjson")
    entry = json.loads(base64.b64decode(data))["auths"]["localhost:1"]
    assert base64.b64decode(entry["auth"]) == b"me:secret"
    pulled = {"image": "localhost:1/private:1"}
    reader.create(
        pod("private-reg", container_fields=pulled, imagePullSecrets=[{"name": "regcred"}])
    )
    waiting = ".status.containerStatuses[0].state.waiting.reason"
    reader.sees(
        lambda: reader.field("pod private-reg", waiting) in ("ErrImagePull", "ImagePullBackOff")
    )
