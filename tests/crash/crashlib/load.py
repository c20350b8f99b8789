"""The load: clients that submit, cancel and release, and retry until they get a reply."""
import itertools
import json
import os
import random
import subprocess
import threading
import time

from . import host

# Each start and each end of each attempt of each pod is one line of the ledger, written in one go.
# $1: how it ends. The path is in the environment, so that the command is the same for all.
SCRIPT = """#!/bin/sh
say() {
	printf '%s %s %s %s %s %s %s\\n' "$1" "$CRASH_KEY" "$GPUQ_JOB_ID" "${GPUQ_ARRAY_TASK_ID:--1}" "$GPUQ_ATTEMPT" \\
		"$GPUQ_POD_INDEX" "${GPUQ_DEVICES:--}" >>"$CRASH_LEDGER"
}
say S
trap 'say T; exit 143' TERM USR1
case $1 in
save) sleep "$3" & wait $! ;;
hang) sleep 1000 & wait $! ;;
twice) [ "$GPUQ_ATTEMPT" -gt 0 ] || { say E; exit 75; } ;;
*) sleep "$1" ;;
esac
say E
exit "$2"
"""


class Kind:
    """A way to submit a job, and its required end."""

    def __init__(self, name, weight, options=(), how=None, code=0, elements=1, pods=1, gpus=(0, 1), state="COMPLETED",
                 runs=1, cancel=False, release=False, lent=False, elastic=False):
        self.name, self.weight, self.options, self.how, self.code = name, weight, options, how, code
        self.elements, self.pods, self.gpus, self.state = elements, pods, gpus, state
        self.runs, self.cancel, self.release = runs, cancel, release
        self.elastic = elastic  # a pod that is lost is replaced by one with a number of its own
        self.lent = lent  # it runs on borrowed devices, and is evicted when they are reclaimed


KINDS = [
    Kind("plain", 8, gpus=(0, 1, 2, 3)),
    Kind("fails", 2, code=3, state="FAILED"),
    Kind("array", 2, ["--array=0-4%3"], elements=5),
    Kind("gang", 3, ["--pods=3", "--cpus=0.1"], pods=3, gpus=(0, 1, 2)),
    Kind("twice", 1, ["--retry=1:exit:75"], how="twice", runs=2),
    Kind("cancelled", 3, how="hang", state="CANCELLED", cancel=True, gpus=(1, 2, 4)),
    Kind("cancelled-gang", 1, ["--pods=2", "--cpus=0.1"], how="hang", pods=2, state="CANCELLED", cancel=True),
    Kind("held", 1, ["--hold"], release=True),
    Kind("elastic", 2, ["--queue=rest", "--pods=1-3", "--cpus=0.1"], how="save", lent=True, elastic=True),
    Kind("lent", 3, ["--queue=rest", "--checkpoint=USR1@20s"], how="save", gpus=(2, 3, 4), lent=True),
]


class Job:
    def __init__(self, key, kind, gpus, seconds):
        self.key, self.kind, self.gpus, self.seconds = key, kind, gpus, seconds
        self.id = None  # once acknowledged


class Load:
    """Several clients, each in a thread. stop() lets each finish what it has begun."""

    def __init__(self, build, dir, tag, cluster, seed, n_clients, most_waiting, log):
        self.gpuq = os.path.join(build, "gpuq", "gpuq")
        self.dir, self.cluster, self.log = dir, cluster, log
        self.env = host.children_env(dir, tag)
        self.script = os.path.join(dir, "job.sh")
        with open(self.script, "w") as f:
            f.write(SCRIPT)
        self.mutex = threading.Lock()
        self.jobs = []
        self.trouble = []  # replies that are neither success nor "server unreachable"
        self.broken = self.repeated = 0
        self.stopping = threading.Event()
        self.room = threading.Event()
        self.room.set()
        self.most_waiting = most_waiting
        self.threads = [threading.Thread(target=self.client, args=(random.Random("%s-%d" % (seed, n)), n))
                        for n in range(n_clients)]
        self.threads.append(threading.Thread(target=self.govern))

    def start(self):
        for t in self.threads:
            t.start()

    def stop(self):
        self.stopping.set()
        for t in self.threads:
            t.join()

    def run(self, *args):
        p = subprocess.run([self.gpuq] + list(args), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           env=self.env, cwd=self.dir)
        return p.returncode, p.stdout, p.stderr

    def until_answered(self, *args):
        """Retry while the server cannot be reached; return the output, or None if the command failed."""
        for tries in itertools.count():
            code, out, err = self.run(*args)
            if code == 0:
                return out
            if tries and args[0] in ("cancel", "release") and "already ended" in err:
                return out  # by the first try, whose reply was lost
            if code != 255:
                self.complain("gpuq %s: exit status %d: %s" % (" ".join(args), code, err.strip()))
                return None
            with self.mutex:
                self.broken += 1
            time.sleep(0.03)

    def complain(self, what):
        with self.mutex:
            self.trouble.append(what)
        self.log(what)

    def govern(self):
        """Submit new jobs only while not too many are pending, so that a slow server does not get ever more."""
        while not self.stopping.is_set():
            code, out, _ = self.run("queue", "-h")
            if code == 0:
                if len(out.splitlines()) < self.most_waiting:
                    self.room.set()
                else:
                    self.room.clear()
            self.stopping.wait(0.5)

    def arguments(self, job):
        kind = job.kind
        args = ["submit", "--parsable", "--key=" + job.key, "--name=" + kind.name, "-g", str(job.gpus)]
        args += kind.options
        how = kind.how or "%.3f" % job.seconds
        if self.cluster.name == "local":
            args += ["--env=CRASH_KEY=" + job.key, "--env=CRASH_LEDGER=" + self.cluster.ledger, self.script, how,
                     str(kind.code), "%.3f" % job.seconds]
            return args
        for note in self.annotations(job):
            args.append("--annotation=" + note)
        return args + ["--image=test", self.script, how, str(kind.code)]

    @staticmethod
    def annotations(job):
        """Yield the annotations that end the pods: the fake cluster runs nothing itself."""
        if job.kind.how == "hang":
            yield "gpuq.test/hang=true"
            return
        yield "gpuq.test/run=%dms" % (job.seconds * 1000)
        code = 75 if job.kind.how == "twice" else job.kind.code
        if code:
            yield "gpuq.test/exit-code=%d" % code

    def client(self, rng, number):
        while not self.stopping.is_set():
            if not self.room.wait(0.2):
                continue
            kind = rng.choices(KINDS, [k.weight for k in KINDS])[0]
            job = Job("k%d-%08x" % (number, rng.getrandbits(32)), kind, rng.choice(kind.gpus),
                      rng.uniform(1, 3) if kind.lent else rng.uniform(0.02, 0.5))
            with self.mutex:
                self.jobs.append(job)
            self.play(job, rng)
            self.stopping.wait(rng.uniform(0, 0.25))

    def play(self, job, rng):
        args = self.arguments(job)
        out = self.until_answered(*args)
        if out is None:
            return
        job.id = int(out)
        if rng.random() < 0.2:
            self.stopping.wait(rng.uniform(0, 0.5))
            again = self.until_answered(*args)
            with self.mutex:
                self.repeated += 1
            if again is not None and int(again) != job.id:
                self.complain("key %s gave job %d and then %s" % (job.key, job.id, again.strip()))
        if job.kind.release:
            self.stopping.wait(rng.uniform(0, 0.5))
            self.until_answered("release", str(job.id))
        if job.kind.cancel:
            self.stopping.wait(rng.choice([0, 0.2, 1]) * rng.random())
            self.until_answered("cancel", str(job.id))

    # ---- queries ----

    def objects(self, *args):
        """Return the output of a --json command, once there is a reply."""
        out = self.until_answered(*args, "--json")
        return [json.loads(line) for line in (out or "").splitlines() if line.strip()]

    def in_queue(self):
        out = self.until_answered("queue", "-h")
        return (out or "").splitlines()
