"""apply, export, queues set and the like, drain, reserve: what is sent, what is shown."""
import json

from fake import Case, Refused, main

ANSWER = {"applied": True, "generation": 7, "warnings": [], "evicts": 0, "evictions": [],
          "lost_gpu_seconds": 0.0, "cut_short": False,
          "changes": [{"object": "queue/a", "action": "changed", "old": {"weight": 1},
                       "new": {"weight": 2, "quota": {"h100": 4}}}]}


def victim(**more):
    v = {"id": 17, "array_index": None, "name": "train", "user": "ann", "queue": "b",
         "flavor": "h100", "cause": "reclaim", "rule": "G", "by": "18", "by_queue": "a",
         "gpus": 4, "ran_s": 3725.0, "lost_gpu_seconds": 14900.0, "shrinks": False,
         "restarts": False}
    v.update(more)
    return v


class Apply(Case):
    def site(self, answer=None):
        return self.serve(site_apply=lambda call: dict(ANSWER, **(answer or {})))

    def test_sends_the_text_and_its_name(self):
        f = self.site()
        path = self.path("s.yaml", "version: 1\n")
        out = self.ok("apply", "-f", path)
        self.assertEqual(f.of("site.apply")[0].params, {"text": "version: 1\n", "file": path})
        self.assertIsNotNone(f.of("site.apply")[0].key)
        self.assertEqual(out, "queue/a changed\n  - weight: 1\n  + weight: 2\n"
                         "  + quota: {\"h100\":4}\nApplied 1 change\n")

    def test_reads_standard_input(self):
        f = self.site()
        self.ok("apply", "-f", "-", input="version: 1\n")
        self.assertEqual(f.of("site.apply")[0].params["file"], "-")

    def test_sends_its_options(self):
        f = self.site()
        self.ok("apply", "-f", self.path("s.yaml", "x: 1\n"), "--dry-run", "--prune",
                "--yes-evict=3", "--generation=7", "--remove=queue/x,flavor/y")
        p = f.of("site.apply")[0].params
        self.assertEqual((p["dry_run"], p["prune"], p["yes_evict"], p["generation"], p["remove"]),
                         (True, True, 3, 7, ["queue/x", "flavor/y"]))
        self.assertIsNone(f.of("site.apply")[0].key)

    def test_shows_whom_it_would_evict(self):
        self.site({"applied": False, "evicts": 2, "lost_gpu_seconds": 16700.0,
                   "evictions": [victim(), victim(id=19, array_index=3, shrinks=True, by="",
                                                  by_queue="")]})
        out = self.ok("apply", "-f", self.path("s.yaml", ""), "--dry-run")
        self.assertIn("Would evict 2 jobs and lose 4.64 GPU-hours:\n", out)
        rows = [line.split() for line in out.splitlines()]
        self.assertIn(["17", "ann", "b", "4", "1:02:05", "4.14", "waits", "18", "(a)", "G"], rows)
        self.assertIn(["19_3", "ann", "b", "4", "1:02:05", "4.14", "shrinks", "-", "G"], rows)
        self.assertTrue(out.endswith("1 change, not applied; the site is at generation 7\n"), out)

    def test_nothing_changes(self):
        self.site({"changes": []})
        self.assertEqual(self.ok("apply", "-f", self.path("s.yaml", "")), "Nothing changes\n")

    def test_warnings_go_to_standard_error(self):
        self.site({"warnings": ["the quotas at the top add up to 9 h100: the cluster has 8"]})
        code, out, err = self.run_gpuq("apply", "-f", self.path("s.yaml", ""), "--json")
        self.assertEqual((code, json.loads(out)["generation"]), (0, 7))
        self.assertEqual(err, "gpuq: warning: the quotas at the top add up to 9 h100: the cluster "
                         "has 8\n")

    def test_a_refusal_ends_with_1(self):
        def refuse(call):
            raise Refused(17, "conflict", "this would evict 1 job")
        self.serve(site_apply=refuse)
        self.assertEqual(self.run_gpuq("apply", "-f", self.path("s.yaml", "")),
                         (1, "", "gpuq: this would evict 1 job\n"))

    def test_wrong_usage(self):
        self.site()
        for args in ([], ["-f", "nowhere.yaml"], ["-f", "x", "--yes-evict=some"], ["--prune"]):
            self.path("x", "")
            code, out, err = self.run_gpuq("apply", *args)
            self.assertIn(code, (1, 2), args)
            self.assertNotEqual(err, "", args)

    def test_what_a_name_holds_does_not_reach_the_terminal(self):
        self.site({"changes": [{"object": "queue/\x1b[2Jx", "action": "added",
                                "new": {"image": "\x1b]0;x\x07"}}]})
        self.assertNotIn("\x1b", self.ok("apply", "-f", self.path("s.yaml", "")))


class Export(Case):
    SITE = {"version": 1, "queues": [{"name": "a", "quota": {"h100": 4}}]}

    def test_prints_yaml_and_json(self):
        self.serve(site_get=lambda call: {"generation": 7, "site": self.SITE})
        self.assertEqual(self.ok("export"), "version: 1\nqueues:\n  - name: a\n    quota:\n"
                         "      h100: 4\n")
        self.assertEqual(json.loads(self.ok("export", "--json")), self.SITE)


class Queues(Case):
    def sent(self, *args):
        f = self.serve(site_apply=lambda call: ANSWER)
        self.ok("queues", *args)
        p = f.of("site.apply")[0].params
        self.assertTrue(p["existing"])
        return p["site"]

    def test_set_takes_values_as_in_a_file(self):
        self.assertEqual(
            self.sent("set", "a", "weight=2", "quota={h100: 4, a100: 2}", "users=[x, y]",
                      "max_gpus.user=8", "max_gpus.job=4", "image=null", "max_time=1d12h"),
            {"version": 1, "queues": [{"name": "a", "weight": 2, "quota": {"h100": 4, "a100": 2},
                                       "users": ["x", "y"], "max_gpus": {"user": 8, "job": 4},
                                       "image": None, "max_time": "1d12h"}]})

    def test_verbs(self):
        for verb, key, value in (("stop", "stopped", True), ("start", "stopped", False),
                                 ("close", "closed", True), ("open", "closed", False)):
            self.assertEqual(self.sent(verb, "a", "b"),
                             {"version": 1, "queues": [{"name": "a", key: value},
                                                       {"name": "b", key: value}]})

    def test_wrong_usage(self):
        self.serve(site_apply=lambda call: ANSWER)
        for args in (["set"], ["set", "a"], ["set", "a", "weight"], ["set", "a", "=2"],
                     ["set", "a", "weight={"], ["stop"]):
            self.assertEqual(self.run_gpuq("queues", *args)[0], 2, args)

    def test_a_queue_named_as_a_verb_is_listed_by_option(self):
        f = self.serve(queue_list=lambda call: {})
        self.ok("queues", "-q", "stop")
        self.assertEqual(f.of("queue.list")[0].params, {"names": ["stop"]})


class Nodes(Case):
    ANSWER = {"matched": 3, "changed": 2, "jobs": 1,
              "nodes": [{"name": "n01", "jobs": 1, "changed": True},
                        {"name": "n02", "jobs": 0, "changed": True},
                        {"name": "x", "jobs": 0, "changed": False}]}

    def test_drain(self):
        f = self.serve(node_drain=lambda call: self.ANSWER)
        out = self.ok("drain", "n[01-02],x", "m[7,9-10]b", "dgx-*", "--reason=bad fan")
        self.assertEqual(f.of("node.drain")[0].params,
                         {"names": ["n01", "n02", "x", "m7b", "m9b", "m10b", "dgx-*"],
                          "why": "bad fan"})
        self.assertEqual(out, "Drained 2 nodes (1 unchanged), on which 1 job keeps running\n")
        out = self.ok("drain", "n01", "--dry-run")
        self.assertEqual(out, "Would drain 2 nodes (1 unchanged), on which 1 job keeps running\n"
                         "  n01 (1 job)\n  n02\n  x: unchanged\n")
        self.assertTrue(f.of("node.drain")[1].params["dry_run"])
        out = self.ok("drain", "n01", "--requeue")
        self.assertEqual(out, "Drained 2 nodes (1 unchanged), on which 1 job is requeued\n")
        self.assertIs(f.of("node.drain")[2].params["requeue"], True)

    def test_resume(self):
        self.serve(node_resume=lambda call: self.ANSWER)
        self.assertEqual(self.ok("resume", "x"), "Resumed 2 nodes (1 unchanged)\n")

    def test_names_with_many_brackets(self):
        """The names that submit -w takes, in the same order."""
        f = self.serve(node_drain=lambda call: self.ANSWER)
        self.ok("drain", "n[1-2]r[3-4]", "a[1]b[2]c[08-09]*")
        self.assertEqual(f.of("node.drain")[0].params["names"],
                         ["n1r3", "n1r4", "n2r3", "n2r4", "a1b2c08*", "a1b2c09*"])

    def test_names_that_are_none(self):
        self.serve(node_drain=lambda call: self.ANSWER)
        for name in ("n[", "n[1-", "n[a-b]", "n[3-1]", "n[1-2]r[", "n[1[2]]", "n[]", "n[1-9999]", "a b",
                     "a[1][1][1][1][1]", "", ","):
            self.assertEqual(self.run_gpuq("drain", name)[0], 2, name)
        self.assertIn("expected node names such as n1,n2 or n[01-04,7], not 'n[1-2]r['",
                      self.run_gpuq("drain", "n[1-2]r[")[2])
        self.assertIn("expected at most 4 brackets in a node name", self.run_gpuq("drain", "a[1][1][1][1][1]")[2])


class Reserve(Case):
    def sent(self, *args):
        def known(call):
            for name in ("a-1", "a-7", "a-x", "ab-9", "moved"):
                call.item({"name": name})
            return {}
        f = self.serve(site_apply=lambda call: ANSWER, reservation_list=known)
        self.ok("reserve", *args)
        return f.of("site.apply")[0].params

    def test_create(self):
        p = self.sent("demo", "--start=now+1h", "-t", "4h", "-g", "16", "--flavor=h100",
                      "-q", "a", "-u", "ann,bob", "--flags=daily")
        self.assertEqual(p["site"]["reservations"],
                         [{"name": "demo", "start": "now+1h", "duration": "4h", "flavor": "h100",
                           "queue": "a", "gpus": 16, "users": ["ann", "bob"], "flags": ["daily"]}])
        self.assertTrue(p["fresh"])
        p = self.sent("m", "-t", "1h", "-w", "n[1-2]")
        self.assertEqual(p["site"]["reservations"],
                         [{"name": "m", "duration": "1h", "start": "now", "nodes": ["n1", "n2"]}])

    def test_name(self):
        for args, name in ((["-q", "a"], "a-8"), (["-u", "ann,bob"], "ann-1"), ([], "maintenance-1")):
            p = self.sent("-t", "1h", "-g", "1", *args)
            self.assertEqual(p["site"]["reservations"][0]["name"], name)
            self.assertTrue(p["fresh"])

    def test_change(self):
        p = self.sent("moved", "--start=now+1d", "-g", "2", "--until=now+9d", "--except=2026-12-24,2026-12-25")
        self.assertEqual(p["site"]["reservations"],
                         [{"name": "moved", "start": "now+1d", "until": "now+9d", "gpus": 2, "nodes": None,
                           "except": ["2026-12-24", "2026-12-25"]}])
        self.assertFalse(p["fresh"])
        self.assertEqual(self.run_gpuq("reserve", "moved")[0], 2)

    def test_delete(self):
        self.assertEqual(self.sent("--delete", "x", "y"),
                         {"remove": ["reservation/x", "reservation/y"]})

    def test_wrong_usage(self):
        self.serve(site_apply=lambda call: ANSWER, reservation_list=lambda call: {})
        for args in ([], ["x"], ["x", "-t", "1h"], ["x", "-g", "1"], ["x", "y", "-t1h", "-g1"],
                     ["--delete"]):
            self.assertEqual(self.run_gpuq("reserve", *args)[0], 2, args)

    def test_list(self):
        r = {"name": "demo", "state": "planned", "start_time": 1700000000000000,
             "end_time": 1700014400000000, "duration_s": 14400, "gpus": 16, "flavor": None,
             "pool": None, "nodes": ["n1", "n2"], "queue": "a", "users": [], "flags": ["daily"], "every_s": 86400}

        def stream(call):
            call.item(r)
            call.item(dict(r, name="old", state="over", start_time=1600000000000000))
            return {}
        self.serve(reservation_list=stream)
        rows = [line.split() for line in self.ok("reservations").splitlines()]
        self.assertEqual(rows[1:], [["demo", "planned", "2023-11-14", "22:13:20", "4h", "16",
                                     "n[1-2]", "a", "-", "daily", "1d"]])
        self.assertEqual(self.ok("reservations", "-a", "-h", "-o", "NAME").split(),
                         ["old", "demo"])
        got = json.loads(self.ok("reservations", "--json").splitlines()[0])
        self.assertEqual(got["start_time"], "2023-11-14T22:13:20.000Z")


if __name__ == "__main__":
    main()
