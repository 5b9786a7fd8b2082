"""What sampan says when something is not as it should be: why it is so, and what helps.

Job: the table of sentences, and docs/errors.md made of it: `python tools/error_index.py`.
Invariant: a sentence is as the code has it, with … for what is different each time; what stops a
    verb of the cluster is in the table, unless it begins with the flag that it is about, which says
    all that there is to know (tests see to both).
"""

from collections.abc import Sequence

HEAD = """\
# What it says, why, and what helps

Sentences of sampan's own, by what they are about; `…` stands for what is different each time. Made by
`python tools/error_index.py > docs/errors.md`, and a test keeps it true. Sentences that begin with a flag (`--nodes: …`)
say themselves what that flag takes. Of an object that is not well, `sampan why KIND/NAME` tells the cause; of a machine,
`sampan doctor`; what the API server answers is Kubernetes' own, word for word.
"""

# (sentence, why it is said, what helps)
Rows = tuple[tuple[str, str, str], ...]
WHERE: Rows = (
    ("there is no sampan cluster in …: start one with `sampan up`, or say where it is with --name (`sampan list`) or --data-dir",
     "Nothing was started in this directory, and no cluster is named, current or the only one that runs.",
     "`sampan list` shows the clusters of this user; those of root are root's: `sudo sampan list`."),
    ("there is no cluster …: `sampan list` shows those there are",
     "The name is of no cluster of this user.",
     "Another name, or `sampan up --name` with this one."),
    ("… is in use by process …: stop it with `sampan down --data-dir …`, or choose another --data-dir",
     "A cluster runs there already: two would write the same files.",
     "Use the one that runs (`sampan status`), or `sampan up --name other` for a second one."),
    ("… is not empty and holds no sampan cluster: choose another --data-dir",
     "The directory has files of somebody else's: `sampan reset` would remove them one day.",
     "A directory that is empty, or not there yet."),
    ("cannot use … as data directory (…): choose a directory that you may write with --data-dir",
     "It cannot be made or opened, for the reason in parentheses.",
     "A directory of yours, on a disk that is not full and not read-only."),
    ("cannot use … as data directory: …",
     "It is there, but no directory that sampan could use.",
     "Another --data-dir."),
    ("the cluster in … belongs to …: do this as that user",
     "Its files are another user's, mostly root's: only that user may stop or remove it.",
     "`sudo sampan …`, or a cluster of your own: `sampan up --name mine`."),
    ("… is damaged (it says …): put it back from a backup, or remove the cluster with `sampan reset --data-dir …`",
     "The file that says how the data is written holds something else: the disk was full, or it was edited.",
     "The file from a backup; without one `sampan reset` and a new cluster."),
    ("… was written by a newer sampan (format …; this one knows …): upgrade sampan, or choose another --data-dir",
     "This cluster was used with a later version, which writes its data in another way.",
     "`pip install --upgrade sampan`, in the environment whose `sampan` you call."),
    ("the cluster in … does not run: start it with `sampan up --data-dir …`",
     "Images are kept by the runtime, which runs with the cluster.",
     "`sampan up --detach`, then the same command."),
    ("the cluster in … does not run: start it with `sampan up`",
     "A snapshot is read from the API of a cluster that runs.",
     "`sampan up --detach`, then the same command."),
    ("the cluster in … has never been ready: `sampan up` first",
     "A kubeconfig is written when the cluster is ready for the first time.",
     "`sampan up`; where that failed, `sampan log` says why."),
)  # fmt: skip
START: Rows = (
    ("a real node needs …: `sampan doctor` says what to do, and --runtime simulated needs nothing",
     "Containers need Linux, root or user namespaces, and programs that are not here.",
     "`sampan doctor`, which names packages; or simulated nodes, where pods are reported and none really runs."),
    ("a real node needs …",
     "As above, for a node that joins.",
     "`sampan doctor` on that machine."),
    ("no real node: it needs …",
     "`sampan up` was not told which nodes to have, and this machine cannot have real ones: it goes on with simulated ones.",
     "What is named, and `sampan up` again; or `--runtime simulated`, which says that it is meant."),
    ("containers cannot be run: there must be …",
     "crun and conmon are there, but something that they need is not.",
     "Install what is named."),
    ("containers of this cluster still run, with --runtime …: start it once more with that and stop it (`sampan down`), or remove it (`sampan reset`)",
     "The cluster was killed, or stopped with --keep-pods, and another runtime would start its pods a second time.",
     "As it says: `sampan up --runtime` with the old one, `sampan down`, then the new one."),
    ("the node did not become Ready within … s; --log-level info shows what it waits for",
     "The runtime, the network or the API did not get as far: a slow disk, a firewall, a runtime that hangs.",
     "`sampan up --log-level info`; `sampan doctor`."),
    ("the node's own HTTP server cannot listen on … port … (…): choose another with --port, or --port 0 for any",
     "Another kubelet has the port: of another cluster, of k3s, of kind with host ports.",
     "`--port 0`, or stop the other one."),
    ("the port for health and metrics: …",
     "A part that runs as a process of its own serves /healthz and /metrics on a port that is taken.",
     "`--secure-port` with another one."),
    ("pods' network interfaces cannot be made: …",
     "The kernel, or a rule of the container around sampan, refuses to make network namespaces or veth pairs.",
     "`sampan doctor`; in a container: `--privileged`."),
    ("node … cannot have a network of its own: …",
     "Each of several real nodes has a network namespace, and this one could not be made.",
     "`sampan doctor --fix` removes what earlier runs left; one node needs none: leave --nodes out."),
    ("several real nodes are for `sampan up`, in one process",
     "`--processes`, `join` and `kubelet` have one node each.",
     "Leave --processes or --nodes out."),
    ("namespaces of an ordinary user: … (…)",
     "Without root, containers run in a user namespace, and the kernel refused to make one.",
     "`sampan doctor` says which setting of the kernel forbids it (kernel.unprivileged_userns_clone, AppArmor)."),
    ("users for containers cannot be had: …",
     "newuidmap refused the range of /etc/subuid: it is missing, or overlaps.",
     "`sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER`."),
    ("cannot write the kubeconfig …: …",
     "The directory is not there, or not yours.",
     "Another `--kubeconfig FILE`; `--use` writes to kubectl's own."),
    ("… … does not fit the families …: give one range of each family that --ip-families names",
     "A range of IPv6 in a cluster of IPv4, or the other way.",
     "`--ip-families ipv4,ipv6` with two ranges, or a range of the one family."),
    ("… is for --runtime simulated only",
     "A script of what pods do is followed by simulated nodes; containers do what they do.",
     "`--runtime simulated`, or leave the flag out."),
)  # fmt: skip
SPEAKING: Rows = (
    ("no API server answers at …: does the cluster run? `sampan list` says",
     "The kubeconfig names a cluster that has been stopped, or another port than it has now.",
     "`sampan up`, or another context: `sampan config get-contexts`."),
    ("no API server answers at … (…): does it run, and is the address right?",
     "A machine that wants to join reaches nobody at that address.",
     "On the server: `sampan up --bind-address 0.0.0.0`; between them: is the port open?"),
    ("the server at … shows a certificate that the kubeconfig does not trust: it is another cluster's, or the kubeconfig is an old one",
     "A cluster that was removed and made anew has new keys.",
     "`sampan kubeconfig merge` writes those of today."),
    ("The connection to the server … was refused - …",
     "As kubectl says it: nobody listens where the kubeconfig says.",
     "`sampan list`, `sampan up`; which kubeconfig it is: `sampan config view --minify`."),
    ("pods cannot reach the API at …:…: …",
     "A warning: at the address where pods look for it, another program has the port.",
     "Another `--port`, or stop the other program."),
    ("the server at … is not the one that --ca-hash is of: it shows …",
     "The token is of another cluster, or somebody answers in its place.",
     "A new one from the server itself: `sampan token create`. Do not leave the hash out."),
    ("… is no https address of an API server",
     "`--join` wants https://HOST:PORT.",
     "The line that `sampan token create` prints, whole."),
    ("the cluster does not let this node ask: …",
     "The token has expired (a day), or was deleted.",
     "`sampan token create`, on the server."),
    ("this server has no page: it runs with --ui=false, or is none of sampan's",
     "`sampan ui` asks the server of the current context.",
     "`sampan config use-context`, or `sampan up` without --ui=false."),
    ("no trace of … (…): there was none of that name since the server started, or too many came after it, or the server is none of sampan's (or runs with --tracing=false)…",
     "Traces are kept in memory, the newest ones, by the server.",
     "Do it again and ask at once; `sampan trace -f` follows from the beginning."),
    ("service … has no port …/…: …",
     "`sampan why --to` asks about a port of the Service, not of its pods.",
     "One of those that it names."),
    ("pod … has no address of its own: it has not started, has ended, or is in the host's network",
     "NetworkPolicies are about pods' addresses.",
     "`sampan why pod/NAME` says where it stands; pods of hostNetwork are not held by policies."),
    ("… is no target: write --to [service/][NAMESPACE/]NAME:PORT[/UDP], or ADDRESS:PORT",
     "`sampan why pod/NAME --to` needs to know the port.",
     "`--to web:80`, `--to service/shop/web:80`, `--to 10.0.0.7:53/UDP`."),
)  # fmt: skip
KEEPING: Rows = (
    ("… is damaged: put it back from a backup, or remove … to have all keys and certificates made anew (kubeconfigs, tokens and joined nodes of today end)",
     "A key or certificate of the cluster cannot be read: a full disk, or an edit.",
     "The file from a backup; without one, as it says."),
    ("… is missing, and without the authority's key nobody can make ….crt",
     "ca.key is not there, on purpose or not, and a certificate must be made anew.",
     "ca.key from where it is kept, for as long as that takes."),
    ("… has no authority to sign with: …",
     "`--join DIR` makes the node's certificate with the key of that cluster.",
     "The data directory of a cluster that has been started; from another machine `sampan token create`."),
    ("… holds no …: `sampan certs` makes them, once for all servers of a cluster",
     "`sampan apiserver` finds its certificates in --cert-dir.",
     "`sampan certs`, then the same directory on each machine (docs/production.md)."),
    ("the node's certificate cannot be used: …",
     "The certificate or key that the node was given does not fit, or has expired.",
     "Remove both: it asks for new ones."),
    ("there is no Kubernetes … here: there are …",
     "Four minor versions are in the package.",
     "One of those (docs/guide/versions.md)."),
    ("… is a cluster of Kubernetes …: this sampan knows …",
     "The cluster is of a version that this sampan has no more, or not yet.",
     "The sampan that it was made with, then `sampan upgrade --to` a version that both know."),
    ("the upgrade of … to Kubernetes v… was interrupted: `sampan upgrade --to …` finishes it",
     "Some objects are written in the new form, others are not.",
     "The same `sampan upgrade` again: it goes on where it was."),
    ("an upgrade to v… has begun: `sampan upgrade --to …` first",
     "As above.",
     "Finish that one, then the next."),
    ("this cluster is Kubernetes v…: it cannot go back to v…",
     "As with the original, what a newer version has written an older one may not understand.",
     "A new cluster can have the older one: `sampan up --name other --kubernetes-version …`."),
    ("there is no cluster yet: `sampan up --kubernetes-version` chooses",
     "There is nothing to upgrade in this directory.",
     "`sampan up --kubernetes-version 1.36`."),
    ("… are encrypted: --encryption-provider-config says how",
     "An upgrade reads objects from the disk, and does not have the keys.",
     "The file that the cluster was started with: `sampan upgrade --to 1.37 --encryption-provider-config FILE`."),
    ("this cluster keeps its objects in memory, and they end with it: `sampan fork --snapshot NAME --to DIR` starts another with those of a snapshot",
     "Its store is `memory:`, or its time is virtual.",
     "As it says; or a cluster on disk: leave --store out."),
    ("… is not empty: a fork needs a directory of its own",
     "`--to` says where the new cluster lives.",
     "A directory that is not there yet."),
    ("the cluster cannot be read: …",
     "A fork begins with the objects of another cluster, and its server refused.",
     "A kubeconfig of somebody who may list everything."),
    ("the cluster in … has no real node, so it keeps no images",
     "Simulated nodes pull nothing: any image is good.",
     "Nothing is to be done; for real images `sampan up` without --runtime simulated."),
    ("the trial ended with …",
     "A trial of the lab is a process of its own, and did not finish: mostly for lack of memory.",
     "Fewer nodes, or fewer trials at once."),
    ("…: an object without a kind",
     "`sampan diff-version -f` reads manifests; this is something else, such as a chart's values.",
     "The rendered objects: `helm template`, `sampan kustomize`."),
    ("systemd does not run on this machine: `sampan service install --print` shows the unit, `sampan up --detach` starts a cluster in the background",
     "A container, WSL without systemd, or another system.",
     "As it says."),
    ("there is no documentation in this installation: `make docs`",
     "`sampan docs` serves pages that are made when the package is built, and this is a clone in which nobody has.",
     "`make docs` in the clone, or `sampan` from a wheel."),
    ("only root may change …: sudo sampan service …",
     "Units of the machine are root's.",
     "With sudo, and the whole path of `sampan` where root does not find it."),
    ("… cannot be said in a unit of systemd",
     "A word with a line break or another character that cannot be printed.",
     "Another directory, or another value of the flag."),
)  # fmt: skip
SECTIONS = (
    ("Which cluster", WHERE), ("Starting", START), ("Reaching it", SPEAKING),
    ("Keys, versions, data", KEEPING),
)  # fmt: skip


def text() -> str:
    lines = [HEAD]
    for title, rows in SECTIONS:
        lines += [f"## {title}\n", *_entries(rows)]
    return "\n".join(lines).rstrip() + "\n"


def _entries(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    entries = []
    for sentence, cause, remedy in rows:
        entries += [
            f"    {sentence}\n",
            f"{cause} **What helps:** {remedy[:1].upper()}{remedy[1:]}\n",
        ]
    return entries


if __name__ == "__main__":
    print(text(), end="")
