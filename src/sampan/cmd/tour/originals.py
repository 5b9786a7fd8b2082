"""What stands beside each step of ARCHITECTURE.md's way of a pod: its idea, which function of
sampan does it, what the original does there, and by which spans its trace shows it.

Job: one row per step, by the step's title. Values only.
Invariant: the titles are those of ARCHITECTURE.md, in their order; functions and files exist.
"""

from typing import NamedTuple


class Original(NamedTuple):
    title: str
    idea: str  # why there is such a step, for somebody who hears of it for the first time
    function: str  # of sampan: FILE:NAME or FILE:CLASS.NAME
    file: str  # of kubernetes/kubernetes
    does: str  # what Kubernetes does there
    spans: tuple[str, ...] = ()  # how names of its spans begin; none: it is not measured by itself


_APISERVER = "staging/src/k8s.io/apiserver/pkg"
ORIGINALS = (
    Original(
        "The connection",
        "Everything in Kubernetes goes through one door, the API server: kubectl, the "
        "scheduler and every node speak HTTPS to it, and to nobody else.",
        "core/http/server.py:Server.start_on",
        f"{_APISERVER}/server/secure_serving.go",
        "Go's net/http serves TLS, HTTP/2 beside HTTP/1.1, with a goroutine for each connection.",
    ),
    Original(
        "The request",
        "Before anything is looked at, the server wants to know who is asking, and gives the "
        "request a place in a queue, so that one caller cannot crowd out the others.",
        "apiserver/edge/http_edge.py:HttpEdge.reply",
        f"{_APISERVER}/server/config.go",
        "DefaultBuildHandlerChain wraps one handler in the next: authentication, audit, "
        "impersonation, priority and fairness, authorization. Each is a filter around the rest.",
        ("authentication", "priority and fairness"),
    ),
    Original(
        "The call",
        "Knowing who asks is not enough: may this user create pods in this namespace? Whoever "
        "may not is told 403, and nothing else happens.",
        "apiserver/chain.py:Chain.perform",
        f"{_APISERVER}/endpoints/filters/authorization.go",
        "The authorization filter asks Node and RBAC authorizers in turn; routes that the API "
        "installer made then lead to the handler of the verb.",
        ("authorization",),
    ),
    Original(
        "The verb",
        "You write down only what you care about. The server reads it strictly, fills in the "
        "rest with defaults, and notes which fields you own.",
        "apiserver/write/create.py:create",
        f"{_APISERVER}/endpoints/handlers/create.go",
        "createHandler decodes into Go types by the scheme, converts to the internal version, "
        "defaults, and lets the field manager note who owns which field.",
        ("decoding", "defaulting"),
    ),
    Original(
        "Admission",
        "The last word before something is kept: rules of the cluster, quotas and your own "
        "webhooks may change the object, and then may refuse it.",
        "apiserver/admission/chain.py:Admission.mutate",
        f"{_APISERVER}/admission/chain.go",
        "The same two rounds over the compiled-in plugins; webhooks and policies are plugins too, "
        "the last ones of their round.",
        ("mutating admission", "MutatingAdmissionWebhook", "validating admission",
         "ValidatingAdmissionWebhook"),
    ),
    Original(
        "What is peculiar about pods",
        "Every kind has rules of its own. A pod gets an identity, the uid, that no other pod "
        "will ever have, and a status that says Pending.",
        "apiserver/registry/pods.py:prepare_create",
        "pkg/registry/core/pod/strategy.go",
        "podStrategy's PrepareForCreate sets phase Pending and the QoS class; Validate checks the "
        "whole object; rest.BeforeCreate gave it its uid.",
        ("validation",),
    ),
    Original(
        "The store",
        "What is answered is kept: the object is written once, with a number that only grows, "
        "the revision. Whoever changes it must name the revision that he has seen, so nobody "
        "overwrites what he does not know.",
        "store/sqlite.py:SqliteStore.create", f"{_APISERVER}/storage/etcd3/store.go",
        "Create is one etcd transaction, which holds if the key has no revision yet; the value is "
        "protobuf, and etcd agrees on it by Raft.",
        ("store commit",),
    ),
    Original(
        "The watch cache",
        "Nobody asks again and again. Whoever is interested holds a watch and is told of "
        "every change, in order; that is what everything after this step lives on.",
        "apiserver/watch/watch_cache.py:KindCache.change",
        f"{_APISERVER}/storage/cacher/cacher.go",
        "A Cacher per resource watches etcd, keeps the last events in a ring, and dispatches each "
        "to its watchers. A create is answered without waiting for it.",
        ("response",),
    ),
    Original(
        "The informers",
        "Each part keeps a copy of what it needs and is called when that changes. kubectl was "
        "answered long ago: from here on nobody waits for your command.",
        "client/reflector.py:Reflector.run",
        "staging/src/k8s.io/client-go/tools/cache/reflector.go",
        "The reflector lists and watches over HTTPS, DeltaFIFO orders what it hears, the shared "
        "informer keeps the indexer and calls the handlers. Every component has its own.",
    ),
    Original(
        "The queue",
        "The scheduler notices a pod without a node. It takes them by priority, and those "
        "that fitted nowhere wait until something changes that could help them.",
        "scheduler/event_handlers.py:EventHandlers.pod_changed",
        "pkg/scheduler/backend/queue/scheduling_queue.go",
        "PriorityQueue: activeQ, backoffQ and the unschedulable pods; PreEnqueue plugins hold back "
        "pods with scheduling gates; queueing hints say which event is worth another try.",
        ("queue",),
    ),
    Original(
        "The decision",
        "Two questions to every node: can the pod run there (filters), and how good would it "
        "be there (scores)? The best one of those that can is chosen.",
        "scheduler/decision/decide.py:decide", "pkg/scheduler/schedule_one.go",
        "schedulingCycle runs the Filter plugins node by node in 16 goroutines, on a sample of the "
        "nodes in large clusters, then Score; here every rule looks at all nodes at once.",
        ("filter and score", "preemption"),
    ),
    Original(
        "The binding",
        "Choosing a node is again only a write to the API: the node's name appears in the "
        "pod. The scheduler speaks to no node.",
        "scheduler/binding/binding_cycle.py:Bindings.place",
        "pkg/scheduler/schedule_one.go",
        "bindingCycle runs in a goroutine of its own: Permit, PreBind (volumes, devices), Bind, "
        "PostBind; the pod has been assumed on its node before.",
        ("permit", "bind", "create pods/binding"),
    ),
    Original(
        "The node's pods",
        "Every node has an agent, the kubelet, which watches the pods that bear its name. It "
        "checks once more whether it has room, for it alone knows.",
        "kubelet/pods/sync_loop.py:SyncLoop.deliver",
        "pkg/kubelet/config/config.go",
        "PodConfig merges API server, files and URLs into ADD, UPDATE, DELETE, REMOVE, RECONCILE; "
        "HandlePodAdditions asks the admit handlers whether the pod fits.",
    ),
    Original(
        "The worker",
        "One worker for each pod does one thing at a time, and always for the newest wish: "
        "what was asked in between is skipped.",
        "kubelet/pods/pod_workers.py:PodWorkers.want", "pkg/kubelet/pod_workers.go",
        "podWorkerLoop is one goroutine per pod uid, woken by a channel; a newer update replaces "
        "the one that waits.",
        ("pod worker starts",),
    ),
    Original(
        "The step",
        "What is wanted is compared with what is there, and the difference is a list of "
        "things to do. This runs again and again, so what breaks is mended without anybody "
        "asking: reconciliation.",
        "kubelet/pods/pod_sync.py:PodSync.sync", "pkg/kubelet/kubelet.go",
        "SyncPod: status, pod cgroup, mirror pod, directories, volumes, then the runtime manager's "
        "computePodActions decides what has to happen.",
        ("sync pod", "read objects", "volumes"),
    ),
    Original(
        "The containers",
        "Now it gets real: limits, a network, volumes and images are made ready, then the "
        "containers start in their order.",
        "kubelet/pods/perform.py:Performer.perform",
        "pkg/kubelet/kuberuntime/kuberuntime_manager.go",
        "SyncPod of the runtime manager does it in eight steps, one container after the other: "
        "sandbox, init containers, containers; an image is pulled when its container's turn comes.",
        ("cgroups", "sandbox", "image of", "create ", "start ", "postStart"),
    ),
    Original(
        "The runtime",
        "Containers are ordinary processes that the kernel shows a world of its own: "
        "namespaces for what they see, cgroups for what they may use. A small program makes "
        "them; the kubelet only asks it to.",
        "kubelet/native/native_runtime.py:NativeRuntime.run_sandbox",
        "staging/src/k8s.io/cri-client/pkg/remote_runtime.go",
        "The same gRPC calls to containerd or CRI-O: RunPodSandbox, PullImage, CreateContainer, "
        "StartContainer. CNI plugins are started by the runtime.",
    ),
    Original(
        "The status",
        "The node writes back what became of the wish. The wish is spec, written by you; the "
        "truth is status, written by the cluster; and kubectl, which watches, shows Running.",
        "kubelet/status/status_manager.py:StatusManager.set",
        "pkg/kubelet/status/status_manager.go",
        "PLEG relists once a second, or takes the runtime's events; generateAPIPodStatus computes, "
        "the status manager patches the status subresource.",
        ("patch pods/status",),
    ),
)  # fmt: skip
