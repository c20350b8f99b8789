#!/usr/bin/python3
"""A month of jobs in a minute: what each day submits, what the pods say themselves, and whether the
reports balance with that.

  month.py day N            the jobs of day N (1..30) as a job file
  month.py record NS FILE   write what every pod of the namespace says of itself to FILE, until SIGTERM
  month.py check FILE QUEUES   compare FILE with gpuq report and gpuq usage; QUEUES has "ID QUEUE" lines
  month.py check FILE QUEUES SINCE UNTIL   the same between two instants
"""
import datetime
import json
import os
import random
import signal
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "kube"))

QUEUES = ["vision", "nlp", "build"]
IMAGE = "docker.io/local/busybox:1"


# ---- what a day submits ----

def job(queue, fate, **more):
    # It runs at once: one that is deleted before it runs has no end of its own to compare with.
    fate = dict(fate, start="1ms")
    notes = {"gpuq.test/" + k.replace("_", "-"): v for k, v in fate.items()}
    return {"queue": queue, "image": IMAGE, "command": ["sleep", "1"], "gpus": 1,
            "annotations": notes, **more}


def day(n):
    r = random.Random(n)
    jobs = []
    for queue in QUEUES:
        jobs.append(job(queue, {"run": "%dms" % r.randrange(300, 2500)}, gpus=r.choice([1, 2, 4]),
                        qos=r.choice(["normal", "cheap"])))
    jobs.append(job(r.choice(QUEUES), {"run": "%dms" % r.randrange(500, 3000)},
                    array="0-%d%%3" % r.randrange(2, 6)))
    jobs.append(job(r.choice(QUEUES), {"run": "900ms"}, pods=r.choice([2, 3, 4]), gpus=2))
    if n % 3 == 0:  # fails, and is tried again
        jobs.append(job("nlp", {"run": "700ms", "exit_code": "3"},
                        retry={"limit": 1, "on": ["failure"]}))
    if n % 4 == 0:  # borrows the whole machine, and has to give it back
        jobs.append(job("build", {"run": "4s", "slow_exit": "300ms"}, gpus=4, pods=5,
                        checkpoint={"interval": "1s", "grace": "1s"}))
    if n % 5 == 0:
        jobs.append(job("vision", {"run": "1s"}, gpus=8, pods=2, qos="urgent"))
    return jobs


# ---- what the pods say ----

def seconds(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


def facts(pod):
    """None until it is known; what is charged for is whole seconds, as Kubernetes tells them."""
    status = pod.get("status") or {}
    ends = [s["state"]["terminated"]["finishedAt"] for s in status.get("containerStatuses") or []
            if (s.get("state") or {}).get("terminated")]
    gpus = sum(int((c.get("resources", {}).get("limits") or {}).get("nvidia.com/gpu", 0))
               for c in pod["spec"]["containers"])
    start = status.get("startTime")
    return {"name": pod["metadata"]["name"], "job": pod["metadata"]["labels"].get("gpuq.io/job"),
            "gpus": gpus, "start": seconds(start) if start else None,
            "end": max(map(seconds, ends)) if ends else None}


def record(namespace, path):
    import kubeclient
    client = kubeclient.Client(os.environ["KUBECONFIG"])
    known = {}

    def write(*_):
        with open(path + ".new", "w") as f:
            json.dump(list(known.values()), f)
        os.replace(path + ".new", path)
        if _:
            sys.exit(0)

    signal.signal(signal.SIGTERM, write)
    base = "/api/v1/namespaces/%s/pods" % namespace
    items, version = client.list(base)
    for pod in items:
        known[pod["metadata"]["uid"]] = facts(pod)
    write()
    while True:
        for kind, pod in client.watch(base, version, 600):
            version = pod["metadata"]["resourceVersion"]
            if kind in ("ADDED", "MODIFIED", "DELETED"):
                known[pod["metadata"]["uid"]] = facts(pod)
            if kind == "DELETED":
                known[pod["metadata"]["uid"]]["gone"] = time.time()


# ---- the comparison ----

def lines(*args):
    return [json.loads(x) for x in subprocess.check_output(["gpuq", *args]).splitlines() if x.strip()]


def check(path, queues, since=None, until=None):
    queue_of = dict(line.split() for line in open(queues))
    outages = [tuple(map(float, line.split())) for line in open("outages")]
    lo = seconds(since) if since else 0
    hi = seconds(until) if until else 1 << 40
    want, slack, bad, n, n_gone = {q: 0 for q in QUEUES}, {q: 0 for q in QUEUES}, [], 0, 0
    for p in json.load(open(path)):
        if p["start"] is None:
            continue
        queue, end = queue_of[p["job"]], p["end"]
        n += 1
        if p.get("gone") and end is not None:  # it went during an outage: charged until it is missed
            slack[queue] += p["gpus"] * max([b - end for a, b in outages if a <= p["gone"] <= b], default=0)
        if end is None:  # gone without an end of its own: when we saw it go, they did, too
            n_gone += 1
            end = p["gone"]
            slack[queue] += p["gpus"]
        want[queue] += p["gpus"] * max(0, min(end, hi) - max(p["start"], lo))
    period = (["--since", since] if since else []) + (["--until", until] if until else [])
    rows = lines("report", "--json", *period)
    for q in QUEUES:
        got = sum(r["gpu_seconds"] for r in rows if r["queue"] == q)
        if abs(got - want[q]) > slack[q]:
            bad.append("%s: the report says %s GPU-seconds, the pods %s" % (q, got, want[q]))
    for by in ("day", "flavor", "user,day", "queue"):
        total = sum(r["gpu_seconds"] for r in lines("report", "--json", "--by", by, *period))
        if abs(total - sum(r["gpu_seconds"] for r in rows)) > 1e-6:
            bad.append("by %s it is %s" % (by, total))
    for r in rows:
        w = r["wasted_gpu_seconds"]
        if not 0 <= r["refunded_gpu_seconds"] <= w["evicted"] <= r["gpu_seconds"]:
            bad.append("refunded and evicted do not fit: %s" % r)
    if not since and not until:
        refunded = sum(r["refunded_gpu_seconds"] for r in rows)
        print("%d pods, %d of them gone without an end; %d GPU-seconds, %.1f refunded, wasted %s" % (
            n, n_gone, sum(want.values()), refunded,
            {k: round(sum(r["wasted_gpu_seconds"][k] for r in rows), 1)
             for k in ("evicted", "starting", "held", "stranded")}))
        if n < 300 or refunded <= 0:
            bad.append("too little happened")
        if n_gone > n / 8:
            bad.append("too many are gone without an end: this proves little")
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    if sys.argv[1:2] == ["day"]:
        print("\n---\n".join(json.dumps(j) for j in day(int(sys.argv[2]))))
    elif sys.argv[1:2] == ["record"]:
        record(*sys.argv[2:])
    elif sys.argv[1:2] == ["check"]:
        check(*sys.argv[2:])
    else:
        sys.exit(__doc__)
