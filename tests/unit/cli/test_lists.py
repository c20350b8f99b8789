"""Lists: columns, order, limits, JSON, and strings that would act on a terminal."""
import fcntl
import json
import re
import os
import pty
import struct
import termios

from fake import Case, Refused, job, main


def listing(*jobs):
    def handler(call):
        for j in jobs:
            call.item(j)
        return {}
    return handler


def rows(*jobs):
    """The same from a server that sends rows: of what was asked for, two a message."""
    def value(j, key):
        if key == "pods.node":
            return [p["node"] for p in j["pods"]]
        return j.get(key)

    def handler(call):
        lines = [[value(j, k) for k in call.params["keys"]] for j in jobs]
        for at in range(0, len(lines), 2):
            call.item(lines[at:at + 2])
        return {}
    return handler


def asked(call):
    """What selects jobs, without what is wanted of them."""
    return {k: v for k, v in call.params.items() if k not in ("keys", "order", "first")}


class History(Case):
    def test_says_what_is_wanted(self):
        s = self.serve(history_list=listing(job(17, "COMPLETED", exit_code=0)))
        out = self.ok("history", "-h", "-u", "ann", "--since=@5", "--until=@7", "--limit=3",
                      "-o", "JOBID,STATE,EXIT_CODE")
        self.assertEqual(out.split(), ["17", "COMPLETED", "0"])
        self.assertEqual(asked(s.of("history.list")[0]),
                         {"users": ["ann"], "since_us": 5000000, "until_us": 7000000,
                          "all": True, "limit": 3})
        self.ok("history", "--limit=3", "--sort=NAME")
        self.assertEqual(asked(s.of("history.list")[1]), {})

    def test_waits_and_evictions(self):
        us = 1700000000000000
        self.serve(history_list=listing(
            job(1, "PREEMPTED", eligible_time=us, start_time=us + 90000000, evictions=[{}, {}]),
            job(2, "CANCELLED", eligible_time=us, start_time=None, end_time=us + 5000000)))
        self.assertEqual([x.split() for x in self.ok("history", "-h", "-o", "WAIT,EVICTIONS")
                          .splitlines()], [["1:30", "2"], ["0:05", "0"]])

    def test_a_table_of_everything_is_cut_and_says_so(self):
        s = self.serve(history_list=listing(*[job(n, "FAILED") for n in range(1, 1003)]))
        code, out, err = self.run_gpuq("history", "-h", "-o", "JOBID")
        self.assertEqual((code, len(out.splitlines())), (0, 1000))
        self.assertIn("newest 1000", err)
        self.assertEqual(asked(s.of("history.list")[0]), {"limit": 1001})
        code, out, err = self.run_gpuq("history", "-h", "-o", "JOBID", "-t", "F")
        self.assertEqual((code, len(out.splitlines()), err), (0, 1002, ""))


US = 1700000000000000


class Events(Case):
    def test_a_jobs_own(self):
        s = self.serve(event_list=listing(
            {"time": US, "event": "job.placed", "job": "17_3", "attempt": 0, "pods": 2,
             "nodes": ["n1", "n2"]},
            {"time": US + 1, "event": "job.evict_asked", "job": "17_3", "who": "ann\x1b[2J",
             "cause": "reclaim", "by": "9"}))
        rows = self.ok("events", "17_3", "-o", "EVENT,JOB,WHO,ATTEMPT,DETAIL").splitlines()
        self.assertEqual([r.split() for r in rows], [
            ["EVENT", "JOB", "WHO", "ATTEMPT", "DETAIL"],
            ["job.placed", "17_3", "-", "0", "pods=2", "nodes=n1,n2"],
            ["job.evict_asked", "17_3", "ann\\x1b[2J", "-", "cause=reclaim", "by=9"]])
        self.assertEqual(s.of("event.list")[0].params, {"id": 17, "index": 3})
        line = json.loads(self.ok("events", "--json", "17", "--since=@5").splitlines()[0])
        self.assertEqual(line["time"], "2023-11-14T22:13:20.000Z")
        self.assertEqual(s.of("event.list")[1].params, {"id": 17, "since_us": 5000000})

    def test_audit(self):
        s = self.serve(audit_list=listing(
            {"time": US, "who": "eve", "action": "site.changed", "object": "queue/a",
             "old": {"quota": 1}, "new": {"quota": 2}}))
        out = self.ok("events", "--audit", "-h", "-u", "eve", "-o", "WHO,ACTION,OBJECT,OLD,NEW")
        self.assertEqual(out.split(), ["eve", "site.changed", "queue/a", "quota=1", "quota=2"])
        self.assertEqual(s.of("audit.list")[0].params, {"users": ["eve"]})
        self.ok("events", "--audit", "-u", "eve,bob")
        self.assertEqual(s.of("audit.list")[1].params, {"users": ["eve", "bob"]})

    def test_following_goes_on_where_the_list_ended(self):
        s = self.serve(
            event_list=listing({"time": US, "event": "job.placed", "job": "17"}),
            event_watch=listing({"time": US + 9, "event": "job.ended", "job": "17"}),
            job_get=lambda call: {"jobs": [job(17, "COMPLETED" if s.of("event.watch")
                                               else "RUNNING")]})
        out = self.ok("events", "-f", "-h", "17").splitlines()
        self.assertEqual([r.split()[2] for r in out], ["job.placed", "job.ended"])
        self.assertEqual(s.of("event.watch")[0].params, {"id": 17, "since_us": US})


class Queue(Case):
    def table(self, jobs, *args, **more):
        self.serve(job_list=listing(*jobs))
        return [line.split() for line in self.ok("queue", *args, **more).splitlines()]

    def test_looks_like_squeue(self):
        rows = self.table([job(18, "PENDING"), job(17, "RUNNING", end_time=1700003665000000)])
        self.assertEqual(rows[0], ["JOBID", "QUEUE", "NAME", "USER", "ST", "TIME", "GPUS",
                                   "NODES", "NODELIST(REASON)"])
        self.assertEqual(rows[1], ["18", "default", "train", "ann", "PD", "0:00", "1", "0",
                                   "(Resources)"])
        self.assertEqual(rows[2], ["17", "default", "train", "ann", "R", "1:00:05", "1", "1",
                                   "n1"])

    def test_sorts_by_state_then_priority(self):
        rows = self.table([job(1, "RUNNING"), job(2, "PENDING", priority=5),
                           job(3, "PENDING", priority=9)], "-h", "-o", "JOBID")
        self.assertEqual(rows, [["3"], ["2"], ["1"]])

    def test_sorts_as_told(self):
        rows = self.table([job(9, name="n10"), job(10, name="n2")], "-h", "-o", "jobid",
                          "--sort=name")
        self.assertEqual(rows, [["10"], ["9"]])
        self.assertEqual(self.ok("queue", "-h", "-o", "jobid", "--sort=-jobid").split(),
                         ["10", "9"])

    def timeless(self, *args):
        """What it prints, but for the seconds: they go on from one list to the next."""
        return re.sub(r":[0-9]{2}\b", ":SS", self.ok(*args))

    def test_rows_look_like_objects(self):
        array = {"indices": "4-99", "size": 100, "throttle": 10, "waiting": "7-99"}
        jobs = [job(1, "PENDING", name="größe", gpus=0.5), job(2), job(3, "FAILED", exit_code=3),
                job(4, "PENDING", array=array, labels={"a": "b"}, account="x\x1b"),
                job(5, array_index=-1, priority=-200, time_limit_s=70000, attempt=300,
                    evictions=[{}, {}], use={"percent": 12.5}),
                job(6, name="n" * 300, pods=[{"node": "n%02d" % i} for i in range(40)])]
        for args in ([], ["--long"], ["-o", "%.18i %9P %j %R"], ["--csv", "--sort=-NAME"],
                     ["--limit=2", "--sort=GPUS,JOBID"],
                     ["-o", "+LABELS,ACCOUNT,EVICTIONS,USE,TIME_LEFT,NODELIST,GPU_SECONDS"]):
            s = self.serve(job_list=listing(*jobs))
            whole = self.timeless("queue", *args)
            s.stop()
            s = self.serve(job_list=rows(*jobs))
            self.assertEqual(self.timeless("queue", *args), whole)
            self.assertIn("id", s.of("job.list")[0].params["keys"])
            s.stop()

    def test_only_what_is_shown_is_asked_for(self):
        s = self.serve(job_list=rows(job(17, "PENDING")))
        self.assertEqual(self.ok("queue", "-h", "-o", "NAME,REASON", "--sort=USER"),
                         "train Resources\n")
        self.assertEqual(s.of("job.list")[0].params, {"keys": ["name", "origin", "reason", "user"]})
        s.handlers["job.list"] = listing(job(17))
        self.ok("queue", "--json")
        self.assertEqual(s.of("job.list")[1].params, {})

    def test_the_server_may_leave_out_what_is_behind_the_limit(self):
        s = self.serve(job_list=listing(job(17)))
        for args, order in ((["--limit=2"], ["state", "-priority", "id"]),
                            (["--limit=2", "--sort=-JOBID"], ["-id"]),
                            (["--limit=2", "--sort=-V", "--json"], ["-submit_time"]),
                            (["--limit=2", "--sort=NAME"], None), ([], None)):
            self.ok("queue", *args)
            p = s.of("job.list")[-1].params
            self.assertEqual((p.get("order"), p.get("first")), (order, order and 2))

    def test_rows_that_are_none(self):
        good = [1, None, None]
        for item in ([good, [1, None]], [good, 5], [5], [[1, None, "\udcff"]], [good + good]):
            s = self.serve(job_list=lambda call, item=item: call.item(item) or {})
            code, _, err = self.run_gpuq("queue", "-h", "-o", "JOBID", "--sort=JOBID")
            self.assertEqual(code, 255, item)
            self.assertNotEqual(err, "")
            s.stop()

    def on_terminal(self, columns, *args, **env):
        """What gpuq prints on a terminal of so many columns."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        p = self.start(*args, env=self.env(TERM="xterm", **env), stdout=theirs)
        os.close(theirs)
        out = b""
        try:
            while chunk := os.read(ours, 65536):
                out += chunk
        except OSError:
            pass  # that is how a terminal ends
        os.close(ours)
        self.assertEqual(p.wait(60), 0)
        return out.decode().replace("\r", "").splitlines()

    def test_a_terminal_has_colours_and_an_edge(self):
        self.serve(job_list=rows(job(17, "RUNNING", name="a" * 40, queue="größe" * 3),
                                 job(18, "FAILED", name="b")))
        args = ("queue", "-h", "-o", "JOBID,NAME,QUEUE,ST")
        wide = ["   17 " + "a" * 40 + " " + "größe" * 3 + " R",
                "   18 b" + " " * 39 + " default" + " " * 8 + " F"]
        self.assertEqual(self.on_terminal(90, *args, NO_COLOR="1"), wide)
        self.assertEqual(self.on_terminal(90, *args),
                         [wide[0][:-1] + "\033[32mR\033[0m", wide[1][:-1] + "\033[31mF\033[0m"])
        # The widest of those that may be cut give way, down to their names where that helps.
        self.assertEqual(self.on_terminal(30, *args, NO_COLOR="1"),
                         ["   17 aaaaaaaaaa größegröße R", "   18 b          default    F"])
        self.assertEqual(self.on_terminal(5, *args, NO_COLOR="1"),
                         ["   17 " + "a" * 16 + " " + "größe" * 3 + " R",
                          "   18 b" + " " * 15 + " default" + " " * 8 + " F"])

    def test_what_has_no_room_is_left_out(self):
        ended = job(17, "COMPLETED", name="a" * 40, exit_code=0, start_time=US, end_time=US)
        self.serve(history_list=rows(ended), job_list=rows(job(17, "RUNNING", name="a" * 40)))

        def heads(columns, *args):
            lines = self.on_terminal(columns, *args, NO_COLOR="1")
            self.assertEqual([x for x in lines if len(x) > columns], [])
            return lines[0].split()
        every = heads(200, "history")
        self.assertEqual(every, self.ok("history").splitlines()[0].split())
        self.assertEqual(heads(80, "history"), [x for x in every if x not in ("GPU_SECONDS", "WAIT")])
        self.assertEqual(heads(60, "history"), [x for x in every if x not in (
            "GPU_SECONDS", "WAIT", "USER", "EXIT_CODE")])
        self.assertEqual(heads(60, "queue")[-1], "NODELIST(REASON)")
        # What was asked for by name is there.
        self.assertEqual(self.on_terminal(60, "history", "-o", ",".join(every))[0].split(), every)

    def test_limit_counts_after_sorting(self):
        rows = self.table([job(1, priority=1), job(2, priority=2)], "-h", "-o", "JOBID",
                          "--limit=1")
        self.assertEqual(rows, [["2"]])

    def test_an_empty_list_has_its_header(self):
        self.assertEqual(self.table([])[0][0], "JOBID")
        self.assertEqual(self.ok("queue", "-h"), "")

    def test_array_elements(self):
        array = {"indices": "4-99", "size": 100, "throttle": 10}
        rows = self.table([job(17, "PENDING", array=array),
                           job(17, "RUNNING", array=array, array_index=3)], "-h", "-o", "JOBID")
        self.assertEqual(rows, [["17_[4-99%10]"], ["17_3"]])

    def test_nodes_are_folded(self):
        pods = [{"node": n} for n in ("n10", "n9", "n8", "x", "g01", "g02", "g04")]
        rows = self.table([job(pods=pods)], "-h", "-o", "NODES,NODELIST")
        self.assertEqual(rows, [["7", "g[01-02,04],n[8-10],x"]])

    def test_squeue_format_strings(self):
        self.serve(job_list=listing(job(17)))
        self.assertEqual(self.ok("queue", "-h", "-o", "%.6i|%5t|%j"), "    17|R    |train\n")

    def test_columns_have_widths(self):
        self.serve(job_list=listing(job(17, name="größer", queue="字字字")))
        self.assertEqual(self.ok("queue", "-h", "-o", "JOBID:5,NAME:.8,QUEUE:5,ST"),
                         "17      größer 字字  R\n")
        self.assertEqual(self.ok("queue", "-o", "NAME:2").splitlines(), ["NA", "gr"])
        self.assertEqual(self.ok("queue", "-h", "-o", "%.8j|%5P|"), "  größer|字字 |\n")
        for cols in ("NAME:0", "NAME:x", "NAME:", "NAME:9999"):
            code, out, err = self.run_gpuq("queue", "-o", cols)
            self.assertEqual((code, out), (2, ""), cols)
            self.assertIn("NAME:20", err)

    def test_unknown_column_is_wrong_usage(self):
        self.serve(job_list=listing())
        code, out, err = self.run_gpuq("queue", "-o", "JOBBID")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("did you mean JOBID", err)

    def test_filters_travel(self):
        s = self.serve(job_list=listing(), job_get=lambda call: {"jobs": [job()]})
        self.ok("queue", "--me", "-q", "a,b", "-t", "pd,RUNNING", "-n", "x", "-w", "n[1-2],m",
                "-j", "17_[1-3:2],9")
        p = asked(s.of("job.list")[0])
        self.assertEqual(p, {"users": ["ann"], "queues": ["a", "b"],
                             "states": ["PENDING", "RUNNING"], "names": ["x"], "nodes": ["n1", "n2", "m"],
                             "ids": ["17_1", "17_3", "9"]})
        self.ok("queue", "-t", "all")
        self.assertEqual(asked(s.of("job.list")[1]), {"all": True})
        self.ok("queue", "-t", "F")
        self.assertEqual(asked(s.of("job.list")[2]), {"all": True, "states": ["FAILED"]})
        self.ok("queue", "--since=@1700000000")
        self.assertEqual(asked(s.of("job.list")[3]), {"all": True, "since_us": 1700000000000000})

    def test_wrong_filters_are_wrong_usage(self):
        self.serve(job_list=listing())
        for args in (["-t", "SLEEPING"], ["-j", "x"], ["--since", "yesterday"],
                     ["--limit", "0"], ["--limit", "9" * 30], ["--me", "-u", "bob"], ["--watch=x"], ["--nope"],
                     ["-o", "JOBID,,NAME"], ["-o", ","], ["--sort", ""]):
            code, out, err = self.run_gpuq("queue", *args)
            self.assertEqual((code, out), (2, ""), args)
            self.assertTrue(err.startswith("gpuq: "), args)

    def test_json_is_an_object_a_line(self):
        self.serve(job_list=listing(
            job(17, reasons=[{"code": "Resources", "since": 1700000000000000}],
                evictions=[{"time": 1700000000000000, "cause": "drain"}],
                spec={"time": 5, "begin_time": 7}), job(18, "PENDING")))
        lines = [json.loads(x) for x in self.ok("queue", "--json").splitlines()]
        self.assertEqual([x["id"] for x in lines], [17, 18])
        j = lines[0]
        self.assertEqual(j["v"], 1)
        self.assertEqual(j["submit_time"], "2023-11-14T22:13:20.000Z")
        self.assertIsNone(j["end_time"])
        self.assertEqual(j["reasons"][0]["since"], "2023-11-14T22:13:20.000Z")
        self.assertEqual(j["evictions"][0]["time"], "2023-11-14T22:13:20.000Z")
        self.assertEqual(j["spec"], {"time": 5, "begin_time": 7})

    def test_json_can_be_sorted_and_limited(self):
        s = self.serve(job_list=listing(job(1), job(2), job(3)))
        out = self.ok("queue", "--json", "--sort=-JOBID", "--limit=2")
        self.assertEqual([json.loads(x)["id"] for x in out.splitlines()], [3, 2])
        self.assertNotIn("limit", s.of("job.list")[0].params)
        self.assertEqual(len(self.ok("queue", "--json", "--limit=2").splitlines()), 2)
        self.assertEqual(s.of("job.list")[1].params["limit"], 2)

    def test_strings_cannot_act(self):
        evil = "a\x1b[2Jb\x7f\u009b\u202ec\u200b\nd"
        self.serve(job_list=listing(job(name=evil, queue="größe")))
        self.assertEqual(self.ok("queue", "-h", "-o", "NAME,QUEUE"),
                         "a\\x1b[2Jb\\x7f\\u{9b}\\u{202e}c\\u{200b}\\x0ad größe\n")
        self.assertEqual(self.ok("queue", "-h", "-o", "QUEUE", env=self.env(LC_ALL="C")),
                         "gr\\u{f6}\\u{df}e\n")

    def test_no_such_job_is_254(self):
        def gone(call):
            raise Refused(2, "not_found", "no job 99")
        self.serve(job_list=listing(), job_get=gone)
        self.assertEqual(self.run_gpuq("queue", "-j", "99"), (254, "", "gpuq: no job 99\n"))

    def test_watch_repeats_until_a_signal(self):
        s = self.serve(job_list=listing(job(17)))
        p = self.start("queue", "--json", "--watch=0.1")
        lines = [p.stdout.readline() for _ in range(3)]
        p.send_signal(2)
        p.communicate(timeout=60)
        self.assertEqual(p.returncode, 0)
        self.assertEqual([json.loads(x)["id"] for x in lines], [17, 17, 17])
        self.assertGreaterEqual(len(s.of("job.list")), 3)


class Others(Case):
    NODE = {"name": "n1", "pool": "default", "flavor": "a100", "state": "mixed", "gpus": 2,
            "free_gpus": 1.5, "devices": [
                {"index": 0, "uuid": "GPU-0", "product": "NVIDIA-A100", "memory_mib": 40960,
                 "free_milli": 500, "free_memory_mib": 1024, "jobs": [17], "state": "ok"},
                {"index": 1, "uuid": "GPU-1", "product": "NVIDIA-A100", "memory_mib": 40960,
                 "free_milli": 1000, "free_memory_mib": 40960, "jobs": [], "state": "ok"}]}

    def test_nodes_by_device(self):
        s = self.serve(node_list=listing(self.NODE, {"name": "cpu", "state": "idle", "devices": [],
                                                 "gpus": 0, "free_gpus": 0}))
        rows = [r.split() for r in self.ok("nodes").splitlines()]
        self.assertEqual(rows[0], ["NODE", "STATE", "POOL", "FLAVOR", "GPU", "PRODUCT",
                                   "MEMORY", "FREE", "JOBS", "NOTE"])
        self.assertEqual(rows[1], ["cpu", "idle", "-", "-", "-", "-", "-", "0", "-", "-"])
        self.assertEqual(rows[2], ["n1", "mixed", "default", "a100", "0", "NVIDIA-A100", "40Gi",
                                   "0.5", "17", "-"])
        self.assertEqual(rows[3][4:], ["1", "NVIDIA-A100", "40Gi", "1", "-", "-"])
        self.assertEqual(self.ok("nodes", "-s", "-h", "-t", "mixed").split(),
                         ["n1", "mixed", "default", "a100", "2", "1.5", "-", "-"])
        self.assertEqual(len(self.ok("nodes", "--json").splitlines()), 2)
        self.assertEqual(self.ok("nodes", "-h", "-s", "-t", "idle", "-o", "NODE"), "cpu\n")
        self.ok("nodes", "n1", "-w", "a,b")
        self.assertEqual(s.of("node.list")[-1].params, {"names": ["n1", "a", "b"]})
        self.ok("nodes", "-w", "n[08-10],x")
        self.assertEqual(s.of("node.list")[-1].params, {"names": ["n08", "n09", "n10", "x"]})
        for wrong, why in ((("-t", "asleep"), "no such state"), (("-w", "n["), "expected node names")):
            code, _, err = self.run_gpuq("nodes", *wrong)
            self.assertEqual(code, 2)
            self.assertIn(why, err)

    def test_queues(self):
        s = self.serve(queue_list=listing(
            {"name": "research", "parent": None, "quota": {"a100": 32, "h100": 8},
             "limit": "unlimited", "weight": 2, "fair_share": 40.5, "allocated": 3, "held": 0,
             "pending_jobs": 4, "running_jobs": 2, "budget_gpu_minutes": None,
             "used_gpu_minutes": 0}))
        self.assertEqual(self.ok("queues", "-h").split(),
                         ["research", "-", "a100=32,h100=8", "unlimited", "40.5", "3", "0",
                          "4", "2"])
        self.assertEqual(self.ok("queues", "-h", "-o", "WEIGHT,STATE"), "     2 -\n")
        self.ok("queues", "-q", "a", "b")
        self.assertEqual(s.of("queue.list")[-1].params, {"names": ["b", "a"]})

    def test_a_name_that_is_none(self):
        def no(call):
            raise Refused(2, "not_found", "no queue is named x")
        self.serve(queue_list=no)
        self.assertEqual(self.run_gpuq("queues", "x"), (1, "", "gpuq: no queue is named x\n"))


class Status(Case):
    STATUS = {"gpus": 8, "devices": {"allocated": 3, "held": 0, "reserved": 0, "free": 5,
                                     "stranded": 0, "draining": 0, "lost": 0},
              "jobs": {"PENDING": 2, "RUNNING": 1},
              "cluster": {"kind": "kube", "stale_since": 1700000000000000}}

    def test_glance(self):
        self.serve(status_get=lambda call: self.STATUS,
                   queue_list=listing({"name": "default"}))
        out = self.ok("status")
        self.assertIn("kube, stale since 2023-11-14 22:13:20", out)
        self.assertIn("8 (3 allocated, 5 free)", out)
        self.assertIn("2 PENDING, 1 RUNNING", out)
        self.assertIn("\ndefault", out)
        j = json.loads(self.ok("status", "--json"))
        self.assertEqual(j["devices"]["free"], 5)
        self.assertEqual(j["cluster"]["stale_since"], "2023-11-14T22:13:20.000Z")

    def test_a_job(self):
        s = self.serve(job_get=lambda call: {"jobs": [job(
            17, "PENDING", name="a\x1bb", reasons=[
                {"code": "Resources", "object": "a100", "have": 1, "need": 4,
                 "since": 1700000000000000, "who": "nobody"}])]})
        out = self.ok("status", "17_3")
        self.assertEqual(s.of("job.get")[0].params, {"id": 17, "index": 3})
        self.assertIn("a\\x1bb", out)
        self.assertIn("Resources a100: have 1, need 4, for ", out)
        self.assertEqual(json.loads(self.ok("status", "17", "--json"))["id"], 17)

    def test_an_array_that_is_no_single_message(self):
        def big(call):
            raise Refused(8, "too_big", "the answer is larger than a message may be")
        s = self.serve(job_get=big, job_list=listing(*[job(17, array_index=i)
                                                       for i in range(3)]))
        out = self.ok("status", "17", "--json")
        self.assertEqual([json.loads(x)["array_index"] for x in out.splitlines()], [0, 1, 2])
        self.assertEqual(asked(s.of("job.list")[0]), {"ids": ["17"], "all": True})

    def test_no_such_job(self):
        def gone(call):
            raise Refused(2, "not_found", "no job 17")
        self.serve(job_get=gone)
        self.assertEqual(self.run_gpuq("status", "17"), (254, "", "gpuq: no job 17\n"))
        self.assertEqual(self.run_gpuq("status", "x")[0], 2)


if __name__ == "__main__":
    main()
