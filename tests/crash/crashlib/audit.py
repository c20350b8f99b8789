"""The checks after a run: each observes the daemon from outside, and the record of what really ran."""
import collections
import json
import os
import time

from . import host

SHOWN = 12  # violations of one check that are printed


class Audit:
    """The checks in order; each returns its count and its violations."""

    def __init__(self, daemon, load, cluster, tag, lost_shepherds, patience_s):
        self.daemon, self.load, self.cluster, self.tag = daemon, load, cluster, tag
        self.lost_shepherds, self.patience_s = lost_shepherds, patience_s
        self.objects = collections.defaultdict(dict)  # id -> array index or -1 -> object
        self.runs = []  # what really ran: (key, id, element, attempt, pod index, success)

    def all(self):
        """Yield (name of the check, count, [violation])."""
        yield self.drained()
        yield self.no_deaths()
        yield "every answer was yes or none", self.load.broken, self.load.trouble
        yield self.acknowledged()
        yield self.ended_as_expected()
        yield self.claimed_once()
        if self.cluster.name == "local":
            yield from self.local()
        else:
            yield from self.fake()
        yield self.devices_free()

    def until(self, look):
        """Return the violations of look(): none as soon as there are none, else those that remain after a while."""
        end = time.monotonic() + self.patience_s
        while True:
            bad = look()
            if not bad or time.monotonic() > end:
                return bad
            time.sleep(0.3)

    # ---- reports of the daemon ----

    def drained(self):
        end = time.monotonic() + self.patience_s
        before = None
        while True:
            waiting = self.load.in_queue()
            if not waiting:
                return "the queue becomes empty", len(self.load.jobs), []
            if len(waiting) != before:  # patience is for no progress at all
                before, end = len(waiting), time.monotonic() + self.patience_s
            if time.monotonic() > end:
                return "the queue becomes empty", len(self.load.jobs), waiting
            time.sleep(0.3)

    def no_deaths(self):
        bad = list(self.daemon.deaths)
        with open(os.path.join(self.daemon.dir, "gpuqd.log"), errors="replace") as f:
            bad += [line.strip() for line in f if "pod.conflict" in line or "Sanitizer" in line or "assert" in line or
                    "runtime error" in line]
        return "no daemon ended but by kill", self.daemon.starts, bad

    def acknowledged(self):
        for o in self.load.objects("queue", "-a", "--limit=1000000"):
            self.objects[o["id"]][-1 if o["array_index"] is None else o["array_index"]] = o
        bad = []
        mine = {}
        for job in self.load.jobs:
            if job.id is None:
                continue
            if job.id in mine:
                bad.append("keys %s and %s have the same job %d" % (mine[job.id].key, job.key, job.id))
            mine[job.id] = job
            if job.id not in self.objects:
                bad.append("job %d (%s, %s) was acknowledged and is lost" % (job.id, job.kind.name, job.key))
        bad += ["job %d (%s) was never acknowledged to anybody: a key was taken twice" % (
            id, next(iter(self.objects[id].values()))["name"]) for id in sorted(self.objects) if id not in mine]
        return "no acknowledged job is lost, none is there twice", len(mine), bad

    def expected(self, job):
        kind = job.kind
        if self.cluster.name == "fake" and kind.how == "twice":
            return "FAILED", 75  # its pods end the same way each time
        return kind.state, None if kind.state == "CANCELLED" else kind.code

    def ended_as_expected(self):
        bad = []
        elements = 0
        for job in self.load.jobs:
            if job.id not in self.objects:
                continue
            found = self.objects[job.id]
            wanted = range(job.kind.elements) if job.kind.elements > 1 else [-1]
            state, code = self.expected(job)
            for index in wanted:
                o = found.get(index)
                elements += 1
                if o is None:
                    bad.append("job %d (%s) has no element %d" % (job.id, job.kind.name, index))
                elif o["state"] != state or (code is not None and o["exit_code"] != code):
                    bad.append("job %d (%s) element %d is %s with %s, not %s with %s: %s" % (
                        job.id, job.kind.name, index, o["state"], o["exit_code"], state, code, json.dumps(o)))
                elif not self.lost_shepherds and state != "CANCELLED" and \
                        job.kind.runs - 1 + self.evictions(job, index) - o["attempt"] not in (0, self.moot(o)):
                    bad.append("job %d (%s) element %d needed attempt %d: %s" % (
                        job.id, job.kind.name, index, o["attempt"], json.dumps(o)))
        return "each ended as it had to", elements, bad

    def claimed_once(self):
        """Check that all victims of a job are of one decision; jobs within their quota are moved at most."""
        bad = []
        times = collections.defaultdict(set)
        n = 0
        for job in self.load.jobs:
            for o in self.objects.get(job.id, {}).values():
                for e in o["evictions"]:
                    n += 1
                    if e["by"]:
                        times[e["by"]].add(e["time"])
                    if not job.kind.lent and not self.lost_shepherds and e["cause"] != "consolidate":
                        bad.append("job %d (%s) was evicted: %s" % (job.id, job.kind.name, json.dumps(e)))
        for by, when in sorted(times.items()):
            id, _, index = by.partition("_")
            o = self.objects.get(int(id), {}).get(int(index or -1))
            # A job that lost its places again, through no fault of its own, may preempt others again.
            if len(when) > 1 and o and o["attempt"] == 0:
                bad.append("job %s made others leave %d times: %s" % (by, len(when), sorted(when)))
        if n == 0 and not bad:
            bad.append("nobody was evicted: this run shows nothing about claims")
        return "each claim was made once", n, bad

    def devices_free(self):
        def look():
            free = sum(node["free_gpus"] for node in self.load.objects("nodes"))
            total = self.load.objects("status")[0]
            bad = [] if free == self.cluster.gpus else ["%d of %d devices are free" % (free, self.cluster.gpus)]
            if total["devices"]["free"] != self.cluster.gpus:
                bad.append("status says " + json.dumps(total["devices"]))
            return bad
        return "all devices are free again", self.cluster.gpus, self.until(look)

    # ---- what really ran ----

    def started(self):
        """Check self.runs: once per attempt, never without need, and as often as required."""
        bad = []
        by_key = {job.key: job for job in self.load.jobs}
        starts = collections.Counter(run[:5] for run in self.runs)
        good = collections.Counter((r[0], r[2], r[4]) for r in self.runs if r[5])
        of_any_pod = collections.Counter((r[0], r[2]) for r in self.runs if r[5])
        for run, n in sorted(starts.items()):
            job = by_key.get(run[0])
            if n > 1:
                bad.append("job %d element %d attempt %d pod %d (%s) was started %d times" % (*run[1:], run[0], n))
            if job is None or job.id != run[1]:
                bad.append("job %d ran with key %s, which has job %s" % (run[1], run[0], job and job.id))
        for job in self.load.jobs:
            if job.id is None or job.kind.state == "CANCELLED":
                continue
            for element in range(job.kind.elements) if job.kind.elements > 1 else [-1]:
                if job.kind.elastic:
                    if not of_any_pod[(job.key, element)]:
                        bad.append("job %d (%s): no pod came to its end" % (job.id, job.kind.name))
                    continue
                for pod in range(job.kind.pods):
                    n = good[(job.key, element, pod)]
                    # A job that is evicted when it is done anyway runs again.
                    evictions = self.evictions(job, element)
                    least = job.kind.runs if evictions == 0 else 1
                    if n == 0 or (not self.lost_shepherds and not least <= n <= job.kind.runs + evictions):
                        bad.append("job %d (%s) element %d pod %d came to its end %d times, not %d" % (
                            job.id, job.kind.name, element, pod, n, job.kind.runs))
        return "nothing was started twice", sum(starts.values()), bad

    def evictions(self, job, element):
        o = self.objects.get(job.id, {}).get(element)
        return sum(e["cause"] != "shrink" for e in o["evictions"]) if o else 0  # a job that shrinks keeps running

    @staticmethod
    def moot(o):
        """True if the job was done before it could be signalled: it need not start again. Starts have whole seconds."""
        return o["state"] == "COMPLETED" and any(e["time"] >= o["start_time"] for e in o["evictions"])

    def local(self):
        lines = []
        with open(self.cluster.ledger) as f:
            for n, line in enumerate(f, 1):
                word, key, id, element, attempt, pod, devices = line.split()
                lines.append((word, key, int(id), int(element), int(attempt), int(pod),
                              [] if devices == "-" else devices.split(",")))
        ended = {line[1:6] for line in lines if line[0] != "S"}
        self.runs = [(*line[1:6], False) for line in lines if line[0] == "S" and (*line[1:6],) not in
                     {l[1:6] for l in lines if l[0] == "E"}]
        self.runs += [(*line[1:6], True) for line in lines if line[0] == "E"]
        starts = collections.Counter(line[1:6] for line in lines if line[0] == "S")
        what, n, bad = self.started()
        bad += ["job %d element %d attempt %d pod %d (%s) was started %d times" % (*run[1:], run[0], k)
                for run, k in sorted(starts.items()) if k > 1]
        yield what, n, bad
        yield self.no_device_twice(lines, ended)
        yield self.nothing_left()

    @staticmethod
    def no_device_twice(lines, ended):
        """Check attempts with an end. A killed attempt reported none: how long it held devices is not known."""
        holder, bad = {}, []
        for word, key, id, element, attempt, pod, devices in lines:
            me = (key, id, element, attempt, pod)
            if me not in ended:
                continue
            for device in devices:
                if word != "S":
                    if holder.get(device) == me:
                        del holder[device]
                elif device in holder:
                    bad.append("device %s is given to %s while %s has it" % (device, me, holder[device]))
                else:
                    holder[device] = me
        return "no device was given twice", sum(len(line[6]) for line in lines if line[0] == "S"), bad

    def nothing_left(self):
        def look():
            bad = ["pid %d: %s" % p for p in host.processes(self.tag, {os.getpid(), self.daemon.proc.pid}).items()]
            bad += ["folder local/" + name for name in os.listdir(os.path.join(self.daemon.dir, "state", "local"))]
            return bad
        return "no process and no pod's folder is left", 0, self.until(look)

    # ---- what the fake cluster saw ----

    def fake(self):
        self.cluster.tell("clear\n")  # the faults were meant for gpuqd
        verdict = self.cluster.get("/fake/audit?jobs=1")
        # A pod that has succeeded runs again when the rest of its gang is evicted, and when it was
        # signalled before its end was seen.
        evicted = sum(len(o["evictions"]) * o["pod_count"] for found in self.objects.values() for o in found.values())
        most = {"overcommits": 0, "duplicates": 0, "attempt_overlaps": 0, "double_successes": evicted}
        bad = ["%s: %s" % (k, verdict[k]) for k in most if verdict[k] > most[k]]
        yield "the cluster saw no overcommit and no duplicate", verdict["creates"], bad
        pods, ends = {}, set()
        keys = {job.id: job.key for job in self.load.jobs}
        with open(self.cluster.audit_path) as f:
            for line in f:
                e = json.loads(line)
                if e.get("resource") != "pods" or "gpuq.io/job" not in e.get("labels", {}):
                    continue
                if e["verb"] == "create":
                    labels = e["labels"]
                    id = int(labels["gpuq.io/job"])
                    pods[e["uid"]] = (keys.get(id, "?"), id,
                                      int(labels.get("gpuq.io/array-index") or -1), int(labels["gpuq.io/attempt"]),
                                      int(labels["gpuq.io/index"]))
                elif e["verb"] == "end":
                    ends.add(e["uid"])
        self.runs = [(*pod, uid in ends) for uid, pod in pods.items()]
        yield self.started()
        yield self.no_pod_left(pods)

    def no_pod_left(self, pods):
        def look():
            items = self.cluster.get("/api/v1/pods?labelSelector=gpuq.io%2Fjob")["items"]
            bad = ["pod %s is %s" % (p["metadata"]["name"], p["status"]["phase"]) for p in items]
            for kind in ("configmaps", "services"):
                items = self.cluster.get("/api/v1/%s?labelSelector=gpuq.io%%2Fcluster" % kind)["items"]
                bad += ["%s %s is left" % (kind, o["metadata"]["name"]) for o in items]
            return bad
        return "every pod is accounted for, and none is left", len(pods), self.until(look)


def report(checks, say):
    """Print the results as TAP; True if all checks pass."""
    held = True
    n = 0
    for n, (what, count, bad) in enumerate(checks, 1):
        say("%s %d - %s%s" % ("not ok" if bad else "ok", n, what, " (%d)" % count if count else ""))
        for line in bad[:SHOWN]:
            say("#   " + line)
        if len(bad) > SHOWN:
            say("#   and %d more" % (len(bad) - SHOWN))
        held &= not bad
    say("1..%d" % n)
    return held
