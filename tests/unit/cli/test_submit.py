"""submit and run: what is sent, what is printed, exit codes, interrupted waiting."""
import json
import os
import pty
import re
import select
import signal
import threading

from fake import Case, Gone, Refused, job, main

SPEC = "name: t\ncommand: [sleep, '1']\n"


def result(err):
    """The object of the last line on standard error."""
    line = err.splitlines()[-1]
    assert line.startswith("gpuq-result: "), err
    return json.loads(line[len("gpuq-result: "):])


def taken(*jobs):
    return lambda call: {"jobs": list(jobs) or [job(17, "PENDING")]}


def pending_until_cancelled():
    """Handlers of a server on which job 17 is pending until it is cancelled."""
    cancelled = threading.Event()

    def wait(call):
        call.item(job(17, "PENDING"))
        if cancelled.is_set():
            return {"jobs": [job(17, "CANCELLED")]}
        call.until_cancelled()

    def cancel(call):
        cancelled.set()
        return {"matched": 1, "jobs": [], "errors": []}
    return {"job_submit": taken(), "job_wait": wait, "job_cancel": cancel}


class Submit(Case):
    def test_prints_the_number(self):
        s = self.serve(job_submit=taken())
        f = self.path("job.yaml", SPEC)
        self.assertEqual(self.ok("submit", f), "Submitted job 17\n")
        self.assertEqual(self.ok("submit", f, "--parsable"), "17\n")
        self.assertEqual(json.loads(self.ok("submit", "--json", f))["id"], 17)
        self.assertEqual(self.ok("submit", "-", input=SPEC), "Submitted job 17\n")
        p = s.of("job.submit")[0].params
        self.assertIs(p["dry_run"], False)
        self.assertEqual(len(p["specs"]), 1)
        self.assertEqual(p["specs"][0]["name"], "t")

    def test_several_documents_travel_together(self):
        s = self.serve(job_submit=taken(job(17, "PENDING"), job(18, "PENDING")))
        out = self.ok("submit", self.path("j.yaml", SPEC + "---\n" + SPEC))
        self.assertEqual(out, "Submitted job 17\nSubmitted job 18\n")
        p = s.of("job.submit")[0].params
        self.assertEqual(len(p["specs"]), 2)
        # Their surroundings travel once.
        self.assertNotIn("context", p["specs"][0])
        self.assertEqual(p["context"]["cwd"], os.path.realpath(self.dir))

    def test_many_documents_are_one_message_each_way(self):
        def submit(call):
            n = len(call.params["specs"])
            if call.params["dry_run"]:
                return {"jobs": [dict(job(1, "PENDING"), id=None, state=None)] * n}
            return {"jobs": [{"id": i + 1, "warnings": ["w"]} for i in range(n)]}
        s = self.serve(job_submit=submit,
                       job_get=lambda call: {"jobs": [job(call.params["id"], "PENDING")]})
        f = self.path("many.yaml", "---\n".join([SPEC] * 30))
        code, out, err = self.run_gpuq("submit", "--json", f)
        self.assertEqual((code, err), (0, "gpuq: warning: w\n"))
        self.assertEqual([json.loads(x)["id"] for x in out.splitlines()], list(range(1, 31)))
        self.assertEqual(len(s.of("job.submit")), 1)
        self.assertIs(s.of("job.submit")[0].params["brief"], True)
        self.assertEqual(len(self.ok("submit", "--dry-run", f).splitlines()), 30)

    def test_options_win_over_the_file(self):
        s = self.serve(job_submit=taken())
        f = self.path("job.yaml", SPEC)
        self.ok("submit", "--queue=ml", f, "--time", "2h", "-J", "other")
        spec = s.of("job.submit")[0].params["specs"][0]
        self.assertEqual((spec["queue"], spec["name"]), ("ml", "other"))

    def test_names_of_nodes_with_many_brackets(self):
        """The names that drain takes, in the same order."""
        s = self.serve(job_submit=taken())
        f = self.path("job.yaml", SPEC)
        self.ok("submit", "-w", "n[1-2]r[3-4]", f)
        spec = s.of("job.submit")[0].params["specs"][0]
        self.assertEqual(spec["nodes"], ["n1r3", "n1r4", "n2r3", "n2r4"])
        code, _, err = self.run_gpuq("submit", "-w", "n[1-2]r[", f)
        self.assertEqual(code, 1)
        self.assertIn("expected node names such as n1,n2 or n[01-04,7], not 'n[1-2]r['", err)

    def test_what_stands_behind_a_script_is_its_own(self):
        s = self.serve(job_submit=taken())
        f = self.path("train.sh", "#!/bin/sh\n#GPUQ --gpus=2\necho hi\n")
        self.ok("submit", "-t", "5", f, "--wait", "x")
        spec = s.of("job.submit")[0].params["specs"][0]
        self.assertEqual(spec["script_args"], ["--wait", "x"])
        self.assertEqual(spec["name"], "train.sh")

    def test_surroundings_go_to_the_local_cluster_only(self):
        f = self.path("job.yaml", SPEC)
        s = self.serve(job_submit=taken())
        self.ok("submit", f, env=self.env(SECRET="x"))
        context = s.of("job.submit")[0].params["specs"][0]["context"]
        self.assertEqual(context["cwd"], os.path.realpath(self.dir))
        self.assertEqual(context["environ"]["SECRET"], "x")
        s.stop()
        s = self.serve("kube", job_submit=taken())
        self.ok("submit", f, env=self.env(SECRET="x"))
        self.assertNotIn("environ", s.of("job.submit")[0].params["specs"][0].get("context", {}))

    def test_keys(self):
        s = self.serve(job_submit=taken())
        f = self.path("job.yaml", SPEC)
        for _ in range(2):
            self.ok("submit", f)
        self.ok("submit", f, "--key=nightly-7")
        keys = [c.key for c in s.of("job.submit")]
        self.assertRegex(keys[0], "^[0-9a-f]{32}$")
        self.assertNotEqual(keys[0], keys[1])
        self.assertEqual(keys[2], "nightly-7")
        self.assertEqual(self.run_gpuq("submit", f, "--key=")[0], 2)

    def test_a_lost_answer_is_asked_for_again_with_the_same_key(self):
        calls = []

        def submit(call):
            calls.append(call.key)
            if len(calls) == 1:
                raise Gone
            return {"jobs": [job(17, "PENDING")]}
        self.serve(job_submit=submit)
        self.assertEqual(self.ok("submit", self.path("j.yaml", SPEC)), "Submitted job 17\n")
        self.assertEqual(len(calls), 2)
        self.assertEqual(calls[0], calls[1])

    def test_a_server_that_always_breaks_is_given_up(self):
        def submit(call):
            raise Gone
        s = self.serve(job_submit=submit)
        code, out, err = self.run_gpuq("submit", self.path("j.yaml", SPEC))
        self.assertEqual((code, out), (255, ""))
        self.assertEqual(len(s.of("job.submit")), 2)

    def test_refusals(self):
        def no(call):
            raise Refused(5, "limit", "queue default: at most 4 gpus a job")
        self.serve(job_submit=no)
        f = self.path("j.yaml", SPEC)
        self.assertEqual(self.run_gpuq("submit", f),
                         (1, "", "gpuq: queue default: at most 4 gpus a job\n"))
        code, out, err = self.run_gpuq("submit", f, "--wait")
        self.assertEqual((code, out), (249, ""))
        self.assertEqual(result(err), {"id": None, "state": None, "exit_code": None,
                                       "reason": "limit"})
        self.assertEqual(self.run_gpuq("run", f)[0], 249)

    def test_bad_files(self):
        s = self.serve(job_submit=taken())
        f = self.path("bad.yaml", "name: t\ncommand: [true]\ngpuss: 4\n")
        code, out, err = self.run_gpuq("submit", f)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("bad.yaml:3:1: gpuss: ", err)
        self.assertEqual(self.run_gpuq("submit", "--wait", f)[0], 249)
        self.assertEqual(self.run_gpuq("submit", f, "--wait")[0], 249)
        self.assertEqual(self.run_gpuq("submit", "nowhere.yaml")[0], 1)
        self.assertEqual(s.of("job.submit"), [])

    def test_wrong_usage(self):
        f = self.path("j.yaml", SPEC)
        for args, code in ((["submit"], 2), (["submit", "--wait"], 255), (["run"], 255),
                           (["submit", f, f], 2), (["submit", "--gpusss=4", f], 2),
                           (["submit", "--wait", "--gpusss=4", f], 255), (["run", "--", ], 255),
                           (["submit", f, "--timeout=5s"], 2), (["wait"], 255),
                           (["wait", "x"], 255), (["wait", "17", "--timeout=soon"], 255),
                           (["nonsense"], 2), ([], 2), (["status", "1", "2"], 2)):
            got, out, err = self.run_gpuq(*args)
            self.assertEqual((got, out), (code, ""), args)
            self.assertTrue(err.startswith("gpuq: "), args)

    def test_warnings_are_shown(self):
        self.serve(job_submit=taken(job(17, "PENDING", warnings=["image means nothing here"])))
        code, out, err = self.run_gpuq("submit", self.path("j.yaml", SPEC))
        self.assertEqual((code, out, err), (0, "Submitted job 17\n",
                                            "gpuq: warning: image means nothing here\n"))

    def test_dry_run(self):
        def dry(call):
            spec = call.params["specs"][0]
            return {"jobs": [dict(job(17, "PENDING"), id=None, state=None, spec=spec)]}
        s = self.serve(job_submit=dry)
        f = self.path("j.yaml", SPEC + "gpus: 2\n")
        self.assertIn("Would submit train to queue default", self.ok("submit", "--dry-run", f))
        yaml = self.ok("submit", "--dry-run", "-o", "yaml", f)
        self.assertIn("name: t\n", yaml)
        self.assertNotIn("context", yaml)
        # What it prints is a job file that means the same.
        again = self.path("again.yaml", yaml)
        self.assertEqual(self.ok("submit", "--dry-run", "-o", "yaml", again), yaml)
        j = json.loads(self.ok("submit", "--dry-run", "--json", f))
        self.assertIsNone(j["id"])
        self.assertIsNone(j["state"])
        self.assertEqual(j["spec"]["gpus"], 2)
        self.assertEqual(json.loads(self.ok("submit", f, "--dry-run", "-o", "json"))["gpus"], 2)
        self.assertTrue(all(c.params["dry_run"] for c in s.seen))

    def test_output_is_the_jobs_without_dry_run(self):
        s = self.serve(job_submit=taken())
        self.ok("submit", "-o", "out-%j.txt", self.path("j.yaml", SPEC))
        self.assertEqual(s.of("job.submit")[0].params["specs"][0]["output"], "out-%j.txt")


def states(*jobs, reply=True):
    """A job.wait that tells of these one after another."""
    def wait(call):
        for j in jobs:
            call.item(j)
            if call.params["until"] == "start" and j["state"] != "PENDING":
                return {"jobs": [j]}
        return {"jobs": [jobs[-1]]}
    return wait


class Waiting(Case):
    def ends_as(self, final, *args):
        s = self.serve(job_submit=taken(), job_get=lambda call: {"jobs": [final]},
                       job_wait=states(job(17, "PENDING"), final))
        code, out, err = self.run_gpuq("wait", "17", *args)
        s.stop()
        return code, result(err)

    def test_exit_codes(self):
        for state, code, more in (
                ("COMPLETED", 0, {}), ("FAILED", 3, {"exit_code": 3}),
                ("FAILED", 139, {"exit_code": 139}), ("FAILED", 1, {"exit_code": 0}),
                ("FAILED", 1, {}), ("OUT_OF_MEMORY", 137, {"exit_code": 137}),
                ("OUT_OF_MEMORY", 137, {}), ("TIMEOUT", 251, {"exit_code": 143}),
                ("CANCELLED", 252, {}), ("NODE_FAIL", 250, {}), ("PREEMPTED", 250, {}),
                ("DEADLINE", 251, {}), ("DEADLINE", 248, {"start_time": None})):
            got, r = self.ends_as(job(17, state, **more))
            self.assertEqual(got, code, (state, more))
            self.assertEqual(r, {"id": 17, "state": state, "reason": None,
                                 "exit_code": 0 if state == "COMPLETED"
                                 else more.get("exit_code")})

    def test_an_array_ends_as_its_worst_element(self):
        array = {"indices": "0-2", "size": 3, "throttle": 0}
        jobs = [job(17, "COMPLETED", array=array, array_index=0),
                job(17, "FAILED", array=array, array_index=1, exit_code=4),
                job(17, "FAILED", array=array, array_index=2, exit_code=3)]

        def wait(call):
            call.item(job(17, "PENDING", array=array))
            for j in jobs:
                call.item(j)
            return {"jobs": [job(17, "FAILED", array=array)]}
        # The stream tells of the array as a whole, job.get of each element.
        self.serve(job_wait=wait, job_get=lambda call: {"jobs": jobs})
        code, out, err = self.run_gpuq("wait", "17")
        self.assertEqual((code, out), (4, ""))
        self.assertEqual(result(err), {"id": 17, "state": "FAILED", "exit_code": 4,
                                       "reason": None})

    def test_several_jobs_the_decisive_line_last(self):
        done = [job(17, "FAILED", exit_code=9), job(18, "COMPLETED")]
        self.serve(job_wait=lambda call: {"jobs": done})
        code, out, err = self.run_gpuq("wait", "17", "18")
        self.assertEqual(code, 9)
        self.assertEqual(len(err.splitlines()), 2)
        self.assertEqual(result(err)["id"], 17)

    def test_no_such_job(self):
        def gone(call):
            raise Refused(2, "not_found", "no job 99")
        self.serve(job_wait=gone)
        code, out, err = self.run_gpuq("wait", "99")
        self.assertEqual(code, 254)
        self.assertEqual(result(err), {"id": 99, "state": None, "exit_code": None,
                                       "reason": "not_found"})

    def test_timeout_leaves_the_job_alone(self):
        def wait(call):
            call.item(job(17, "RUNNING"))
            call.until_cancelled()
        s = self.serve(job_wait=wait)
        code, out, err = self.run_gpuq("wait", "17", "--timeout=250ms")
        self.assertEqual(code, 253)
        self.assertEqual(result(err)["state"], "RUNNING")
        self.assertEqual(s.of("job.cancel"), [])

    def test_submit_wait(self):
        s = self.serve(job_submit=taken(), job_get=lambda call: {"jobs": [job(17, "COMPLETED")]},
                       job_wait=states(job(17, "RUNNING"), job(17, "COMPLETED")))
        f = self.path("j.yaml", SPEC)
        code, out, err = self.run_gpuq("submit", "--wait", f)
        self.assertEqual((code, out), (0, "Submitted job 17\n"))
        self.assertEqual(err, 'gpuq-result: {"id":17,"state":"COMPLETED","exit_code":0,'
                              '"reason":null}\n')
        code, out, err = self.run_gpuq("submit", "--wait", "--json", f)
        self.assertEqual(json.loads(out)["state"], "COMPLETED")
        self.assertEqual(s.of("job.wait")[0].params["ids"], ["17"])

    def never_starts(self, *args, matched=1, state="PENDING"):
        cancelled = threading.Event()

        def wait(call):
            call.item(job(17, "PENDING"))
            if cancelled.is_set():
                return {"jobs": [job(17, "CANCELLED" if matched else "COMPLETED")]}
            call.until_cancelled()

        def cancel(call):
            cancelled.set()
            return {"matched": matched, "jobs": [], "errors": []}
        s = self.serve(job_submit=taken(), job_wait=wait, job_cancel=cancel,
                       job_get=lambda call: {"jobs": [job(17, state)]})
        code, out, err = self.run_gpuq("submit", "--wait", "--start-timeout=250ms", *args,
                                       self.path("j.yaml", SPEC))
        return s, code, result(err)

    def test_start_timeout_cancels(self):
        s, code, r = self.never_starts()
        self.assertEqual(code, 248)
        self.assertEqual(r["state"], "CANCELLED")
        p = s.of("job.cancel")[0].params
        self.assertEqual(p["ids"], ["17"])
        self.assertNotIn("RUNNING", p["states"])

    def test_start_timeout_with_keep(self):
        s, code, r = self.never_starts("--keep")
        self.assertEqual((code, r["state"], r["reason"]), (248, "PENDING", "Resources"))
        self.assertEqual(s.of("job.cancel"), [])

    def test_start_at_the_last_moment(self):
        s, code, r = self.never_starts(matched=0)
        self.assertEqual((code, r["state"]), (0, "COMPLETED"))

    def test_a_restart_of_the_server_is_survived(self):
        n = []

        def wait(call):
            n.append(1)
            if len(n) == 1:
                call.item(job(17, "RUNNING"))
                raise Gone
            return {"jobs": [job(17, "COMPLETED")]}
        self.serve(job_wait=wait)
        code, out, err = self.run_gpuq("wait", "17")
        self.assertEqual((code, len(n)), (0, 2))

    def test_a_server_that_is_away_for_a_while(self):
        came = threading.Event()

        def wait(call):
            call.item(job(17, "RUNNING"))
            came.set()
            call.cancelled.wait(60)
            raise Gone
        s = self.serve(job_wait=wait)
        p = self.start("wait", "-v", "17")
        self.assertTrue(came.wait(60))
        s.stop()
        lines = []
        while not lines or "does not answer" not in lines[-1]:
            lines.append(p.stderr.readline().decode())
            self.assertTrue(lines[-1])
        s.handlers["job.wait"] = lambda call: {"jobs": [job(17, "COMPLETED")]}
        s.start()
        out, err = p.communicate(timeout=120)
        self.assertEqual(p.returncode, 0)
        self.assertEqual(result(err.decode())["state"], "COMPLETED")

    def test_an_early_end_of_the_stream_is_no_end(self):
        n = []

        def wait(call):
            n.append(1)
            return {"jobs": [job(17, "RUNNING" if len(n) == 1 else "COMPLETED")]}
        self.serve(job_wait=wait, job_get=lambda call: {"jobs": [job(17, "RUNNING")]})
        self.assertEqual(self.run_gpuq("wait", "17")[0], 0)
        self.assertEqual(len(n), 2)

    def test_verbose_tells_changes(self):
        self.serve(job_wait=states(job(17, "PENDING"), job(17, "RUNNING"), job(17, "COMPLETED")))
        code, out, err = self.run_gpuq("wait", "-v", "17")
        self.assertEqual(err.splitlines()[:2], ["gpuq: job 17 PENDING (Resources) in queue default",
                                                "gpuq: job 17 RUNNING on n1"])

    def interrupt(self, command, *args):
        s = self.serve(**pending_until_cancelled())
        p = self.start(command, "-v", *args)
        # Sent is not read: the signal waits until the client says that it knows the state.
        said = b""
        while b"job 17 PENDING" not in said:
            line = p.stderr.readline()
            self.assertTrue(line, said)
            said += line
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=120)
        return s, p.returncode, (said + err).decode()

    def test_interrupted_wait_leaves_the_job_alone(self):
        s, code, err = self.interrupt("submit", "--wait", self.path("j.yaml", SPEC))
        self.assertEqual((code, s.of("job.cancel")), (253, []))
        self.assertIn("job 17 keeps running", err)
        self.assertEqual(result(err)["state"], "PENDING")

    def test_interrupted_run_cancels(self):
        s, code, err = self.interrupt("run", "--", "sleep", "1")
        self.assertEqual((code, len(s.of("job.cancel"))), (252, 1))
        self.assertEqual(result(err)["state"], "CANCELLED")


class Run(Case):
    def run_job(self, logs, *args, final=None, pods=1, **more):
        self.server = self.serve(
            job_submit=taken(), job_logs=logs, **{
                "job_wait": states(job(17, "PENDING"), job(17, "RUNNING"),
                                   final or job(17, "COMPLETED")), **more})
        return self.run_gpuq("run", *args)

    def test_output_and_exit_code_are_the_jobs(self):
        def logs(call):
            call.item({"pod": 0, "bytes": b"one\ntw", "offset": 0})
            call.item({"pod": 0, "bytes": b"o\x00\xff\x1b[31m", "offset": 6})
            return {}
        self.server = self.serve(job_submit=taken(), job_logs=logs, job_wait=states(
            job(17, "PENDING"), job(17, "FAILED", exit_code=7)))
        p = self.start("run", "--gpus=1", "--", "sh", "-c", "x")
        out, err = p.communicate(timeout=120)
        self.assertEqual((p.returncode, out), (7, b"one\ntwo\x00\xff\x1b[31m"))
        self.assertEqual(result(err.decode())["exit_code"], 7)
        spec = self.server.of("job.submit")[0].params["specs"][0]
        self.assertEqual(spec["command"], ["sh", "-c", "x"])
        self.assertIs(self.server.of("job.logs")[0].params["follow"], True)

    def test_output_goes_on_after_a_break(self):
        n = []

        def logs(call):
            n.append(call.params)
            if len(n) == 1:
                call.item({"pod": 0, "bytes": b"abc", "offset": 0})
                raise Gone
            # A server that begins earlier than asked.
            call.item({"pod": 0, "bytes": b"bcd\n", "offset": 1})
            return {}
        code, out, err = self.run_job(logs, "--", "x")
        self.assertEqual((code, out), (0, "abcd\n"))
        self.assertEqual(n[1]["offsets"], {"0": 3})

    def test_several_pods_line_by_line(self):
        def logs(call):
            call.item({"pod": 0, "bytes": b"a", "offset": 0})
            call.item({"pod": 1, "bytes": b"x\n", "offset": 0})
            call.item({"pod": 0, "bytes": b"b\nc", "offset": 1})
            return {}
        code, out, err = self.run_job(logs, "--nodes=2", "--", "x")
        self.assertEqual((code, out), (0, "[1] x\n[0] ab\n[0] c\n"))

    def test_a_new_attempt_has_its_own_output(self):
        def logs(call):
            call.item({"pod": 0, "attempt": 0, "bytes": b"first\n", "offset": 0})
            call.item({"pod": 0, "attempt": 1, "bytes": b"second\n", "offset": 0})
            return {}
        code, out, err = self.run_job(logs, "--", "x")
        self.assertEqual((code, out), (0, "first\nsecond\n"))

    def test_an_attempt_that_began_while_the_server_was_away(self):
        n = []

        def logs(call):
            n.append(call.params)
            attempt = len(n) - 1
            call.item({"pod": 0, "attempt": attempt, "bytes": b"try%d\n" % attempt, "offset": 0})
            if attempt == 0:
                raise Gone
            return {}
        code, out, err = self.run_job(logs, "--", "x", job_get=lambda call: {
            "jobs": [job(17, "RUNNING", attempt=1)]})
        self.assertEqual((code, out), (0, "try0\ntry1\n"))
        self.assertEqual(n[1]["offsets"], {"0": 0})

    def test_an_attempt_that_begins_after_the_output_has_ended(self):
        attempt = [0]

        def wait(call):
            if call.params["until"] == "start":
                return {"jobs": [job(17, "RUNNING", attempt=attempt[0])]}
            if attempt[0] == 0:
                attempt[0] = 1
                call.item(job(17, "PENDING", attempt=1))
                call.until_cancelled()
            return {"jobs": [job(17, "COMPLETED", attempt=1)]}

        def logs(call):
            call.item({"pod": 0, "attempt": attempt[0], "bytes": b"try%d\n" % attempt[0],
                       "offset": 0})
            return {}
        code, out, err = self.run_job(logs, "--", "x", job_wait=wait)
        self.assertEqual((code, out), (0, "try0\ntry1\n"))

    def test_output_that_is_gone_is_not_waited_for(self):
        def logs(call):
            raise Refused(23, "gone", "the pod's output is no longer kept")
        self.serve(job_logs=logs, job_get=lambda call: {"jobs": [job(17)]})
        self.assertEqual(self.run_gpuq("logs", "-f", "17"),
                         (1, "", "gpuq: the pod's output is no longer kept\n"))

    def test_without_output_the_job_is_waited_for(self):
        def logs(call):
            raise Refused(4, "denied", "logs are for the owner")
        code, out, err = self.run_job(logs, "--", "x")
        self.assertEqual((code, out), (0, ""))
        self.assertIn("logs are for the owner", err)

    def test_logs(self):
        def logs(call):
            call.item({"pod": 1, "bytes": b"hi\n", "offset": 100})
            return {}
        s = self.serve(job_logs=logs, job_get=lambda call: {"jobs": [job(17, pod_count=2)]})
        self.assertEqual(self.ok("logs", "17_3"), "[1] hi\n")
        self.assertEqual(self.ok("logs", "17", "--pod=1", "--tail=5"), "hi\n")
        self.assertEqual(s.of("job.logs")[0].params, {"id": 17, "index": 3, "follow": False})
        self.assertEqual(s.of("job.logs")[1].params, {"id": 17, "pod": 1, "follow": False,
                                                      "tail_lines": 5})

    def on_terminal(self, *args, press=None):
        """Run with a terminal as all three streams; press(pid, text so far)."""
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(os.environ.get("GPUQ", "gpuq/gpuq"), ["gpuq", *args],
                      self.env(TERM="xterm", COLUMNS="80"))
        text = b""
        try:
            while select.select([fd], [], [], 60)[0]:
                try:
                    more = os.read(fd, 4096)
                except OSError:
                    break
                if not more:
                    break
                text += more
                if press:
                    press(fd, text)
        finally:
            os.close(fd)
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        return text.decode("utf-8", "replace")

    def test_output_is_harmless_on_a_terminal(self):
        def logs(call):
            call.item({"pod": 0, "bytes": b"\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J\n",
                       "offset": 0})
            return {}
        self.serve(job_logs=logs, job_get=lambda call: {"jobs": [job(17)]})
        text = self.on_terminal("logs", "17")
        self.assertIn("\x1b[31mred\x1b[0m \\x1b]0;title\\x07 \\x1b[2J", text)
        self.assertIn("\x1b]0;title\x07", self.on_terminal("logs", "--raw", "17"))

    def test_two_interrupts_cancel_a_run_on_a_terminal(self):
        s = self.serve(**pending_until_cancelled())
        pressed = []

        def press(fd, text):
            if not pressed and b"PENDING" in text:
                pressed.append(1)
                os.write(fd, b"\x03")
            elif len(pressed) == 1 and b"again within" in text:
                self.assertEqual(s.of("job.cancel"), [])
                pressed.append(2)
                os.write(fd, b"\x03")
        text = self.on_terminal("run", "--", "x", press=press)
        self.assertEqual(len(s.of("job.cancel")), 1)
        self.assertIn("job 17 PENDING (Resources) in queue default", text)
        self.assertTrue(re.search(r'gpuq-result: \{"id":17,"state":"CANCELLED"', text), text)


class Acts(Case):
    def test_says_how_many(self):
        def act(call):
            return {"matched": 2, "jobs": [{"id": 17, "array_index": 3}, {"id": 18}],
                    "errors": []}
        s = self.serve(job_cancel=act, job_hold=act, job_release=act)
        self.assertEqual(self.ok("cancel", "17_3", "18"), "Cancelled 2 jobs\n")
        self.assertEqual(self.ok("hold", "--me"), "Held 2 jobs\n")
        self.assertEqual(self.ok("release", "-u", "bob", "17"), "Released 2 jobs\n")
        self.assertEqual(self.ok("cancel", "--me", "--dry-run"), "Would cancel 2 jobs\n17_3 18\n")
        self.ok("cancel", "17", "--signal=USR1")
        self.assertEqual(s.of("job.cancel")[0].params, {"ids": ["17_3", "18"]})
        self.assertTrue(s.of("job.cancel")[0].key)
        self.assertEqual(s.of("job.cancel")[1].params, {"users": ["ann"], "dry_run": True})
        self.assertEqual(s.of("job.cancel")[2].params, {"ids": ["17"], "signal": 10})
        self.assertEqual(s.of("job.release")[0].params, {"users": ["bob"], "ids": ["17"]})

    def test_never_everything_by_accident(self):
        s = self.serve(job_cancel=lambda call: {"matched": 0})
        for verb in ("cancel", "hold", "release"):
            self.assertEqual(self.run_gpuq(verb)[0], 2)
        self.assertEqual(s.seen, [])

    def test_errors_of_single_jobs(self):
        missing = {"id": "99", "name": "not_found", "msg": "no job 99"}
        denied = {"id": "5", "name": "denied", "msg": "not yours"}
        errors = []
        self.serve(job_cancel=lambda call: {"matched": 1, "jobs": [], "errors": errors})
        errors[:] = [missing]
        self.assertEqual(self.run_gpuq("cancel", "1", "99"),
                         (254, "Cancelled 1 job\n", "gpuq: no job 99\n"))
        errors[:] = [missing, denied]
        self.assertEqual(self.run_gpuq("cancel", "1", "99", "5"),
                         (1, "Cancelled 1 job\n", "gpuq: no job 99\ngpuq: job 5: not yours\n"))


if __name__ == "__main__":
    main()
