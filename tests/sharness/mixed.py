#!/usr/bin/python3
"""Requests for devices of every kind, and whether the ledger is what the watcher of the tests has counted.

  mixed.py jobs SEED N [hang]      N job files, drawn with this seed; with hang they run until they are cancelled
  mixed.py ended N FILE LOG        FILE (gpuq history --json) has N jobs, each completed; none was tried again but for gpuqd's own moves
  mixed.py ledger NODES WATCHED    what is taken in NODES (gpuq nodes --json) is the sums in WATCHED (overcommit-watch)
"""
import collections
import json
import random
import re
import sys
from fractions import Fraction

IMAGE = "docker.io/local/busybox:1"
WHOLE, INSTANCE = "nvidia.com/gpu", "nvidia.com/mig-"


def on(kind, **asks):
    return dict(asks, node_selector={"kind": kind})


def parts(r):
    """A part, for whichever nodes can serve it."""
    return r.choice([
        {"gpus": r.choice([0.05, 0.1])},
        {"gpus": r.choice([0.2, 0.3, 0.5, 0.75])},
        {"gpu_memory": "%dGi" % r.randrange(1, 12)},
        {"gpu_memory": "%dMi" % r.randrange(200, 7000)},
        {"gpu_memory": "%dMi" % (256 * r.randrange(1, 50)), "gpu_cores": r.randrange(1, 95)}])


def ask(r):
    kind = r.random()
    if kind < 0.35:
        return parts(r)
    if kind < 0.45:
        return on("gaia", gpu_memory="%dMi" % (256 * r.randrange(1, 40)), gpu_cores=r.randrange(5, 90))
    if kind < 0.53:
        return on("gpushare", gpu_memory="%dGi" % r.randrange(1, 10))
    if kind < 0.58:
        return on("replicas", gpus=0.1)
    if kind < 0.75:
        return {"mig": r.choice(["1g.5gb", "1g.5gb", "3g.20gb"])}
    if kind < 0.80:
        return on("gaia", gpus=r.choice([1, 1, 2]))
    if kind < 0.92:
        return {"gpus": r.choice([1, 1, 1, 2])}
    if kind < 0.97:
        return {"gpus": r.choice([1, 2]), "resources": {"rdma/hca": r.choice([1, 1, 2])}}
    return {"mig": "1g.5gb", "resources": {"rdma/hca": 1}}


def jobs(seed, n, hang):
    r = random.Random(seed)
    for _ in range(n):
        # A plugin lets it run, none other.
        fate = {"gpuq.test/start": "3600s", "gpuq.test/run": "%dms" % r.randrange(200, 2500)}
        if hang:
            fate["gpuq.test/hang"] = "true"
        yield {"image": IMAGE, "command": ["sleep", "1"], "cpus": "10m", "memory": "16Mi", "annotations": fate, **ask(r)}


def read(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def withdrawn(log):
    """job: how often it gave its place up, since the plugin had left it no room."""
    with open(log) as f:
        return collections.Counter(int(m[1]) for m in (re.search(r" job\.withdrawn job=(\d+) ", line) for line in f) if m)


def ended(n, path, log):
    there, gave_up = read(path), withdrawn(log)
    bad = [j for j in there if j["state"] != "COMPLETED" or
           j["attempt"] > gave_up[j["id"]] + sum(e["cause"] == "consolidate" for e in j.get("evictions") or [])]
    for j in bad:
        print("job %s: %s, attempt %s, %s" % (j["id"], j["state"], j["attempt"], j.get("evictions")))
    if len(there) != n:
        print("%d jobs have ended, not %d" % (len(there), n))
    return not bad and len(there) == n


def watched(path):
    """(node, "device/what") or (node, resource): sum."""
    sums = {}
    with open(path) as f:
        for line in f:
            if line.startswith("holds\t"):
                _, node, what, total = line.rstrip("\n").split("\t")
                sums[node, what] = Fraction(total)
    return sums


def taken(n, sums):
    """(what, by the ledger, by the watcher) of a node, in the watcher's units."""
    name = n["name"]

    def there(what):
        return sums.get((name, what), 0)

    by = n.get("sharing") or "whole"
    for d in n["devices"]:
        if by == "gpu-manager":
            whole = there("%d/cores of a whole one" % d["index"])
            blocks = d["memory_mib"] // 256
            yield "cores of %d" % d["index"], 100 - d["free_cores"], 100 * there("%d/cores" % d["index"])
            # A fraction is rounded down to whole blocks: the ledger has up to one more for each.
            held = blocks * whole + there("%d/blocks of a device" % d["index"])
            least = blocks - d["free_memory_mib"] // 256 - len(d["pods"])
            yield "blocks of %d" % d["index"], max(held, least), held
        elif by.startswith("gpushare"):
            # Each pod is placed as so many whole units.
            units = d["memory_mib"] // 1024
            held = units * there("%d/memory" % d["index"])
            yield "units of %d" % d["index"], sum(max(1, p["memory_mib"] // 1024) for p in d["pods"]), held
        elif by == "hami":
            yield "MiB of %d" % d["index"], d["memory_mib"] - d["free_memory_mib"], there(d["uuid"] + "/MiB")
    if by in ("time-slicing", "mps"):
        yield "replicas", round((n["gpus"] - n["free_gpus"]) * 10, 3), there(WHOLE)
    elif by == "whole" and not n.get("mig"):
        yield "devices", n["gpus"] - n["free_gpus"], there(WHOLE)
    for m in n.get("mig", []):
        yield m["profile"], m["count"] - m["free"], there(INSTANCE + m["profile"])
    for what, e in (n.get("resources") or {}).items():
        if what.startswith("rdma"):
            yield what, e["total"] - e["free"], there(what)


def ledger(nodes, path):
    sums, fine, seen = watched(path), True, 0
    for n in read(nodes):
        for what, mine, theirs in taken(n, sums):
            seen += theirs > 0
            if mine != theirs:
                print("%s: %s: %s taken by the ledger, %s by the watcher" % (n["name"], what, mine, float(theirs)))
                fine = False
    print("%d sums compared that are not zero" % seen)
    return fine and seen > 10


def main(command, *args):
    if command == "jobs":
        print("\n---\n".join(json.dumps(j) for j in jobs(args[0], int(args[1]), args[2:] == ("hang",))))
        return True
    if command == "ended":
        return ended(int(args[0]), *args[1:])
    if command == "ledger":
        return ledger(*args)
    raise SystemExit(__doc__)


if __name__ == "__main__":
    sys.exit(0 if main(*sys.argv[1:]) else 1)
