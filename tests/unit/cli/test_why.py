"""Why a job waits, and what a job would cost: how the answers are put into words."""
import json
import time

from fake import Case, Refused, job, main

NOW = int(time.time() * 1000000)
MINUTE = 60000000


def reason(code="Resources", **more):
    return {"code": code, "object": "gpus", "unit": "gpus", "have": 2, "need": 4,
            "since": NOW - 5 * MINUTE, "who": "nobody", **more}


def start(**more):
    return {"by": "simulation", "start_time": NOW + 65 * MINUTE, "likely_time": NOW + 30 * MINUTE,
            "flavor": "a100", "victims": [],
            "pods": [{"node": "n1", "group": 0, "index": 0, "devices": [2, 3], "gpus": 2}],
            "waits": [{"from_time": NOW - MINUTE, **reason()}],
            "assumed": {"at_time": NOW, "until_time": NOW + 65 * MINUTE, "events": 7,
                        "cut_short": False, "running": 9, "endless": 1, "learned": 0},
            "record": {"queue": "default", "jobs": 12, "unknown": 1, "late": 2, "early": 3,
                       "half_s": 60, "most_s": 3600}, **more}


def waiting(**more):
    return {"next": "wait", "victims": [], "place": 2, "waiting": 5,
            "terms": {"age": 3, "fairshare": 0, "size": 0, "qos": 100, "stretch": 0, "boost": 0,
                      "nice": 7, "total": 96},
            "ahead": [{"job": "16", "user": "bob", "queue": "default", "gpus": 8, "priority": 99,
                       "by": "age", "points": 3}],
            "queues": [{"name": "lab", "depth": 0, "waiting": 6, "allocated": 3, "fair_share": 4,
                        "quota": 4, "limit": "unlimited"}],
            "changes": [], "tries": 3, "cut_short": False, **more}


class Why(Case):
    def why(self, w=None, s=None, **more):
        answer = {"job": job(17, "PENDING", gpus=4, reasons=[reason()]), "waiting": w or waiting(),
                  "start": s, "starts": [], "claims": [], **more}
        self.serve(job_why=lambda call: answer)
        return self.ok("why", "17")

    def test_reasons_with_numbers_and_who_can_act(self):
        out = self.why()
        self.assertRegex(out, r"Job +17 train of ann in queue default, 4 GPUs in 1 pod\n")
        self.assertRegex(out, r"Reason +Resources: 2 of 4 GPUs free, for 5:0\d\n")
        self.assertIn("not enough free devices, CPU, memory or other resources now", out)

    def test_rank_and_queues(self):
        out = self.why()
        self.assertRegex(out, r"Rank +2 of 5 in its queue\n")
        self.assertRegex(out, r"Priority +96 \+ qos 100 \+ age 3 - nice 7\n")
        self.assertRegex(out, r"Before it +16 of bob, 8 GPUs: 3 more points of age\n")
        self.assertRegex(out, r"Queues +lab: holds 3, fair share 4 \(quota 4\), 6 pending\n")

    def test_the_estimate_its_assumptions_and_its_record(self):
        out = self.why(s=start())
        self.assertRegex(out, r"Starts +\d{4}-\S+ \S+, in 1:0[45]:\d\d, as estimated now\n")
        self.assertRegex(out, r"likely \d{4}-\S+ \S+, in \S+, from the run times of similar jobs\n")
        self.assertRegex(out, r"Where +pod 0 on n1 gpu 2,3 \(a100\)\n")
        self.assertIn("no new jobs and full time limits (9 running jobs, 1 without a limit)\n", out)
        self.assertRegex(out, r"Accuracy +error of 12 estimates in this queue: median 1:00, 90th "
                              r"percentile 1:00:00; 2 started later, 3 earlier, 1 without "
                              r"estimate\n")

    def test_bounds_of_the_scheduler_in_words(self):
        out = self.why(waiting(bounds=[{"bound": "moments", "most": 4096},
                                       {"bound": "placements", "most": 256}]))
        self.assertRegex(out, r"Bounded +no planned start: 4096 moments were tried for those of "
                              r"all jobs\n")
        self.assertRegex(out, r"no further search for victims: 256 placements were tried\n")
        self.assertNotIn("Bounded", self.why())

    def test_no_estimate_is_said(self):
        self.assertRegex(self.why(s=start(by="unknown", start_time=None, likely_time=None,
                                          pods=[], record=None)),
                         r"Starts +unknown \(beyond the estimate's horizon\)\n")

    def test_changes_in_words(self):
        jobs = [{"job": "3", "user": "bob", "queue": "x", "gpus": 2, "end_time": NOW + MINUTE}]
        cases = [
            ({"change": "lift", "code": "LimitQueue", "object": "lab", "who": "manager"},
             "without LimitQueue (lab), which the manager can lift"),
            ({"change": "gpus", "from": 8, "to": 4}, "with 4 GPUs a pod instead of 8"),
            ({"change": "pods", "from": 3, "to": 2}, "with 2 pods instead of 3"),
            ({"change": "amount", "object": "cpu", "unit": "cores", "from": 200, "to": 64},
             "with 64 CPUs a pod instead of 200"),
            ({"change": "amount", "object": "memory", "unit": "bytes", "from": 1 << 40, "to": 1 << 39},
             "with 512Gi of memory a pod instead of 1Ti"),
            ({"change": "amount", "object": "rdma/hca", "unit": "count", "from": 2, "to": 1},
             "with 1 rdma/hca a pod instead of 2"),
            ({"change": "flavor", "to": "h100"}, "on flavor h100"),
            ({"change": "time", "to_s": 3600}, "with a time limit of 1:00:00"),
            ({"change": "move", "jobs": jobs}, "if this job is relocated: 3 (bob, 2 GPUs)"),
            ({"change": "end", "jobs": jobs + jobs, "end_time": None},
             "after these jobs have ended: 3 (bob, 2 GPUs), 3 (bob, 2 GPUs)"),
        ]
        out = self.why(waiting(changes=[{"how": "now", **c} for c, _ in cases]))
        for _, text in cases:
            self.assertIn(text + "\n", out)

    def test_nothing_helps(self):
        self.assertIn("no single change found that lets it start now\n", self.why())

    def test_an_eviction_with_its_rule_and_numbers(self):
        claim = {"decided_time": NOW, "job": "18", "flavor": "a100", "need": 2,
                 "sides": [{"queue": "a", "before": 1, "after": 3, "fair_share": 4, "quota": 4}],
                 "passed": {"firm": 2, "busy": 0, "shielded": 0, "not_needed": 0}, "victims": []}
        answer = {"job": job(17, "RUNNING", evictions=[
                      {"time": NOW, "cause": "reclaim", "rule": "G", "by": "18",
                       "by_queue": "a"}]),
                  "waiting": None, "starts": [], "claims": [claim]}
        self.serve(job_why=lambda call: answer)
        out = self.ok("why", "17")
        self.assertRegex(out, r"Evicted +\S+ \S+ reclaim for job 18 of queue a\n +rule G: ")
        self.assertRegex(out, r"Claim +\S+ \S+ job 18 needed 2 of a100\n +queue a: 1 -> 3, fair share 4, "
                              r"quota 4\n +passed over: 2 that cannot be evicted\n")

    def test_ids_and_errors(self):
        def none(call):
            raise Refused(2, "not_found", "no such job: 4")
        s = self.serve(job_why=none)
        self.assertEqual(self.run_gpuq("why", "4_3"), (254, "", "gpuq: no such job: 4\n"))
        self.assertEqual(s.of("job.why")[0].params, {"id": 4, "index": 3})
        self.assertEqual(self.run_gpuq("why", "x")[0], 2)
        self.assertEqual(self.run_gpuq("why")[0], 2)

    def test_names_do_not_act_on_the_terminal(self):
        out = self.why(waiting(ahead=[{"job": "16", "user": "b\033[2Jo", "gpus": 1, "by": "age",
                                       "points": 1}]))
        self.assertNotIn("\033", out)


class Plan(Case):
    ANSWER = {"plans": [{"job": {"id": None, "name": "train", "queue": "lab", "gpus": 2,
                                 "pod_count": 1, "array": None, "warnings": ["mind the gap"],
                                 "spec": {"name": "train", "context": {"cwd": "/"}}},
                         "start": start(by="claim", victims=[
                             {"job": "3", "user": "bob", "queue": "x", "rule": "F",
                              "moves": False, "pods": 1, "gpus": 2, "grace_s": 30,
                              "lost_gpu_seconds": 5400}]),
                         "cost": {"lost_gpu_hours": 1.5, "gpu_hours": 4.0, "gpu_minutes": 480.0,
                                  "budget": {"queue": "lab", "gpu_minutes": 1000,
                                             "left_gpu_minutes": 900.5, "hard": True}}}]}

    def test_when_where_at_whose_cost(self):
        s = self.serve(plan_get=lambda call: self.ANSWER)
        out = self.ok("plan", "-g", "2", "-q", "lab", "--", "python", "train.py")
        self.assertEqual(s.of("plan.get")[0].params["specs"][0]["command"], ["python", "train.py"])
        self.assertNotIn("dry_run", s.of("plan.get")[0].params)
        self.assertIn("mind the gap", out)
        self.assertRegex(out, r"Victims +3 of bob in queue x, 2 GPUs; 1.50 GPU-hours of work are "
                              r"lost\n")
        self.assertRegex(out, r"Costs +at most 4 GPU-hours, charged as 480 GPU-minutes\n")
        self.assertRegex(out, r"Budget +queue lab has 900.5 of 1000 GPU-minutes left; nothing "
                              r"starts beyond it\n")

    def test_json_has_no_surroundings(self):
        self.serve(plan_get=lambda call: self.ANSWER)
        v = json.loads(self.ok("plan", "--json", "--", "true"))
        self.assertEqual(v["job"]["spec"], {"name": "train"})
        self.assertEqual(v["cost"]["gpu_hours"], 4.0)

    def test_a_refusal_is_the_servers(self):
        def no(call):
            raise Refused(6, "limit", "too many GPUs")
        self.serve(plan_get=no)
        self.assertEqual(self.run_gpuq("plan", "--", "true")[::2], (1, "gpuq: too many GPUs\n"))
        self.assertEqual(self.run_gpuq("plan")[0], 2)


if __name__ == "__main__":
    main()
