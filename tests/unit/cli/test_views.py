"""Views of what the scheduler thinks: shares and priorities."""
import json

from fake import Case, Refused, main


def listing(*objects):
    def handler(call):
        for o in objects:
            call.item(o)
        return {}
    return handler


def queue_share(queue="lab", depth=0, **more):
    return {"queue": queue, "raw_shares": 2, "norm_shares": 0.5, "raw_usage": 7200.25,
            "norm_usage": 0.25, "effective_usage": 0.25, "level_fs": 2.0, "user": None,
            "parent": None, "depth": depth, "fair_share_factor": None, "quota": 4,
            "limit": "unlimited", "lend": "unlimited", "rank": 0, "fair_share": 3,
            "allocated": 1, "demand": 5, "budget_gpu_minutes": None, "used_gpu_minutes": None,
            "over_budget": False, **more}


def user_share(user="ann", queue="lab", depth=1, **more):
    return {"queue": queue, "raw_shares": 1, "norm_shares": 1.0, "raw_usage": 0.0,
            "norm_usage": 0.0, "effective_usage": 0.0, "level_fs": None, "user": user,
            "parent": queue, "depth": depth, "fair_share_factor": 1.0, "allocated": 1, **more}


class Shares(Case):
    def test_looks_like_sshare(self):
        self.serve(shares_list=listing(queue_share(), user_share()))
        rows = [line.split() for line in self.ok("shares").splitlines()]
        self.assertEqual(rows[0], ["QUEUE", "USER", "RAWSHARES", "NORMSHARES", "RAWUSAGE",
                                   "EFFECTVUSAGE", "FAIRSHARE", "QUOTA", "LIMIT", "FAIR_SHARE",
                                   "ALLOCATED"])
        self.assertEqual(rows[1], ["lab", "2", "0.500000", "7200", "0.250000", "4", "unlimited",
                                   "3", "1"])
        self.assertEqual(rows[2], ["lab", "ann", "1", "1.000000", "0", "0.000000", "1.000000",
                                   "1"])

    def test_the_tree_is_indented_and_users_stand_below_their_queue(self):
        self.serve(shares_list=listing(queue_share(), queue_share("nlp", 1),
                                       user_share("bob", "nlp", 2)))
        lines = self.ok("shares", "-h", "-o", "queue,user").splitlines()
        self.assertEqual([line.rstrip() for line in lines], ["lab", "  nlp", "  nlp bob"])

    def test_unused_is_infinitely_below_its_share(self):
        self.serve(shares_list=listing(queue_share(), user_share()))
        self.assertEqual(self.ok("shares", "-h", "-o", "levelfs").split(), ["2.000000", "inf"])

    def test_several_flavors_in_one_cell(self):
        self.serve(shares_list=listing(queue_share(fair_share={"a100": 3, "h100": 0})))
        self.assertEqual(self.ok("shares", "-h", "-o", "fair_share"), "a100=3,h100=0\n")

    def test_summary_leaves_users_out(self):
        self.serve(shares_list=listing(queue_share(), user_share()))
        self.assertEqual(len(self.ok("shares", "-h", "-s").splitlines()), 1)

    def test_filters_travel(self):
        s = self.serve(shares_list=listing())
        self.ok("shares", "--me", "-q", "a", "b")
        self.assertEqual(s.of("shares.list")[0].params, {"users": ["ann"], "queues": ["a", "b"]})

    def test_json_is_what_the_server_says(self):
        self.serve(shares_list=listing(queue_share()))
        self.assertEqual(json.loads(self.ok("shares", "--json")), {"v": 1, **queue_share()})

    def test_an_unknown_queue_is_refused(self):
        def refuse(call):
            raise Refused(2, "not_found", "no queue is named x")
        self.serve(shares_list=refuse)
        self.assertEqual(self.run_gpuq("shares", "x"), (1, "", "gpuq: no queue is named x\n"))


def prio(id=17, **more):
    return {"id": id, "array_index": None, "array": None, "name": "train", "user": "ann",
            "queue": "lab", "priority": 1093, "age": 100, "fairshare": 1000, "size": 0, "qos": 0,
            "stretch": 0, "boost": 3, "nice": 10, "place": 2, "waiting": 5, **more}


class Prio(Case):
    def test_looks_like_sprio(self):
        self.serve(prio_list=listing(prio()))
        rows = [line.split() for line in self.ok("prio").splitlines()]
        self.assertEqual(rows, [["JOBID", "QUEUE", "USER", "PLACE", "PRIORITY", "SITE", "AGE",
                                 "FAIRSHARE", "JOBSIZE", "QOS", "STRETCH", "NICE"],
                                ["17", "lab", "ann", "2/5", "1093", "3", "100", "1000", "0", "0",
                                 "0", "10"]])

    def test_sorts_as_told(self):
        self.serve(prio_list=listing(prio(17, priority=1), prio(18, priority=9)))
        self.assertEqual(self.ok("prio", "-h", "-o", "jobid", "--sort=-priority").split(),
                         ["18", "17"])

    def test_weights(self):
        self.serve(prio_weights=lambda call: {"age": 1000, "fairshare": 100000, "size": 0,
                                              "qos": 7, "stretch": 2})
        rows = [line.split() for line in self.ok("prio", "-w").splitlines()]
        self.assertEqual(rows, [["JOBID", "AGE", "FAIRSHARE", "JOBSIZE", "QOS", "STRETCH"],
                                ["Weights", "1000", "100000", "0", "7", "2"]])
        self.assertEqual(json.loads(self.ok("prio", "-w", "--json"))["qos"], 7)

    def test_filters_travel(self):
        s = self.serve(prio_list=listing(), job_get=lambda call: {"jobs": [{"id": 17}]})
        self.ok("prio", "-u", "ann,bob", "-q", "lab", "17", "18_3")
        self.assertEqual(s.of("prio.list")[0].params,
                         {"users": ["ann", "bob"], "queues": ["lab"], "ids": ["17", "18_3"]})

    def test_names_do_not_act_on_the_terminal(self):
        self.serve(prio_list=listing(prio(name="a\033[2Jb")))
        self.assertEqual(self.ok("prio", "-h", "-o", "name"), "a\\x1b[2Jb\n")


class Glance(Case):
    def test_who_waits_longest(self):
        self.serve(status_get=lambda call: {
            "gpus": 1, "devices": {"free": 1}, "jobs": {"PENDING": 1},
            "oldest_waiting": {"job": "17_3", "user": "ann", "queue": "lab",
                               "eligible_time": 1700000000000000, "reason": "Resources"},
            "cluster": {"kind": "kube", "stale_since": None, "read_only": True}},
            queue_list=listing({"name": "lab"}))
        out = self.ok("status")
        self.assertRegex(out, r"Longest wait +17_3 of ann in lab, for \S+ \(Resources\)\n")
        self.assertRegex(out, r"Cluster +kube, read only: no space on the server's disk\n")

    def test_who_is_on_a_device_and_why_a_node_is_not_in_use(self):
        tenants = [{"job": "17", "user": "ann"}, {"job": "18", "user": "bob"},
                   {"job": "19", "user": "ann"}]
        self.serve(node_list=listing(
            {"name": "n1", "state": "drain", "foreign_pods": 3, "foreign_gpus": 0.5,
             "cause": "new\033fans", "devices": [
                 {"index": 0, "memory_mib": 40960, "free_memory_mib": 10240,
                  "used_memory_mib": 30720, "jobs": ["17", "18", "19"], "pods": tenants},
                 {"index": 1, "memory_mib": None, "used_memory_mib": None, "jobs": [],
                  "pods": []}]}))
        self.assertEqual([line.split() for line in self.ok(
            "nodes", "-h", "-o", "gpu,used_memory,users,foreign_pods,foreign_gpus,cause").splitlines()],
            [["0", "30Gi", "ann,bob", "3", "0.5", "new\\x1bfans"],
             ["1", "-", "-", "3", "0.5", "new\\x1bfans"]])


if __name__ == "__main__":
    main()
