"""Examples below the help of the cluster's verbs."""

EXAMPLES = {
    "up": """\
  sampan up                                    a one-node cluster in the foreground; Ctrl-C stops it
  sampan up --detach --use                     in the background; returns when it is ready
  sampan up --name dev --use                   another one beside it; `sampan list` shows all
  sampan up --with app.yaml                    with these objects, waited for
  sampan up --runtime simulated --nodes 100    no containers: 100 simulated nodes
  sampan up --runtime simulated --simulated-scenario scenario.yaml    pods that fail as you say
  sampan up --controllers '*,-job'             without one of the controllers: yours takes its place
""",
    "down": """\
  sampan down
  sampan down --name dev
""",
    "reset": """\
  sampan reset --yes                           remove everything, containers and network included
  sampan reset --yes --name dev
""",
    "status": """\
  sampan status
  sampan status -o json
""",
    "list": """\
  sampan list                                  name, state, address, version, size of each
""",
    "log": """\
  sampan log -f                                as it grows
  sampan log --tail 20
""",
    "kubeconfig": """\
  sampan kubeconfig                            print it
  sampan kubeconfig merge                      into ~/.kube/config, as a context of its own
  sampan kubeconfig remove                     out of there again
""",
    "doctor": """\
  sampan doctor
  sampan doctor --fix                          do what can be done
""",
    "image": """\
  sampan image import app.tar                  give the node an image without a registry
  sampan image load app:1                      from Docker or podman of this machine
  sampan image list
""",
    "snapshot": """\
  sampan snapshot save before                  keep all objects
  sampan snapshot diff before                  what has changed since; or: sampan diff before
  sampan snapshot restore before               bring them back (`sampan down` first)
""",
    "fork": """\
  sampan fork --to ./what-if                   goes on from the state of now, on simulated nodes
""",
    "lab": """\
  sampan lab run workload.yaml --nodes-file nodes.yaml
  sampan lab run workload.yaml --nodes-file nodes.yaml --compare packed.yaml -o html > report.html
  sampan lab record --to ./recorded --for 10m
""",
    "node": """\
  sampan node add                              another one joins
  sampan node cut vm-2                         it loses its network; `mend` gives it back
  sampan node kill vm-3                        its power fails; `start` brings it back
  sampan node remove vm-3                      it stops with its pods, and goes
""",
    "clock": """\
  sampan clock                                    what time it is there
  sampan clock advance 24h --settle               a day passes; clients who watch are waited for
  sampan clock advance 1h --client my-operator    not before that one watches
""",
    "testserver": """\
  sampan testserver --kubeconfig test.kubeconfig
  eval $(sampan testserver --assets ./envtest)    for envtest: sets KUBEBUILDER_ASSETS
  eval $(sampan testserver --assets ./envtest --nodes 2)    the same, and Deployments become ready
""",
    "why": """\
  sampan why pod/web                           why it is Pending, and what would let it fit
  sampan why service/web                       why it leads nowhere
  sampan why deploy/web                        why it is not rolled out: jobs, claims, nodes, … too
  sampan why pod/web --to service/db:5432      which NetworkPolicies let it connect, or do not
""",
    "trace": """\
  sampan trace pod/web                         each step of its way, and what it waited for
  sampan trace deploy/web -o svg > rollout.svg
  sampan trace ns/demo                         what its deletion waited for
  sampan trace request 5c1f…                   one request, by the Audit-Id of its answer
""",
    "tour": """\
  sampan tour                                  the way of one pod through this program, step by step
""",
    "ui": """\
  sampan ui                                    the page of the cluster, in your browser, logged in
  sampan ui --no-open                          only the link: good once, for a minute
""",
    "docs": """\
  sampan docs                                  guides, references and a search, without the internet
  sampan docs --to site/                       the same as files
""",
    "schedule": """\
  sampan schedule --dry-run -f pods.yaml       where pods would go
""",
    "service": """\
  sampan service install --print               the unit that it would write
  sampan service install -- --bind-address 0.0.0.0
""",
    "upgrade": """\
  sampan upgrade                               after `pip install --upgrade`, before `sampan up`
  sampan upgrade --to 1.37 --dry-run           what another Kubernetes would change
""",
    "gates": """\
  sampan gates                                 which features there are, and which are on
  sampan gates --kubernetes-version 1.37       in another version
""",
    "diff-version": """\
  sampan diff-version 1.35 1.37 -f manifests/  what to mend before an upgrade
  helm template chart | sampan diff-version 1.35 1.37 -f -
""",
    "token": """\
  sampan token create                          print the line that another machine joins with
""",
    "join": """\
  sampan join https://192.0.2.1:6443 --token TOKEN --ca-hash sha256:HEX
""",
    "kubelet": """\
  sampan kubelet --join ./sampan-data --data-dir ./node2 --node-name two    another node
  sampan kubelet --manifests ./manifests       a node by itself: no API server
""",
    "service-proxy": """\
  sampan service-proxy --kubeconfig proxy.kubeconfig --cluster-cidr 10.244.0.0/16
""",
    "certs": """\
  sampan certs --cert-dir /etc/sampan/pki --server https://192.0.2.1:6443
""",
    "apiserver": """\
  sampan apiserver --cert-dir /etc/sampan/pki --etcd-servers https://192.0.2.1:2379
""",
    "scheduler": """\
  sampan scheduler --kubeconfig /etc/sampan/pki/scheduler.conf
""",
    "controllers": """\
  sampan controllers --kubeconfig kubeconfig   the controllers as a process of their own
""",
    "driver": """\
  sampan driver csi --endpoint /run/csi.sock --node-id one --root /srv/volumes
  sampan driver device-plugin --directory DATA/kubelet/device-plugins --resource example.com/gpu
  sampan driver dra --kubeconfig kubeconfig --node-name one --endpoint DATA/kubelet/plugins/dra.sock
""",
}
