"""The API: lists, watches, writes."""
import json
import urllib.parse

from selftest.fake import Case, pod, wait


class Basics(Case):
    def test_probes_and_version(self):
        self.assertEqual(self.call("GET", "/readyz").body, b"ok")
        self.assertEqual(self.ok("GET", "/version")["major"], "1")

    def test_discovery(self):
        names = [r["name"] for r in self.ok("GET", "/api/v1")["resources"]]
        self.assertIn("pods/binding", names)
        self.assertEqual(self.ok("GET", "/apis/policy/v1")["resources"][0]["kind"], "PodDisruptionBudget")
        self.assertEqual(self.call("GET", "/apis/resource.k8s.io/v1").status, 404)

    def test_kube_system_has_a_uid(self):
        self.assertEqual(len(self.ok("GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"]), 36)

    def test_nodes(self):
        n = self.ok("GET", "/api/v1/nodes/node-0001")
        self.assertEqual(n["status"]["allocatable"]["nvidia.com/gpu"], "4")
        self.assertEqual(n["metadata"]["labels"]["nvidia.com/gpu.count"], "4")
        self.assertEqual([c["status"] for c in n["status"]["conditions"] if c["type"] == "Ready"], ["True"])

    def test_unknown_paths(self):
        for path in ("/api/v1/secrets", "/api/v2/pods", "/apis/apps/v1/deployments", "/nothing",
                     "/api/v1/namespaces/default/nodes", "/api/v1/pods/x", "/api"):
            code = 200 if path == "/api" else 404
            self.assertEqual(self.call("GET", path).status, code, path)

    def test_method_not_allowed(self):
        self.fails(405, "MethodNotAllowed", "PUT", self.PODS, {})
        self.fails(405, "MethodNotAllowed", "POST", self.PODS + "/x", {})
        self.fails(405, "MethodNotAllowed", "BREW", self.PODS + "/x", {})

    def test_kubeconfig(self):
        with open(self.srv.path("kubeconfig")) as f:
            self.assertIn("server: http://127.0.0.1:%d\n" % self.srv.port, f.read())


class Token(Case):
    flags = ("--token", "s3cret")

    def test_token(self):
        self.fails(401, "Unauthorized", "GET", "/api/v1/nodes")
        self.fails(401, "Unauthorized", "GET", "/api/v1/nodes", Authorization="Bearer other")
        self.ok("GET", "/api/v1/nodes", Authorization="Bearer s3cret")
        with open(self.srv.path("kubeconfig")) as f:
            self.assertIn('token: "s3cret"', f.read())
        self.fault("token rotated")
        self.fails(401, "Unauthorized", "GET", "/api/v1/nodes", Authorization="Bearer s3cret")
        self.ok("GET", "/api/v1/nodes", Authorization="Bearer rotated")


class Lists(Case):
    def test_pages_are_one_snapshot(self):
        for i in range(7):
            self.create(pod("p%d" % i, node=None))
        first = self.ok("GET", self.PODS + "?limit=3")
        self.assertEqual(first["metadata"]["remainingItemCount"], 4)
        self.assertNotIn("kind", first["items"][0])
        self.call("DELETE", self.PODS + "/p5")
        self.create(pod("p55", node=None))
        names, token = [p["metadata"]["name"] for p in first["items"]], first["metadata"]["continue"]
        while token:
            page = self.ok("GET", self.PODS + "?limit=3&continue=" + token)
            self.assertEqual(page["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"])
            names += [p["metadata"]["name"] for p in page["items"]]
            token = page["metadata"].get("continue")
        self.assertEqual(names, ["p%d" % i for i in range(7)])

    def test_compaction_ends_a_continue_token(self):
        for i in range(4):
            self.create(pod("p%d" % i, node=None))
        token = self.ok("GET", self.PODS + "?limit=2")["metadata"]["continue"]
        self.fault("compact")
        gone = self.fails(410, "Expired", "GET", self.PODS + "?limit=2&continue=" + token)
        rest = self.ok("GET", self.PODS + "?continue=" + gone["metadata"]["continue"])
        self.assertEqual([p["metadata"]["name"] for p in rest["items"]], ["p2", "p3"])

    def test_bad_parameters(self):
        self.fails(400, "BadRequest", "GET", self.PODS + "?continue=xyz!")
        self.fails(400, "BadRequest", "GET", self.PODS + "?continue=abc")
        self.fails(400, "BadRequest", "GET", self.PODS + "?resourceVersion=abc")
        self.fails(400, "BadRequest", "GET", self.PODS + "?fieldSelector=spec.color%3Dred")
        self.fails(400, "BadRequest", "GET", self.PODS + "?labelSelector=a+in+b")
        self.fails(422, "Invalid", "GET", self.PODS + "?resourceVersionMatch=Exact")

    def test_resource_version_from_the_future(self):
        j = self.fails(504, "Timeout", "GET", self.PODS + "?resourceVersion=999999")
        self.assertEqual(j["details"]["causes"][0]["reason"], "ResourceVersionTooLarge")

    def test_selectors(self):
        for name, labels, node in (("a", {"t": "x"}, None), ("b", {"t": "y"}, "node-0000"), ("c", {}, "node-0001")):
            self.create(pod(name, node=node, hang=1, meta={"labels": labels}))

        def names(**q):
            return [p["metadata"]["name"] for p in
                    self.ok("GET", self.PODS + "?" + urllib.parse.urlencode(q))["items"]]
        self.assertEqual(names(labelSelector="t=x"), ["a"])
        self.assertEqual(names(labelSelector="t==x"), ["a"])
        self.assertEqual(names(labelSelector="t!=x"), ["b", "c"])
        self.assertEqual(names(labelSelector="t"), ["a", "b"])
        self.assertEqual(names(labelSelector="!t"), ["c"])
        self.assertEqual(names(labelSelector="t in (x, y),t notin (x)"), ["b"])
        self.assertEqual(names(fieldSelector="spec.nodeName=node-0001"), ["c"])
        self.assertEqual(names(fieldSelector="spec.nodeName="), ["a"])
        self.assertEqual(names(fieldSelector="metadata.name!=a,metadata.namespace=default"), ["b", "c"])
        self.phase("c", "Running")
        self.assertIn("c", names(fieldSelector="status.phase=Running"))

    def test_cluster_wide_and_by_namespace(self):
        self.create(pod("a"), ns="kube-system")
        self.assertEqual(len(self.ok("GET", "/api/v1/pods")["items"]), 1)
        self.assertEqual(len(self.ok("GET", self.PODS)["items"]), 0)


class Watches(Case):
    def test_life_of_a_pod(self):
        rv = self.rv()
        w = self.watch(resourceVersion=rv)
        self.create(pod("a", run="50ms"))
        got = [w.next() for _ in range(3)]
        self.assertEqual([(e["type"], e["object"]["status"]["phase"]) for e in got],
                         [("ADDED", "Pending"), ("MODIFIED", "Running"), ("MODIFIED", "Succeeded")])
        self.assertEqual(got[0]["object"]["kind"], "Pod")
        rvs = [int(e["object"]["metadata"]["resourceVersion"]) for e in got]
        self.assertEqual(rvs, sorted(rvs))
        self.call("DELETE", self.PODS + "/a")
        mark = w.next()  # the mark is seen before the end, as from a real server
        self.assertEqual((mark["type"], mark["object"]["metadata"]["deletionGracePeriodSeconds"]), ("MODIFIED", 0))
        self.assertEqual(w.next()["type"], "DELETED")

    def test_resume_repeats_what_was_missed(self):
        rv = self.rv()
        for i in range(3):
            self.create(pod("p%d" % i, node=None))
        w = self.watch(resourceVersion=rv)
        self.assertEqual([w.next()["object"]["metadata"]["name"] for _ in range(3)], ["p0", "p1", "p2"])

    def test_selector_turns_changes_into_added_and_deleted(self):
        w = self.watch(resourceVersion=self.rv(), labelSelector="t=x")
        self.create(pod("a", node=None))
        self.fault("label-pod a t=x", "label-pod a t=y")
        self.assertEqual(w.next()["type"], "ADDED")
        e = w.next()
        self.assertEqual((e["type"], e["object"]["metadata"]["labels"]["t"]), ("DELETED", "x"))

    def test_from_nothing_sends_the_state(self):
        self.create(pod("a", node=None))
        self.assertEqual(self.watch().next()["type"], "ADDED")

    def test_watch_list(self):
        self.create(pod("a", node=None))
        w = self.watch(sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true")
        self.assertEqual(w.next()["type"], "ADDED")
        mark = w.next()
        self.assertEqual(mark["type"], "BOOKMARK")
        self.assertEqual(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true")

    def test_too_old_is_an_event(self):
        rv = self.rv()
        self.create(pod("a", node=None))
        self.fault("compact")
        w = self.watch(resourceVersion=rv)
        self.assertEqual(w.status(), 200)
        e = w.next()
        self.assertEqual((e["type"], e["object"]["code"], e["object"]["reason"]), ("ERROR", 410, "Expired"))
        self.assertEqual(w.until_end(), "clean")

    def test_timeout_ends_cleanly_after_a_bookmark(self):
        w = self.watch(resourceVersion=self.rv(), timeoutSeconds=1, allowWatchBookmarks="true")
        self.assertEqual(w.until_end(), "clean")
        self.assertEqual(json.loads(w.events[-1])["type"], "BOOKMARK")

    def test_from_the_future_is_silent_until_then(self):
        w = self.watch(resourceVersion=self.rv() + 2)
        w.status()
        for name in ("past", "now", "after"):
            self.create(pod(name, node=None))
        self.assertEqual(w.next()["object"]["metadata"]["name"], "after")

    def test_only_its_own_namespace(self):
        w = self.watch("/api/v1/namespaces/kube-system/pods", resourceVersion=self.rv())
        self.create(pod("a"))
        self.create(pod("b"), ns="kube-system")
        self.assertEqual(w.next()["object"]["metadata"]["name"], "b")

    def test_connection_is_reused_after_a_watch(self):
        w = self.watch(resourceVersion=self.rv(), timeoutSeconds=1)
        self.assertEqual(w.until_end(), "clean")
        w.sock.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertIn(b"200 OK", w.sock.recv(4096))


class Bookmarks(Case):
    flags = Case.flags + ("--bookmarks", "50ms")

    def test_bookmarks(self):
        w = self.watch(resourceVersion=self.rv(), allowWatchBookmarks="true")
        e = w.next()
        self.assertEqual((e["type"], e["object"]["kind"]), ("BOOKMARK", "Pod"))
        self.assertEqual(int(e["object"]["metadata"]["resourceVersion"]), self.rv())
        quiet = self.watch(resourceVersion=self.rv())
        w.next()
        w.next()
        self.assertEqual(quiet.events, [])


    def test_no_bookmark_from_the_past(self):
        w = self.watch(resourceVersion=self.rv() + 1, allowWatchBookmarks="true")
        now = self.watch(resourceVersion=self.rv(), allowWatchBookmarks="true")
        for _ in range(3):
            now.next()
        w.status()
        self.assertFalse(w.feed(0.1) and w.events)
        self.create(pod("a", node=None))
        self.assertEqual(w.next()["type"], "BOOKMARK")


class History(Case):
    flags = Case.flags + ("--history", "16")

    def test_ring_forgets(self):
        rv = self.rv()
        for i in range(20):
            self.create(pod("p%d" % i, node=None))
        self.assertEqual(self.watch(resourceVersion=rv).next()["type"], "ERROR")
        self.assertEqual(self.state()["oldestResourceVersion"], self.rv() - 16)
        w = self.watch(resourceVersion=self.rv() - 16)
        self.assertEqual(w.next()["object"]["metadata"]["name"], "p4")


class Writes(Case):
    def test_create_answers_the_stored_object(self):
        p = self.create(pod("a", gpus=2))
        self.assertEqual(len(p["metadata"]["uid"]), 36)
        self.assertEqual(p["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"], "2")
        self.assertEqual(p["status"]["phase"], "Pending")
        self.assertEqual(p, self.ok("GET", self.PODS + "/a") if p["metadata"]["resourceVersion"] ==
                         self.get("a")["metadata"]["resourceVersion"] else p)

    def test_refusals_of_a_create(self):
        self.create(pod("a", node=None))
        j = self.fails(409, "AlreadyExists", "POST", self.PODS, pod("a"))
        self.assertEqual(j["message"], 'pods "a" already exists')
        j = self.fails(404, "NotFound", "POST", "/api/v1/namespaces/nons/pods", pod("x"))
        self.assertEqual(j["message"], 'namespaces "nons" not found')
        self.fails(400, "BadRequest", "POST", self.PODS, pod("x", meta={"namespace": "other"}))
        self.fails(400, "BadRequest", "POST", self.PODS, "{not json")
        self.fails(400, "BadRequest", "POST", self.PODS, "[]")
        self.fails(400, "BadRequest", "POST", self.PODS, {"kind": "ConfigMap", "apiVersion": "v1"})
        self.fails(400, "BadRequest", "POST", self.PODS, pod("x", meta={"labels": {"a": 1}}))
        self.fails(400, "BadRequest", "POST", self.PODS, pod("x", spec={"containers": {}}))
        self.fails(400, "BadRequest", "POST", self.PODS, pod("x", gpus="1x"))
        self.fails(415, "UnsupportedMediaType", "POST", self.PODS, "x", Content_Type="application/yaml")
        self.assertEqual(self.audit()["creates"], 1)

    def test_invalid_with_causes(self):
        def causes(p):
            j = self.fails(422, "Invalid", "POST", self.PODS, p)
            return {c["field"] for c in j["details"]["causes"]}
        two = pod("x")["spec"]["containers"] * 2
        self.assertEqual(causes(pod("Big_Name")), {"metadata.name"})
        self.assertEqual(causes(pod("x", spec={"containers": []})), {"spec.containers"})
        self.assertEqual(causes(pod("x", spec={"containers": two})), {"spec.containers[1].name"})
        self.assertEqual(causes(pod("x", spec={"restartPolicy": "Sometimes"})), {"spec.restartPolicy"})
        self.assertEqual(causes(pod("x", gpus="1500m")),
                         {"spec.containers[0].resources.%s[nvidia.com/gpu]" % k for k in ("limits", "requests")})
        p = pod("x")
        p["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": 1}}
        self.assertEqual(causes(p), {"spec.containers[0].resources.limits"})
        p = pod("x")
        p["spec"]["containers"][0]["resources"]["requests"] = {"nvidia.com/gpu": 2}
        self.assertEqual(causes(p), {"spec.containers[0].resources.requests"})
        p = pod("x")
        p["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
        self.assertEqual(causes(p), {"spec.containers[0].volumeMounts[0].name"})
        self.assertEqual(causes(pod("x", meta={"labels": {"a b": "c"}})), {"metadata.labels"})
        self.assertEqual(causes(pod("x", meta={"labels": {"a": "-c-"}})), {"metadata.labels"})
        self.assertEqual(causes(pod("x", meta={"annotations": {"k": "v" * 262144}})), {"metadata.annotations"})
        self.assertEqual(causes(pod("x", run="soon")), {"gpuq.test/run"})
        self.assertEqual(causes(pod("x", meta={"ownerReferences": [{"kind": "Pod"}]})),
                         {"metadata.ownerReferences." + k for k in ("apiVersion", "name", "uid")})

    def test_configmaps_and_services(self):
        cms, svcs = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/services"
        self.ok("POST", cms, {"metadata": {"name": "c"}, "data": {"run.sh": "echo"}, "immutable": True}, code=201)
        self.fails(422, "Invalid", "PATCH", cms + "/c", {"data": {"run.sh": "other"}},
                   Content_Type="application/merge-patch+json")
        self.fails(422, "Invalid", "POST", cms, {"metadata": {"name": "d"}, "data": {"a/b": ""}})
        self.fails(422, "Invalid", "POST", cms, {"metadata": {"name": "d"}, "data": {"a": "x" * 1048577}})
        self.ok("POST", svcs, {"metadata": {"name": "s"}, "spec": {"clusterIP": "None"}}, code=201)
        self.fails(422, "Invalid", "POST", svcs, {"metadata": {"name": "a.s"}, "spec": {"clusterIP": "None"}})
        self.fails(422, "Invalid", "POST", svcs, {"metadata": {"name": "t"}, "spec": {}})

    def test_too_large(self):
        self.fails(413, "RequestEntityTooLarge", "POST", self.PODS, "x" * 3145729)

    def test_priority_class_must_exist(self):
        j = self.fails(403, "Forbidden", "POST", self.PODS, pod("x", spec={"priorityClassName": "zz"}))
        self.assertIn("no PriorityClass with name zz was found", j["message"])
        self.ok("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "zz"}, "value": 7}, code=201)
        self.assertEqual(self.create(pod("x", spec={"priorityClassName": "zz"}))["spec"]["priority"], 7)

    def test_lease_wants_micro_times(self):
        url = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "renewTime": "2026-11-20T08:00:00Z"}}
        self.assertIn("cannot be handled as a Lease", self.fails(400, "BadRequest", "POST", url, lease)["message"])
        lease["spec"]["renewTime"] = "2026-11-20T08:00:00.000000Z"
        lease = self.ok("POST", url, lease, code=201)
        lease["spec"]["holderIdentity"] = "you"
        self.ok("PUT", url + "/l", lease)
        self.fails(409, "Conflict", "PUT", url + "/l", dict(lease, spec=dict(lease["spec"], holderIdentity="he")))

    def test_dry_run_stores_nothing(self):
        rv = self.rv()
        self.ok("POST", self.PODS + "?dryRun=All", pod("x"), code=201)
        self.assertIsNone(self.get("x"))
        self.assertEqual(self.rv(), rv)

    def test_generate_name(self):
        p = self.create(pod("", meta={"generateName": "g-", "name": ""}))
        self.assertRegex(p["metadata"]["name"], r"^g-[a-z0-9]{5}$")

    def test_put_and_optimistic_lock(self):
        p = self.create(pod("a", node=None))
        old = json.loads(json.dumps(p))
        p["metadata"]["labels"] = {"k": "v"}
        p = self.ok("PUT", self.PODS + "/a", p)
        self.assertEqual(p["metadata"]["labels"], {"k": "v"})
        self.fails(409, "Conflict", "PUT", self.PODS + "/a", old)
        rv = self.rv()
        self.ok("PUT", self.PODS + "/a", p)  # nothing changes: no new version
        self.assertEqual(self.rv(), rv)
        p["spec"]["nodeName"] = "node-0000"
        self.fails(422, "Invalid", "PUT", self.PODS + "/a", p)

    def test_patches(self):
        p = self.create(pod("a", node=None, meta={"finalizers": ["x.io/f"]}))
        url = self.PODS + "/a"
        mp, sp, jp = ("application/merge-patch+json", "application/strategic-merge-patch+json",
                      "application/json-patch+json")
        p = self.ok("PATCH", url, {"metadata": {"annotations": {"gpuq.io/x": "1"}}}, Content_Type=mp)
        self.assertEqual(p["metadata"]["annotations"], {"gpuq.io/x": "1"})
        self.fails(409, "Conflict", "PATCH", url, {"metadata": {"resourceVersion": "1"}}, Content_Type=mp)
        self.fails(422, "Invalid", "PATCH", url, {"metadata": {"uid": "other"}}, Content_Type=mp)
        self.fails(415, "UnsupportedMediaType", "PATCH", url, {})
        p = self.ok("PATCH", url + "/status", {"status": {"conditions": [{"type": "gpuq.io/P", "status": "True"}]}},
                    Content_Type=sp)
        self.assertEqual([c["type"] for c in p["status"]["conditions"]], ["gpuq.io/P"])
        p = self.ok("PATCH", url, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/f"]}}, Content_Type=sp)
        self.assertEqual(p["metadata"].get("finalizers", []), [])
        p = self.ok("PATCH", url, [{"op": "test", "path": "/metadata/annotations/gpuq.io~1x", "value": "1"},
                                   {"op": "remove", "path": "/metadata/annotations/gpuq.io~1x"}], Content_Type=jp)
        self.assertNotIn("annotations", p["metadata"])
        self.fails(422, "Invalid", "PATCH", url, [{"op": "test", "path": "/metadata/name", "value": "b"}],
                   Content_Type=jp)

    def test_nul_in_an_annotation_survives(self):
        self.create(pod("a", node=None, meta={"annotations": {"k": "a\0b"}}))
        self.call("PATCH", self.PODS + "/a", {"metadata": {"labels": {"x": "y"}}},
                  Content_Type="application/merge-patch+json")
        self.assertEqual(self.get("a")["metadata"]["annotations"]["k"], "a\0b")

    def test_namespace_delete(self):
        self.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}}, code=201)
        self.create(pod("a", hang=1), ns="team")
        self.create(pod("b", node=None), ns="team")
        self.ok("DELETE", "/api/v1/namespaces/team")
        j = self.call("POST", "/api/v1/namespaces/team/pods", pod("c"))
        self.assertIn(j.status, (403, 404))
        wait(lambda: self.call("GET", "/api/v1/namespaces/team").status == 404, "the namespace to go")
        self.assertEqual(self.ok("GET", "/api/v1/pods")["items"], [])
