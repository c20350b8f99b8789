"""Nothing that a user, a node or a server named acts on the terminal: every verb, with every
string of the answer turned into one that would."""
import json
import re

from fake import Case, Refused, job, main

US = 1700000000000000
# Escape sequences, a title, bells, C1 as characters, directions turned, zero width, lines and
# carriage returns; and bytes that are no UTF-8.
NASTY = "a\x1b[2J\x1b]0;title\x07\u009b31m\u202egnp\u2066\u200b\u2028\n\r\t\v\x7f\u00ad\ufeffz"
BROKEN = "a\udcff\udc9b31m\udcc3(z\x1b[2J"
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e"
                  "\u2060-\u206f\ufeff]")
# Words that decide which way an answer goes: one run leaves them, another does not.
WORDS = {"state", "result", "check", "kind", "next", "by", "unit", "code", "event"}


def poisoned(v, nasty, words=False, key=""):
    if isinstance(v, dict):
        return {k: poisoned(x, nasty, words, k) for k, x in v.items()}
    if isinstance(v, list):
        return [poisoned(x, nasty, words, key) for x in v]
    if isinstance(v, str) and (words or key not in WORDS):
        return nasty
    return v


REASON = {"code": "Resources", "object": "gpus", "unit": "gpus", "have": 2, "need": 4,
          "since": US, "who": "user"}
EVICTION = {"time": US, "cause": "reclaim", "rule": "quota", "by": "9", "by_queue": "lab",
            "why": "numbers"}
JOB = job(17, "RUNNING", message="said", account="acc", qos="normal", labels={"team": "a"},
          reasons=[REASON], evictions=[EVICTION], avoids=[{"node": "n1", "until_time": US}],
          promise={"since": US, "pods": [{"group": "main", "node": "n1", "devices": [0]}],
                   "victims": ["5"], "victims_left": 1, "rule": "r", "why": "w"},
          warnings=["look out"])
WAITS = job(18, "PENDING", message="said", reasons=[REASON], evictions=[EVICTION], avoids=[],
            qos="normal", labels={}, planned_time=US)
NODE = {"name": "n1", "pool": "p", "flavor": "a100", "state": "drained", "gpus": 1, "free_gpus": 1,
        "drain_why": "because", "why": "because", "note": "kubelet says", "message": "m",
        "devices": [{"index": 0, "uuid": "GPU-1", "product": "A100", "memory_mib": 80,
                     "free_milli": 0, "free_memory_mib": 0, "jobs": ["17"], "state": "unhealthy",
                     "pods": [{"job": "17", "pod": 0, "user": "ann", "queue": "q", "milli": 1000,
                               "memory_mib": None}]}]}
QUEUE = {"name": "lab", "parent": "all", "quota": {"a100": 4}, "limit": "unlimited", "weight": 1,
         "fair_share": 2, "allocated": 1, "held": 0, "pending_jobs": 1, "running_jobs": 1,
         "budget_gpu_minutes": 10, "used_gpu_minutes": 1, "namespace": "ns", "state": "open"}
ROW = {"queue": "lab", "user": "ann", "flavor": "a100", "day": "2026-11-01", "depth": 0,
       "gpu_seconds": 5, "refunded_gpu_seconds": 0, "wasted_gpu_seconds": {"evicted": 1},
       "name": "lab", "level": 0, "currency": "EUR", "job": "17", "id": 17, "account": "acc",
       "state": "active", "flags": ["maintenance"], "users": ["ann"], "nodes": ["n1"],
       "start_time": US, "end_time": US, "gpus": 1, "why": "w", "pool": "p"}
EVENT = {"time": US, "event": "job.evict_asked", "job": "17", "who": "ann", "cause": "reclaim",
         "nodes": ["n1"], "message": "m", "why": "w"}
AUDIT = {"time": US, "who": "ann", "action": "site.changed", "object": "queue/lab", "owner": "o",
         "queue": "lab", "note": "n", "old": {"image": "x"}, "new": {"image": "y"}}
STATUS = {"gpus": 4, "devices": {"allocated": 1, "held": 0, "reserved": 0, "free": 3, "stranded": 0,
                                 "draining": 0, "lost": 0}, "jobs": {"RUNNING": 1},
          "frozen_nodes": ["n1"], "oldest_waiting": {"job": "18", "user": "ann", "queue": "lab",
                                                     "eligible_time": US, "reason": "Resources"},
          "cluster": {"kind": "kube", "stale_since": None, "read_only": False},
          "loop": {"turns": 1, "longest_ms": 1}}
WHY = {"job": WAITS, "starts": [{"attempt": 0, "time": US, "why": "w", "nodes": ["n1"]}],
       "claims": [{"time": US, "job": "9", "rule": "r", "why": "w"}],
       "start": {"by": "simulation", "start_time": US, "likely_time": US, "flavor": "a100",
                 "victims": ["5"], "pods": [{"node": "n1", "group": 0, "index": 0, "devices": [2],
                                             "gpus": 2}],
                 "waits": [{"from_time": US, **REASON}],
                 "assumed": {"at_time": US, "until_time": US, "events": 7, "cut_short": False,
                             "running": 9, "endless": 1, "learned": 0},
                 "record": {"queue": "default", "jobs": 12, "unknown": 1, "late": 2, "early": 3,
                            "half_s": 60, "most_s": 3600}},
       "waiting": {"next": "wait", "victims": ["5"], "place": 2, "waiting": 5,
                   "terms": {"age": 3, "fairshare": 0, "size": 0, "qos": 100, "stretch": 0,
                             "boost": 0, "nice": 7, "total": 96},
                   "ahead": [{"job": "16", "user": "bob", "queue": "default", "gpus": 8,
                              "priority": 99, "by": "age", "points": 3}],
                   "queues": [{"name": "lab", "depth": 0, "waiting": 6, "allocated": 3,
                               "fair_share": 4, "quota": 4, "limit": "unlimited"}],
                   "changes": [{"kind": "flavor", "what": "a100", "text": "t", "job": "16"}],
                   "tries": 3, "cut_short": False}}
DIAG = {"process": {"version": "9", "now_time": US, "start_time": US},
        "cluster": {"kind": "kube", "connected": True, "stale_since": None},
        "notify": {"waiting": 1, "oldest_time": US, "last_error": "no", "given_up": 0},
        "scheduler": {"cycles": 1}, "loop": {"most_us": 1}, "journal": {"read_only": False},
        "store": {"bytes": 1, "map_bytes": 9, "disk_free_bytes": 1 << 40}}
ACTED = {"matched": 1, "jobs": [{"id": 17, "array_index": None}], "warnings": ["w"],
         "errors": [{"id": "17", "code": 3, "name": "refused", "msg": "job 17 says no"}]}
NODES_ACTED = {"matched": 1, "changed": 1, "jobs": 0, "nodes": [{"name": "n1", "jobs": 1, "changed": True}]}
APPLIED = {"changes": [{"object": "queue/lab", "action": "changed", "old": {"image": "x"},
                        "new": {"image": "y"}}], "generation": 3, "evicts": 1,
           "lost_gpu_seconds": 5, "warnings": ["w"],
           "evictions": [{"id": 17, "array_index": None, "user": "ann", "queue": "lab", "gpus": 1,
                          "ran_s": 5, "lost_gpu_seconds": 5, "by": "9", "by_queue": "q",
                          "rule": "r"}]}
SITE = {"site": {"version": 1, "queues": [{"name": "lab", "image": "x"}]}, "generation": 1,
        "version": 1, "queues": [{"name": "lab", "image": "x"}]}

# verb and arguments: {method: what it streams, or with a tuple what it replies}
VERBS = [
    (["queue"], {"job_list": [JOB, WAITS]}),
    (["queue", "--long", "-o", "+MESSAGE,LABELS,ACCOUNT,NODELIST"], {"job_list": [JOB, WAITS]}),
    (["queue", "--csv"], {"job_list": [JOB, WAITS]}),
    (["queue", "-o", "%i %j %R"], {"job_list": [JOB, WAITS]}),
    (["history"], {"history_list": [JOB]}),
    (["nodes"], {"node_list": [NODE]}),
    (["nodes", "--csv"], {"node_list": [NODE]}),
    (["queues"], {"queue_list": [QUEUE]}),
    (["shares"], {"shares_list": [ROW]}),
    (["prio"], {"prio_list": [{**WAITS, "terms": {}}]}),
    (["usage"], {"usage_list": [ROW]}),
    (["report"], {"report_get": [ROW]}),
    (["reservations"], {"reservation_list": [ROW]}),
    (["events", "17"], {"event_list": [EVENT]}),
    (["events", "--audit"], {"audit_list": [AUDIT]}),
    (["status", "17"], {"job_get": ({"jobs": [JOB, WAITS]},)}),
    (["status"], {"status_get": (STATUS,), "queue_list": [QUEUE], "node_list": [NODE]}),
    (["why", "18"], {"job_why": (WHY,)}),
    (["diag"], {"diag_get": (DIAG,)}),
    (["doctor"], {"diag_get": (DIAG,), "node_list": [NODE]}),
    (["cancel", "17"], {"job_cancel": (ACTED,)}),
    (["hold", "--dry-run", "17"], {"job_hold": (ACTED,)}),
    (["requeue", "-v", "17"], {"job_requeue": (ACTED,)}),
    (["update", "17", "nice=5"], {"job_update": (ACTED,)}),
    (["drain", "-v", "n1"], {"node_drain": (NODES_ACTED,)}),
    (["resume", "--dry-run", "n1"], {"node_resume": (NODES_ACTED,)}),
    (["queues", "stop", "--dry-run", "lab"], {"site_apply": (APPLIED,), "site_get": (SITE,)}),
    (["queues", "grant", "lab", "5"], {"queue_grant": ({"queue": "lab"},)}),
    (["export"], {"site_get": (SITE,), "site_export": (SITE,)}),
    (["version"], {}),
    (["submit", "job.yaml"], {"job_submit": ({"jobs": [JOB], "id": 17, "warnings": ["w"]},)}),
    (["submit", "--dry-run", "job.yaml"], {"job_submit": ({"jobs": [JOB], "warnings": ["w"]},)}),
    (["submit", "--dry-run", "-o", "yaml", "job.yaml"],
     {"job_submit": ({"jobs": [{**JOB, "spec": {"name": "x", "env": {"A": "b"}}}]},)}),
    (["plan", "job.yaml"], {"plan_get": ({"plans": [
        {"job": {"id": None, "name": "train", "queue": "lab", "gpus": 2, "pod_count": 1,
                 "warnings": ["w"]}, **{k: WHY[k] for k in ("start", "waiting")}}]},)}),
]
# They print numbers and what was typed.
MUTE = [["queues", "grant", "lab", "5"], ["version"], ["submit", "job.yaml"]]
JSON = ["queue", "history", "nodes", "queues", "shares", "usage", "report", "events", "status",
        "why", "diag", "doctor"]


class Hostile(Case):
    seen = False

    def handlers(self, table, make):
        def handler(what):
            def answer(call):
                if isinstance(what, tuple):
                    return make(what[0])
                for item in what:
                    call.item(make(item))
                return {}
            return answer
        return {method: handler(what) for method, what in table.items()}

    def look(self, args, table, make, json_too=False):
        self.path("job.yaml", "command: [a]\n")
        server = self.serve(**self.handlers(table, make))
        try:
            for more in [[]] + ([["--json"]] if json_too else []):
                p = self.start(*args, *more)
                out, err = p.communicate(timeout=60)
                for name, got in (("stdout", out), ("stderr", err)):
                    text = got.decode("utf-8", "surrogateescape")
                    bad = ACTS.search(text) or re.search("[\udc80-\udcff]", text)
                    self.assertIsNone(bad, "%s of %s: %r" % (name, args + more, got))
                # Whatever it said, it did not die of it.
                self.assertGreaterEqual(p.returncode, 0, (args, err))
                self.seen |= b"\\x1b" in out + err or b"\\u001b" in out + err
        finally:
            server.stop()

    def everywhere(self, make):
        for args, table in VERBS:
            self.seen = False
            self.look(args, table, make, args[0] in JSON and "--csv" not in args and
                      "-o" not in args)
            # A verb that shows none of it would pass without being looked at.
            self.assertTrue(self.seen or args in MUTE, args)

    def test_strings_that_act(self):
        self.everywhere(lambda v: poisoned(v, NASTY))

    def test_words_that_are_none(self):
        for args, table in VERBS:
            self.seen = False
            self.look(args, table, lambda v: poisoned(v, NASTY, True))

    def test_bytes_that_are_no_text(self):
        for args, table in VERBS:
            self.seen = False
            self.look(args, table, lambda v: poisoned(v, BROKEN))

    def test_keys(self):
        bad = {**JOB, "labels": {NASTY: NASTY}}
        for args in (["queue", "-o", "LABELS"], ["queue", "--json"], ["queue", "--csv", "-o", "LABELS"]):
            self.look(args, {"job_list": [bad]}, lambda v: v)
        self.look(["queues"], {"queue_list": [{**QUEUE, "quota": {NASTY: 4}}]}, lambda v: v)
        self.look(["queues", "stop", "lab"], {"site_apply": ({**APPLIED, "changes": [
            {"object": NASTY, "action": NASTY, "old": {NASTY: NASTY}, "new": {NASTY: [NASTY]}}]},),
            "site_get": (SITE,)}, lambda v: v)

    def test_rows(self):
        """Lists of jobs as rows: any value behind any key."""
        deep = [[NASTY, {NASTY: [NASTY]}], None, 5]
        for value in (NASTY, BROKEN, [NASTY], deep, {NASTY: NASTY, "waiting": NASTY}, [], {}, None,
                      True, -1, 1 << 62, -1.5):
            def answer(call, value=value):
                call.item([[value] * len(call.params["keys"])] * 3)
                return {}
            server = self.serve(job_list=answer)
            for args in (["queue"], ["queue", "--long", "-o", "+MESSAGE,LABELS,EVICTIONS,USE,WAIT"],
                         ["queue", "--csv"], ["queue", "-o", "%18i %R"]):
                p = self.start(*args)
                out, err = p.communicate(timeout=60)
                for got in (out, err):
                    text = got.decode("utf-8", "surrogateescape")
                    self.assertIsNone(ACTS.search(text) or re.search("[\udc80-\udcff]", text),
                                      (args, value, got))
                self.assertGreaterEqual(p.returncode, 0, (args, value, err))
            server.stop()

    def test_refusals(self):
        def refuse(call):
            raise Refused(3, NASTY, NASTY)
        for args, table in VERBS:
            self.path("job.yaml", "command: [a]\n")
            server = self.serve(**{m: refuse for m in table})
            p = self.start(*args)
            out, err = p.communicate(timeout=60)
            server.stop()
            self.assertIsNone(ACTS.search((out + err).decode()), (args, err))

    def test_what_was_typed(self):
        server = self.serve()
        self.path("bad.yaml", "command: [a]\n\"k\\e[2J\": 1\n")
        for args in (["queue", "-t", NASTY], ["cancel", NASTY], ["queue", "-l", NASTY],
                     ["queue", "-o", NASTY], ["queue", "--" + NASTY.replace("\n", "")],
                     [NASTY], ["submit", NASTY], ["submit", "bad.yaml"],
                     ["queues", "set", NASTY, "a=b"], ["drain", NASTY], ["status", NASTY],
                     ["--server", NASTY, "queue"]):
            p = self.start(*args)
            out, err = p.communicate(timeout=60)
            self.assertIsNone(ACTS.search((out + err).decode("utf-8", "surrogateescape")),
                              (args, out, err))
        server.stop()


if __name__ == "__main__":
    main()
