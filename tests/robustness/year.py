"""`make year DAYS=365`: a year of a cluster's life on virtual time.

Job: `sampan up --clock virtual` with nodes of which one fails every month; CronJobs, Jobs with a
    time to live, a Deployment that is rolled over every week, tokens, bootstrap tokens and
    certificate requests that end by themselves; day after day, as quickly as it goes.
Invariant: each CronJob has run at each of its strokes, once; what ends by itself is gone; at the
    end of each month there is as much of everything as at the end of the one before.
"""

import argparse
import base64
import contextlib
import json
import resource
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sampan.api.errors import ApiError, NotFound, Unauthorized
from sampan.api.objects import seconds_of, time_text
from sampan.client.blocking import BlockingClient
from sampan.client.kubeconfig import Connection, load
from tests.support.parts.sampan_process import SampanProcess

CLOCK = "/sampan/v1/clock"
DAY, MONTH_DAYS = 86400, 30
# name → (schedule, seconds between strokes, the first of them after midnight)
STROKES = {
    "quarterly": ("30 */6 * * *", DAY // 4, 1800),
    "nightly": ("0 3 * * *", DAY, 3 * 3600),
}
BATCH, DEFAULT = "/apis/batch/v1/namespaces/default", "/api/v1/namespaces/default"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
COUNTED = {
    "jobs": f"{BATCH}/jobs", "pods": "/api/v1/pods", "secrets": "/api/v1/secrets",
    "events": "/api/v1/events", "requests": REQUESTS,
    "replica sets": "/apis/apps/v1/replicasets", "nodes": "/api/v1/nodes",
    "leases": "/apis/coordination.k8s.io/v1/leases",
}  # fmt: skip


@dataclass
class Year:
    """What came of it."""

    days: int
    jobs: int = 0
    months: list[dict[str, float]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0


def nodes_file(days):
    """One node is off for half a day in each month."""
    outages = [{"at": f"{day * 24}h", "for": "12h"} for day in range(10, days, MONTH_DAYS)]
    kind = {"apiVersion": "simulated.sampan.dev/v1", "kind": "Nodes"}
    types = [{"name": "firm", "count": 2}, {"name": "frail", "failures": outages}]
    return json.dumps({**kind, "types": types})


def template(labels, restart="Always"):
    spec = {"restartPolicy": restart, "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"labels": labels}, "spec": spec}


class Life:
    def __init__(self, process, days):
        self.process = process
        self.connection = load(str(process.kubeconfig), {}, "").connection()
        self.api = BlockingClient(self.connection, timeout_seconds=600)
        self.found = Year(days)
        self.began = self.now()
        self.ran = set()

    def now(self):
        return self.api.json("GET", CLOCK)["seconds"]

    def advance(self, duration):
        self.api.json("POST", f"{CLOCK}/advance", body={"duration": duration})

    def begin(self):
        for name, (schedule, every, _) in STROKES.items():
            job = {"template": template({}, "Never")}
            spec = {"schedule": schedule, "jobTemplate": {"spec": job},
                    "successfulJobsHistoryLimit": 2 * DAY // every}  # fmt: skip
            body = {"metadata": {"name": name}, "spec": spec}
            self.api.json("POST", f"{BATCH}/cronjobs", body=body)
        spec = {"replicas": 6, "selector": {"matchLabels": {"app": "web"}},
                "revisionHistoryLimit": 2, "template": template({"app": "web"})}  # fmt: skip
        self.api.json("POST", "/apis/apps/v1/namespaces/default/deployments",
                      body={"metadata": {"name": "web"}, "spec": spec})  # fmt: skip

    def month(self, number):
        """The days of one month, and what there is when they are over."""
        token = self.token()
        self.ending(number)
        for day in range(MONTH_DAYS):
            self.advance("24h")
            self.look()
            if day % 7 == 6:
                self.roll_over(f"{number}-{day}")
        if self.is_known(token):
            self.found.wrong.append(f"a token of an hour lives after month {number}")
        for name, path in self.ended(number):
            self.gone(f"{name} of month {number}", path)
        self.found.months.append(self.counts())

    def look(self):
        """At the Jobs of the day. (Nobody watches: time waits for whoever hears of something.)"""
        jobs = self.api.json("GET", f"{BATCH}/jobs")["items"]
        self.ran |= {
            name for job in jobs if not (name := job["metadata"]["name"]).startswith("once")
        }

    def token(self):
        body = {"spec": {"expirationSeconds": 3600}}
        made = self.api.json("POST", f"{DEFAULT}/serviceaccounts/default/token", body=body)
        return made["status"]["token"]

    def is_known(self, token):
        plain = Connection(self.connection.server, ca=self.connection.ca, token=token)
        guest = BlockingClient(plain)
        try:
            guest.json("GET", "/api/v1/namespaces/default/pods")
        except Unauthorized:
            return False
        except ApiError:
            return True  # it may do nothing, but somebody it is
        finally:
            guest.close()
        return True

    def ending(self, number):
        """Things that end by themselves."""
        spec = {"ttlSecondsAfterFinished": 3600, "template": template({}, "Never")}
        body = {"metadata": {"name": f"once-{number}"}, "spec": spec}
        self.api.json("POST", f"{BATCH}/jobs", body=body)
        name = f"bootstrap-token-aaaa{number:02}"
        data = {"token-id": f"aaaa{number:02}", "token-secret": "0123456789abcdef",
                "expiration": time_text(self.now() + DAY)}  # fmt: skip
        body = {"metadata": {"name": name}, "type": "bootstrap.kubernetes.io/token",
                "stringData": data}  # fmt: skip
        self.api.json("POST", "/api/v1/namespaces/kube-system/secrets", body=body)
        spec = {"request": base64.b64encode(certificate_request()).decode(),
                "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["client auth"]}  # fmt: skip
        body = {"metadata": {"name": f"request-{number}"}, "spec": spec}
        self.api.json("POST", REQUESTS, body=body)

    def ended(self, number):
        yield "the Job", f"{BATCH}/jobs/once-{number}"
        secrets = "/api/v1/namespaces/kube-system/secrets"
        yield "the bootstrap token", f"{secrets}/bootstrap-token-aaaa{number:02}"
        yield "the certificate request", f"{REQUESTS}/request-{number}"

    def gone(self, what, path):
        try:
            self.api.json("GET", path)
        except NotFound:
            return
        self.found.wrong.append(f"{what} is still there")

    def roll_over(self, text):
        change = {"spec": {"template": {"metadata": {"annotations": {"version": text}}}}}
        path = "/apis/apps/v1/namespaces/default/deployments/web"
        kind = "application/merge-patch+json"
        self.api.json("PATCH", path, body=json.dumps(change).encode(), content_type=kind)

    def counts(self):
        found = {name: len(self.api.json("GET", path)["items"]) for name, path in COUNTED.items()}
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        found["threads"] = int(status["Threads"])
        found["descriptors"] = len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))
        found["memory, MiB"] = int(status["VmRSS"].split()[0]) // 1024
        return found

    def strokes(self):
        """The names that Jobs of the CronJobs have, by the strokes of the clock."""
        ends = self.now()
        return {
            f"{name}-{second // 60}"
            for name, (_, every, first) in STROKES.items()
            for second in range(int(self.began) // DAY * DAY + first, int(ends) + 1, every)
            if second > self.began
        }

    def judge(self):
        due = self.strokes()
        self.found.jobs, ran = len(self.ran), self.ran
        if ran != due:
            self.found.wrong.append(f"not due: {sorted(ran - due)}; missed: {sorted(due - ran)}")
        for name, path in COUNTED.items():
            for item in self.api.json("GET", path)["items"] if name == "leases" else ():
                renewed = seconds_of(item["spec"]["renewTime"])
                if item["metadata"]["namespace"] == "kube-node-lease" and renewed < self.now() - 60:
                    self.found.wrong.append(f"the lease of {item['metadata']['name']} is old")
        first, last = self.found.months[0], self.found.months[-1]
        for name in (*COUNTED, "threads", "descriptors"):
            if last[name] > first[name] + max(2, 0.05 * first[name]):
                self.found.wrong.append(
                    f"{name}: {first[name]} after a month, {last[name]} at last"
                )


def certificate_request():
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    made = x509.CertificateSigningRequestBuilder().subject_name(name)
    signed = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def lived(root, months):
    """A year, or less."""
    days = months * MONTH_DAYS
    root.mkdir(exist_ok=True)
    (root / "nodes.json").write_text(nodes_file(days))
    process = SampanProcess(
        root, "--clock", "virtual", "--nodes-file", str(root / "nodes.json"),
        "--controllers", "*,token-cleaner-controller",  # off by default, as upstream's
    )  # fmt: skip
    used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    try:
        process.up()
        life = Life(process, days)
        with contextlib.closing(life.api):
            life.begin()
            for number in range(months):
                life.month(number)
            life.judge()
        assert process.stop() == 0
    finally:
        process.reset()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    life.found.wall_seconds = time.monotonic() - began
    life.found.cpu_seconds = sum(after[:2]) - sum(used[:2])
    return life.found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--months", type=int, default=12, help="of thirty days")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sampan-year-") as folder:
        found = lived(Path(folder), given.months)
    print(
        f"{found.days} days: {found.jobs} Jobs of CronJobs, each at its stroke; "
        f"{found.wall_seconds:.0f} s, {found.cpu_seconds:.0f} s of processor time"
    )
    names = list(found.months[0])
    print("| month | " + " | ".join(names) + " |\n|---" * 1 + "|---:" * len(names) + "|")
    for number, month in enumerate(found.months, 1):
        print(f"| {number} | " + " | ".join(str(month[name]) for name in names) + " |")
    for wrong in found.wrong:
        print(f"WRONG {wrong}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
