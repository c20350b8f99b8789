"""Pods and nodes: deletion, binding, logs, kubelets, quota."""
from selftest.fake import Case, Watch, pod, wait


class Deletes(Case):
    def delete(self, name, **options):
        return self.call("DELETE", self.PODS + "/" + name, options or None)

    def test_unbound_and_finished_pods_go_at_once(self):
        self.create(pod("a", node=None))
        self.assertEqual(self.delete("a").status, 200)
        self.assertIsNone(self.get("a"))
        self.create(pod("b", run="1ms"))
        self.phase("b", "Succeeded")
        self.delete("b")
        self.assertIsNone(self.get("b"))
        self.fails(404, "NotFound", "DELETE", self.PODS + "/b")

    def test_uid_precondition(self):
        p = self.create(pod("a", node=None))
        self.fails(409, "Conflict", "DELETE", self.PODS + "/a", {"preconditions": {"uid": "other"}})
        self.assertIsNotNone(self.get("a"))
        self.ok("DELETE", self.PODS + "/a", {"preconditions": {"uid": p["metadata"]["uid"]}})

    def test_running_pod_leaves_with_grace(self):
        self.create(pod("a", hang=1, slow_exit="300ms"))
        self.phase("a", "Running")
        w = self.watch(resourceVersion=self.rv())
        j = self.delete("a", gracePeriodSeconds=20).json
        self.assertEqual(j["metadata"]["deletionGracePeriodSeconds"], 20)
        j = self.fails(409, "AlreadyExists", "POST", self.PODS, pod("a"))
        self.assertTrue(j["message"].startswith("object is being deleted: "))
        events = [w.next() for _ in range(4)]
        self.assertEqual([(e["type"], e["object"]["status"]["phase"], e["object"]["metadata"]["deletionGracePeriodSeconds"])
                          for e in events],
                         [("MODIFIED", "Running", 20), ("MODIFIED", "Failed", 20), ("MODIFIED", "Failed", 0),
                          ("DELETED", "Failed", 0)])
        term = events[1]["object"]["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual(term["exitCode"], 143)

    def test_grace_is_the_end_of_patience(self):
        self.create(pod("a", hang=1, slow_exit="1h"))
        self.phase("a", "Running")
        w = self.watch(resourceVersion=self.rv())
        self.delete("a", gracePeriodSeconds=3600)
        self.delete("a", gracePeriodSeconds=7200)  # cannot become longer
        self.assertEqual(self.get("a")["metadata"]["deletionGracePeriodSeconds"], 3600)
        self.delete("a", gracePeriodSeconds=1)
        while True:
            e = w.next()
            if e["object"]["status"]["phase"] == "Failed":
                break
        self.assertEqual(e["object"]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 137)
        self.gone("a")

    def test_finalizer_holds_the_object(self):
        self.create(pod("a", hang=1, meta={"finalizers": ["gpuq.io/accounting"]}))
        self.phase("a", "Running")
        self.delete("a")
        p = self.phase("a", "Failed")
        self.assertIn("deletionTimestamp", p["metadata"])
        wait(lambda: self.get("a")["metadata"]["deletionGracePeriodSeconds"] == 0, "the kubelet to be done")
        self.ok("PATCH", self.PODS + "/a", {"metadata": {"finalizers": None}},
                Content_Type="application/merge-patch+json")
        self.gone("a")

    def test_force_leaves_the_container_running(self):
        self.create(pod("a", gpus=4, hang=1, job=1, slow_exit="500ms"))
        self.phase("a", "Running")
        self.delete("a", gracePeriodSeconds=0)
        self.assertIsNone(self.get("a"))
        self.create(pod("b", gpus=4))  # the devices are still taken
        self.assertEqual(self.phase("b", "Failed")["status"]["reason"], "UnexpectedAdmissionError")
        wait(lambda: self.audit()["running"] == 0, "the container to end")

    def test_collection(self):
        for i in range(3):
            self.create(pod("p%d" % i, node=None, meta={"labels": {"x": str(i % 2)}}))
        self.ok("DELETE", self.PODS + "?labelSelector=x%3D0")
        self.assertEqual([p["metadata"]["name"] for p in self.ok("GET", self.PODS)["items"]], ["p1"])

    def test_owner_references(self):
        owner = self.create(pod("owner", node=None))
        refs = [{"apiVersion": "v1", "kind": "Pod", "name": "owner", "uid": owner["metadata"]["uid"]}]
        cms = "/api/v1/namespaces/default/configmaps"
        self.ok("POST", cms, {"metadata": {"name": "c", "ownerReferences": refs}}, code=201)
        self.ok("POST", cms, {"metadata": {"name": "free"}}, code=201)
        self.ok("POST", "/api/v1/namespaces/default/services",
                {"metadata": {"name": "s", "ownerReferences": refs}, "spec": {"clusterIP": "None"}}, code=201)
        self.delete("owner")
        wait(lambda: self.call("GET", cms + "/c").status == 404, "the configmap to be collected")
        wait(lambda: self.call("GET", "/api/v1/namespaces/default/services/s").status == 404, "the service")
        self.ok("GET", cms + "/free")
        self.ok("POST", cms, {"metadata": {"name": "late", "ownerReferences": refs}}, code=201)
        wait(lambda: self.call("GET", cms + "/late").status == 404, "the late one")

    def test_two_owners(self):
        cms = "/api/v1/namespaces/default/configmaps"
        refs = [{"apiVersion": "v1", "kind": "Pod", "name": n, "uid": self.create(pod(n, node=None))["metadata"]["uid"]}
                for n in ("a", "b")]
        self.ok("POST", cms, {"metadata": {"name": "c", "ownerReferences": refs}}, code=201)
        self.delete("a")
        self.ok("POST", cms, {"metadata": {"name": "probe", "ownerReferences": refs[:1]}}, code=201)
        wait(lambda: self.call("GET", cms + "/probe").status == 404, "the collector to have passed")
        self.ok("GET", cms + "/c")
        self.delete("b")
        wait(lambda: self.call("GET", cms + "/c").status == 404, "c to go")


class Subresources(Case):
    def bind(self, name, node, uid=None):
        return self.call("POST", self.PODS + "/" + name + "/binding", {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "uid": uid or ""},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}})

    def test_binding_happens_once(self):
        p = self.create(pod("a", node=None, hang=1))
        self.assertEqual(self.bind("a", "node-0000", uid="other").status, 409)
        r = self.bind("a", "node-0000", uid=p["metadata"]["uid"])
        self.assertEqual((r.status, r.json["status"]), (201, "Success"))
        r = self.bind("a", "node-0001")
        self.assertEqual(r.status, 409)
        self.assertIn('already assigned to node "node-0000"', r.json["message"])
        self.phase("a", "Running")
        self.assertEqual(self.bind("nobody", "node-0000").status, 404)
        self.assertEqual(self.audit()["binds"], 1)

    def test_gates_hold_the_binding(self):
        self.create(pod("a", node=None, spec={"schedulingGates": [{"name": "x.io/g"}]}))
        self.assertEqual(self.bind("a", "node-0000").status, 409)

    def test_binding_does_not_check_the_node(self):
        self.create(pod("a", node=None))
        self.assertEqual(self.bind("a", "nowhere").status, 201)
        self.assertEqual(self.get("a")["status"]["phase"], "Pending")

    def test_eviction(self):
        self.create(pod("a", hang=1, slow_exit="200ms"))
        self.phase("a", "Running")
        w = self.watch(resourceVersion=self.rv())
        r = self.call("POST", self.PODS + "/a/eviction", {"apiVersion": "policy/v1", "kind": "Eviction",
                                                          "metadata": {"name": "a"}})
        self.assertEqual(r.status, 201)
        seen = []
        while not seen or seen[-1]["type"] != "DELETED":
            seen.append(w.next())
        conditions = {c["type"]: c.get("reason") for c in seen[-1]["object"]["status"]["conditions"]}
        self.assertEqual(conditions.get("DisruptionTarget"), "EvictionByEvictionAPI")

    def test_logs(self):
        self.create(pod("u", node=None))
        self.assertEqual(self.call("GET", self.PODS + "/u/log").status, 204)
        self.create(pod("a", hang=1, log="one\ntwo\nthree"))
        self.phase("a", "Running")
        log = self.PODS + "/a/log"
        self.assertEqual(self.call("GET", log).body, b"one\ntwo\nthree\n")
        self.assertEqual(self.call("GET", log + "?tailLines=2").body, b"two\nthree\n")
        self.assertEqual(self.call("GET", log + "?tailLines=0").body, b"")
        self.assertEqual(self.call("GET", log + "?limitBytes=5").body, b"one\nt")
        self.assertRegex(self.call("GET", log + "?timestamps=true").body.decode(),
                         r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z one\n")
        self.fails(400, "BadRequest", "GET", log + "?container=other")
        self.fails(404, "NotFound", "GET", self.PODS + "/nobody/log")
        self.create(pod("r", reject="true"))
        self.phase("r", "Failed")
        self.fails(400, "BadRequest", "GET", self.PODS + "/r/log")

    def test_follow_ends_with_the_pod(self):
        self.create(pod("a", run="300ms", log="\n".join("line%d" % i for i in range(5)), log_every="50ms"))
        self.phase("a", "Running")
        r = self.call("GET", self.PODS + "/a/log?follow=true")
        self.assertEqual(r.body.decode().split(), ["line%d" % i for i in range(5)])

    def test_follow_of_a_killed_pod_has_what_was_written(self):
        self.create(pod("a", hang=1, log="first\nsecond", log_every="1h"))
        self.phase("a", "Running")
        w = Watch(self.srv.port, self.PODS + "/a/log?follow=true")
        self.watches.append(w)
        self.assertEqual(w.status(), 200)
        self.call("DELETE", self.PODS + "/a")
        self.assertEqual(w.until_end(), "clean")
        self.assertEqual(w.events, [b"first"])

    def test_log_faults(self):
        self.create(pod("a", hang=1, log="1\n2\n3\n4", log_every="20ms"))
        self.phase("a", "Running")
        self.fault("on GET pods/log close after=2")
        w = Watch(self.srv.port, self.PODS + "/a/log?follow=true")
        self.watches.append(w)
        self.assertEqual(w.until_end(), "cut")
        self.assertGreaterEqual(len(w.events), 2)


class Kubelet(Case):
    def end(self, p):
        return p["status"]["containerStatuses"][0]["state"]["terminated"]

    def test_endings(self):
        self.create(pod("ok", run="10ms"))
        self.create(pod("bad", run="10ms", exit_code=3))
        self.create(pod("oom", run="10ms", oom="true"))
        self.create(pod("late", node="node-0001", hang=1, spec={"activeDeadlineSeconds": 1}))
        self.assertEqual(self.end(self.phase("ok", "Succeeded"))["reason"], "Completed")
        self.assertEqual(self.end(self.phase("bad", "Failed"))["exitCode"], 3)
        t = self.end(self.phase("oom", "Failed"))
        self.assertEqual((t["reason"], t["exitCode"]), ("OOMKilled", 137))
        self.create(pod("child", run="10ms", oom_child="true"))
        t = self.end(self.phase("child", "Succeeded"))
        self.assertEqual((t["reason"], t["exitCode"]), ("OOMKilled", 0))
        self.assertEqual(self.phase("late", "Failed")["status"]["reason"], "DeadlineExceeded")

    def test_running_status(self):
        self.create(pod("a", hang=1))
        s = self.phase("a", "Running")["status"]
        self.assertIn("startedAt", s["containerStatuses"][0]["state"]["running"])
        self.assertTrue(s["startTime"] and s["podIP"])

    def test_rejected_by_annotation(self):
        self.create(pod("a", reject="true"))
        s = self.phase("a", "Failed")["status"]
        self.assertEqual(s["reason"], "UnexpectedAdmissionError")
        self.assertNotIn("containerStatuses", s)
        self.create(pod("b", reject="NodeShutdown"))
        self.assertEqual(self.phase("b", "Failed")["status"]["reason"], "NodeShutdown")
        self.assertEqual(self.audit()["overcommits"], 0)

    def test_overcommit_is_rejected_and_counted(self):
        self.create(pod("a", gpus=3, hang=1))
        self.phase("a", "Running")
        self.create(pod("b", gpus=2))
        s = self.phase("b", "Failed")["status"]
        self.assertEqual(s["message"], "Allocate failed due to requested number of devices unavailable for "
                         "nvidia.com/gpu. Requested: 2, Available: 1, which is unexpected")
        self.assertEqual(self.audit()["overcommits"], 1)
        self.create(pod("c", gpus=1, hang=1))
        self.phase("c", "Running")

    def test_other_resources(self):
        p = pod("a", gpus=0)
        p["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "65"}}
        self.create(p)
        s = self.phase("a", "Failed")["status"]
        self.assertEqual((s["reason"], s["message"]), ("OutOfcpu",
                         "Node didn't have enough resource: cpu, requested: 65000, used: 0, capacity: 64000"))

    def test_init_containers_and_sidecars_count_as_in_kubernetes(self):
        c = lambda n, cpu, **kw: dict({"name": n, "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}, **kw)
        # app 30 + sidecar 20 = 50; an init container of 45 beside the sidecar needs 65 > 64
        spec = {"containers": [c("a", 30)], "initContainers": [c("s", 20, restartPolicy="Always"), c("i", 45)]}
        self.create(pod("x", spec=spec))
        self.assertIn("requested: 65000", self.phase("x", "Failed")["status"]["message"])
        spec["initContainers"].reverse()  # before the sidecar it does not add up
        self.create(pod("y", spec=spec, hang=1))
        self.phase("y", "Running")

    def test_terminating_pod_still_holds_its_devices(self):
        self.create(pod("a", gpus=4, hang=1, slow_exit="1h"))
        self.phase("a", "Running")
        self.call("DELETE", self.PODS + "/a", {"gracePeriodSeconds": 3600})
        self.create(pod("b", gpus=1))
        self.phase("b", "Failed")

    def test_node_without_the_resource_admits(self):
        self.fault("node-add plain gpus=0")
        self.create(pod("a", node="plain", gpus=2, hang=1))
        self.phase("a", "Running")

    def test_image_that_cannot_be_pulled(self):
        self.create(pod("a", gpus=4, waiting="ImagePullBackOff"))

        def reason():
            s = self.get("a")["status"].get("containerStatuses")
            return s and s[0]["state"]["waiting"]["reason"]
        self.assertEqual(wait(reason, "a reason"), "ImagePullBackOff")
        self.create(pod("b", gpus=1))
        self.phase("b", "Failed")  # the devices are taken
        self.call("DELETE", self.PODS + "/a")
        self.gone("a")
        self.create(pod("c", gpus=4, hang=1))
        self.phase("c", "Running")

    def test_deleted_before_it_started(self):
        self.create(pod("a", start="1h"))
        self.call("DELETE", self.PODS + "/a")
        self.gone("a")
        self.create(pod("b", gpus=4, hang=1))  # nothing is held
        self.phase("b", "Running")


class Quota(Case):
    def test_gpu_quota(self):
        q = "/api/v1/namespaces/default/resourcequotas"
        self.ok("POST", q, {"metadata": {"name": "rq"}, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}, code=201)
        self.create(pod("a", gpus=2, hang=1))
        j = self.fails(403, "Forbidden", "POST", self.PODS, pod("b", gpus=2))
        self.assertEqual(j["message"], 'pods "b" is forbidden: exceeded quota: rq, requested: '
                         'requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2')
        # the quota speaks before the name is looked at
        self.fails(403, "Forbidden", "POST", self.PODS, pod("a", gpus=2))
        wait(lambda: self.ok("GET", q + "/rq")["status"].get("used") == {"requests.nvidia.com/gpu": "2"}, "used 2")
        self.create(pod("c", gpus=0))
        self.create(pod("d", gpus=4), ns="kube-system")
        self.call("DELETE", self.PODS + "/a")
        self.gone("a")
        wait(lambda: self.ok("GET", q + "/rq")["status"]["used"] == {"requests.nvidia.com/gpu": "0"}, "used 0")
        self.create(pod("b", gpus=2, run="10ms"))
        self.phase("b", "Succeeded")  # a finished pod is not charged
        self.create(pod("e", gpus=2))

    def test_cpu_and_pods(self):
        self.ok("POST", "/api/v1/namespaces/default/resourcequotas",
                {"metadata": {"name": "rq"}, "spec": {"hard": {"pods": "2", "requests.cpu": "3"}}}, code=201)
        p = pod("a", gpus=0, hang=1)
        p["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2500m"}}
        self.create(p)
        p["metadata"]["name"] = "b"
        self.assertIn("requested: requests.cpu=2500m, used: requests.cpu=2500m, limited: requests.cpu=3",
                      self.fails(403, "Forbidden", "POST", self.PODS, p)["message"])
        self.create(pod("c", gpus=0, hang=1))
        self.assertIn("limited: pods=2", self.fails(403, "Forbidden", "POST", self.PODS, pod("d", gpus=0))["message"])


class Nodes(Case):
    flags = Case.flags + ("--podgc-delay", "50ms")

    def test_down_and_up(self):
        self.create(pod("a", run="100ms"))
        self.create(pod("stay", hang=1))
        self.phase("stay", "Running")
        self.phase("a", "Running", "Succeeded")
        self.fault("node-down node-0000")
        n = self.ok("GET", "/api/v1/nodes/node-0000")
        self.assertEqual({t["key"] for t in n["spec"]["taints"]}, {"node.kubernetes.io/unreachable"})
        self.assertEqual([c["status"] for c in n["status"]["conditions"] if c["type"] == "Ready"], ["Unknown"])
        self.create(pod("new", run="1ms"))
        self.call("DELETE", self.PODS + "/stay")
        self.create(pod("probe", node="node-0001", run="300ms"))
        self.phase("probe", "Succeeded")
        self.assertEqual(self.get("new")["status"]["phase"], "Pending")
        self.assertIn("deletionTimestamp", self.get("stay")["metadata"])
        self.assertEqual(self.call("GET", self.PODS + "/stay/log").status, 500)
        self.fault("node-up node-0000")
        self.phase("new", "Succeeded")
        self.phase("a", "Succeeded")
        self.gone("stay")

    def test_lost_node_evicts_by_toleration(self):
        toleration = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
                       "tolerationSeconds": 0}]
        self.create(pod("a", hang=1, spec={"tolerations": toleration}))
        self.create(pod("b", hang=1))
        self.phase("a", "Running")
        self.fault("node-down node-0000")
        p = wait(lambda: (lambda p: p if "deletionTimestamp" in p["metadata"] else None)(self.get("a")), "the eviction")
        self.assertEqual({c["type"]: c.get("reason") for c in p["status"]["conditions"]}["DisruptionTarget"],
                         "DeletionByTaintManager")
        self.assertNotIn("deletionTimestamp", self.get("b")["metadata"])

    def test_gone(self):
        self.create(pod("a", hang=1))
        self.phase("a", "Running")
        w = self.watch(resourceVersion=self.rv())
        self.fault("node-gone node-0000")
        self.assertEqual(self.call("GET", "/api/v1/nodes/node-0000").status, 404)
        self.gone("a")
        e = w.next()
        self.assertEqual((e["object"]["status"]["phase"], e["object"]["status"]["conditions"][-1]["reason"]),
                         ("Failed", "DeletionByPodGC"))
        self.assertEqual(self.audit()["running"], 0)

    def test_reboot(self):
        self.create(pod("a", hang=1))
        self.phase("a", "Running")
        self.fault("node-reboot node-0000")
        self.assertEqual(self.phase("a", "Failed")["status"]["reason"], "UnexpectedAdmissionError")
        self.create(pod("b", gpus=4, hang=1))
        self.phase("b", "Running")

    def test_devices_shrink_and_running_pods_stay(self):
        self.create(pod("a", gpus=3, hang=1))
        self.phase("a", "Running")
        self.fault("devices node-0000=2")
        n = self.ok("GET", "/api/v1/nodes/node-0000")["status"]
        self.assertEqual((n["allocatable"]["nvidia.com/gpu"], n["capacity"]["nvidia.com/gpu"]), ("2", "4"))
        self.create(pod("b", gpus=1))
        self.assertIn("Available: 0", self.phase("b", "Failed")["status"]["message"])
        self.assertEqual(self.get("a")["status"]["phase"], "Running")

    def test_cordon_and_add(self):
        self.fault("cordon node-0000", "node-add extra gpus=2")
        q = "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue"
        self.assertEqual([n["metadata"]["name"] for n in self.ok("GET", q)["items"]], ["node-0000"])
        self.fault("uncordon node-0000")
        self.assertEqual(self.ok("GET", q)["items"], [])
        self.create(pod("a", node="extra", gpus=2, hang=1))
        self.phase("a", "Running")

    def test_foreign_pod(self):
        self.fault("foreign node-0000 gpus=3 name=theirs")
        wait(lambda: self.ok("GET", "/api/v1/namespaces/foreign/pods/theirs")["status"]["phase"] == "Running", "theirs")
        self.create(pod("a", gpus=2))
        self.phase("a", "Failed")

    def test_deleted_behind_the_back(self):
        self.create(pod("a", hang=1))
        self.phase("a", "Running")
        self.fault("delete-pod default/a grace=5")
        self.gone("a")


class ForeignStart(Case):
    flags = ("--nodes", "3", "--gpus", "2", "--pods-foreign", "7")

    def test_foreign_pods_at_the_start(self):
        wait(lambda: {p["status"]["phase"] for p in self.ok("GET", "/api/v1/namespaces/foreign/pods")["items"]}
             == {"Running"}, "foreign pods to run")
        self.assertEqual(self.audit()["overcommits"], 0)
        self.assertEqual(self.audit()["running"], 7)
