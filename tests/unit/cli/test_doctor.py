"""The server's figures, what doctor makes of them, and a backup that arrives whole."""
import json
import os
import time

from fake import Case, Refused, main


def diag(**sections):
    now = int(time.time() * 1000000)
    v = {"process": {"version": "9.8.7", "now_time": now, "start_time": now - 5000000},
         "scheduler": {"cycles": 5, "failed": 0, "cut_short": 0, "most_us": 1500},
         "loop": {"most_us": 9000},
         "journal": {"read_only": False},
         "store": {"bytes": 1 << 20, "map_bytes": 1 << 36, "disk_free_bytes": 1 << 40,
                   "records": {"job": 7}},
         "notify": {"waiting": 0, "given_up": 0, "mails": 0, "webhooks": 0},
         "cluster": {"kind": "kube", "connected": True, "stale_since": None},
         "measured": {"source": None, "trouble": "nobody measures", "idle_rule": False}}
    for name, more in sections.items():
        v[name] = {**v[name], **more}
    return v


def node(name="n1", **more):
    return {"name": name, "state": "idle", "gpus": 1, "free_gpus": 1, "devices": [
        {"index": 0, "uuid": "GPU-1", "state": "free"}], **more}


class Diag(Case):
    def test_sections_and_units(self):
        self.serve(diag_get=lambda call: diag())
        out = self.ok("diag")
        self.assertRegex(out, r"scheduler\.most +1\.500 ms\n")
        self.assertRegex(out, r"store\.bytes +1\.0 MiB\n")
        self.assertRegex(out, r"store\.records\.job +7\n")
        self.assertRegex(out, r"journal\.read_only +no\n")
        self.assertEqual(json.loads(self.ok("diag", "--json"))["loop"], {"most_us": 9000})


class Doctor(Case):
    def examine(self, nodes=(node(),), **sections):
        def node_list(call):
            for n in nodes:
                call.item(n)
            return {}
        self.serve(diag_get=lambda call: diag(**sections), node_list=node_list)
        code, out, err = self.run_gpuq("doctor", "--json")
        self.assertEqual(err, "")
        found = [json.loads(line) for line in out.splitlines()]
        return code, {f["check"]: f for f in found}

    def test_all_is_well_but_the_release(self):
        code, found = self.examine()
        self.assertEqual(code, 0)
        self.assertEqual({c: f["result"] for c, f in found.items()},
                         {"server": "ok", "version": "warning", "identity": "ok", "clock": "ok",
                          "disk": "ok", "cluster": "ok", "nodes": "ok", "scheduler": "ok",
                          "load": "ok", "measured": "ok", "notify": "ok", "backend": "ok"})
        self.assertIn("9.8.7", found["version"]["text"])

    def bad(self, check, result, text, **more):
        code, found = self.examine(**more)
        self.assertEqual((code, found[check]["result"]), (1 if result == "bad" else 0, result))
        self.assertIn(text, found[check]["text"])
        self.assertTrue(found[check]["advice"])

    def test_idle_rules_that_nobody_measures_for(self):
        self.bad("measured", "warning", "not applied: nobody measures", measured={"idle_rule": True})
        self.bad("measured", "warning", "not applied everywhere: status 503", measured={
            "idle_rule": True, "source": "metrics", "trouble": "status 503"})

    def test_what_is_measured(self):
        found = self.examine(measured={"source": "nvml", "trouble": None, "idle_rule": True,
                                       "devices": 3, "jobs": 2})[1]["measured"]
        self.assertEqual(found["result"], "ok")
        self.assertIn("is measured (nvml): 3 devices of 2 jobs", found["text"])

    def test_messages_that_do_not_arrive(self):
        old = int((time.time() - 3600) * 1000000)
        self.bad("notify", "warning", "no route",
                 notify={"waiting": 3, "oldest_time": old, "last_error": "no route"})
        self.bad("notify", "warning", "2 messages were dropped", notify={"given_up": 2})

    def test_no_space(self):
        self.bad("disk", "bad", "nothing can be changed", journal={"read_only": True})

    def test_little_space(self):
        self.bad("disk", "warning", "are free", store={"disk_free_bytes": 1000})

    def test_a_database_that_may_not_grow(self):
        self.bad("disk", "warning", "close to map_size", store={"map_bytes": 1 << 20})

    def test_a_cluster_out_of_view(self):
        self.bad("cluster", "bad", "has not answered", cluster={
            "stale_since": int(time.time() * 1000000) - 300000000})

    def test_a_short_silence_is_none(self):
        code, _ = self.examine(cluster={"stale_since": int(time.time() * 1000000) - 1000000})
        self.assertEqual(code, 0)

    def test_no_cluster(self):
        self.bad("cluster", "bad", "no cluster", cluster={"connected": False})

    def test_no_nodes(self):
        self.bad("nodes", "bad", "there are no nodes", nodes=())

    def test_no_nodes_yet_of_pools_that_grow(self):
        self.serve(diag_get=lambda call: diag(), node_list=lambda call: {},
                   status_get=lambda call: {"pools": [{"name": "t4", "nodes": 0, "max_nodes": 4}]})
        code, out, _ = self.run_gpuq("doctor")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"ok +nodes +there are no nodes now; pools that can grow get them")

    def test_some_nodes_down(self):
        self.bad("nodes", "warning", "1 of 2 nodes is down: n2",
                 nodes=(node(), node("n2", state="down")))

    def test_nodes_left_alone_are_not_called_down(self):
        note = "it lists more resources than can be counted"
        for gpus in (0, 8):
            lies = node("n2", state="down", gpus=gpus, note=note, cause=note)
            self.bad("nodes", "warning", "1 of 2 nodes is left alone, since what is reported there "
                     "cannot be: n2 (%s)" % note, nodes=(node(), lies))
        for more in ({"note": "Ready=False: x"}, {"note": "old", "cause": "gone; its pods may still run"},
                     {"note": "1 of 2 devices do not answer"}, {"note": "moved", "drained_time": 5}):
            self.bad("nodes", "warning", "1 of 2 nodes is down: n2",
                     nodes=(node(), node("n2", state="down", **more)))

    def test_what_only_the_node_reports_is_no_fault_of_an_inventory(self):
        odd = "ResourceSlices of its pools are not complete"
        found = self.examine(nodes=(node(), node("n2", gpus=0, inventory=odd, note=odd)))[1]
        self.assertNotIn("inventory", found)
        self.assertIn("without devices that can be used: n2 (%s)" % odd, found["nodes"]["text"])
        found = self.examine(nodes=(node("n2", inventory=odd),))[1]["inventory"]
        self.assertEqual((found["result"], found["text"]), ("warning", "n2: " + odd))
        self.assertNotIn("of the site", found["advice"])
        differs = "inventory of the site: cards 6, of the node 5: the smaller number counts"
        found = self.examine(nodes=(node("n2", inventory=differs),))[1]["inventory"]
        self.assertIn("correct inventory of the site", found["advice"])

    def test_all_nodes_down(self):
        self.bad("nodes", "bad", "1 of 1 node is down", nodes=(node(state="down"),))

    def test_nodes_without_devices(self):
        self.bad("nodes", "warning", "2 of 3 nodes are without devices: n2, n3",
                 nodes=(node(), node("n2", gpus=0, devices=[]), node("n3", gpus=0, devices=[])))

    def test_an_ill_device(self):
        self.bad("nodes", "warning", "not healthy: n2",
                 nodes=(node(), node("n2", devices=[{"index": 0, "state": "unhealthy"}])))

    def test_failing_cycles(self):
        self.bad("scheduler", "bad", "2 cycles failed", scheduler={"failed": 2})

    def test_clocks_apart(self):
        self.bad("clock", "warning", "differ by", process={
            "now_time": int(time.time() * 1000000) + 3600000000})

    def test_a_long_turn(self):
        self.bad("load", "warning", "4.0 s", loop={"most_us": 4000000})

    def test_no_server(self):
        code, out, _ = self.run_gpuq("doctor")
        self.assertEqual(code, 1)
        self.assertRegex(out, r"^bad +server +no gpuqd answers")

    def test_pools_that_cannot_grow(self):
        code, found = self.examine(cluster={"requests_fault": None})
        self.assertNotIn("requests", found)
        code, found = self.examine(cluster={"requests_fault": "it serves no such kind"})
        self.assertEqual((code, found["requests"]["result"]), (0, "warning"))
        self.assertIn("it serves no such kind", found["requests"]["text"])

    def test_words_do_not_act_on_the_terminal(self):
        self.serve(diag_get=lambda call: diag(),
                   node_list=lambda call: call.item(node("a\033[2J", state="down")))
        self.assertNotIn("\033", self.run_gpuq("doctor")[1])


class Backup(Case):
    def serve_bytes(self, data, told=None):
        def get(call):
            for i in range(0, len(data), 7000):
                call.item({"data": data[i:i + 7000]})
            return {"bytes": len(data) if told is None else told}
        return self.serve(backup_get=get)

    def test_arrives_whole_and_private(self):
        data = os.urandom(50000)
        self.serve_bytes(data)
        path = self.path("copy", "older")
        self.assertEqual(self.ok("backup", path), "Backed up 49 KiB to %s\n" % path)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), data)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(json.loads(self.ok("backup", path, "--json"))["bytes"], 50000)

    def test_to_standard_output(self):
        data = os.urandom(20000)
        self.serve_bytes(data)
        p = self.start("backup", "-")
        self.assertEqual(p.communicate(timeout=60)[0], data)

    def test_what_is_not_whole_replaces_nothing(self):
        self.serve_bytes(b"x" * 100, told=200)
        path = self.path("copy", "older")
        code, _, err = self.run_gpuq("backup", path)
        self.assertNotEqual(code, 0)
        self.assertIn("100 bytes came, 200 were sent", err)
        with open(path) as f:
            self.assertEqual(f.read(), "older")
        self.assertEqual([f for f in os.listdir(self.dir) if "part" in f], [])

    def test_a_refusal_leaves_nothing(self):
        def no(call):
            raise Refused(4, "permission", "backup.get is for operators")
        self.serve(backup_get=no)
        code, _, err = self.run_gpuq("backup", self.path("copy"))
        self.assertEqual((code, err), (1, "gpuq: backup.get is for operators\n"))
        self.assertEqual([f for f in os.listdir(self.dir) if "copy" in f], [])


if __name__ == "__main__":
    main()
