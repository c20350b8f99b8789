"""What goes wrong when it is told to."""
import http.client
import json
import socket

from selftest.fake import Case, PATIENCE_S, pod, wait


class Faults(Case):
    def post(self, name):
        return self.call("POST", self.PODS, pod(name, node=None))

    def lost(self, name):
        with self.assertRaises((http.client.RemoteDisconnected, ConnectionResetError, http.client.IncompleteRead)):
            self.post(name)

    def test_status_nth(self):
        self.fault("on POST pods nth=2 status=500")
        self.assertEqual([self.post(n).status for n in "abc"], [201, 500, 201])
        self.assertIsNone(self.get("b"))

    def test_status_texts(self):
        for code, reason in ((503, "ServiceUnavailable"), (504, "Timeout"), (403, "Forbidden"), (409, "Conflict")):
            self.fault("clear", "on POST pods status=%d" % code)
            self.assertEqual(self.post("a").json["reason"], reason)
        self.fault("clear", 'on POST pods status=500 message="etcdserver: request is too large" reason=Odd')
        j = self.post("a").json
        self.assertEqual((j["message"], j["reason"]), ("etcdserver: request is too large", "Odd"))

    def test_429_is_plain_text_with_retry_after(self):
        self.fault("on POST pods status=429 retry-after=1 count=2")
        r = self.post("a")
        self.assertEqual((r.status, r.headers["Retry-After"]), (429, "1"))
        self.assertTrue(r.headers["Content-Type"].startswith("text/plain"))
        self.assertEqual([self.post(n).status for n in "bc"], [429, 201])

    def test_every_from_and_prob(self):
        self.fault("on POST pods every=3 status=500")
        self.assertEqual([self.post("a%d" % i).status for i in range(6)], [201, 201, 500] * 2)
        self.fault("clear", "on POST pods from=3 status=500")
        self.assertEqual([self.post("b%d" % i).status for i in range(4)], [201, 201, 500, 500])
        self.fault("clear", "on POST pods prob=0.5 status=500")
        got = {self.post("c%d" % i).status for i in range(64)}
        self.assertEqual(got, {201, 500})

    def test_by_name_namespace_and_subresource(self):
        self.fault("on GET pods name=x* status=500", "on POST pods ns=kube-* status=503",
                   "on POST pods/binding status=504")
        self.post("xa")
        self.post("ya")
        self.assertEqual(self.call("GET", self.PODS + "/xa").status, 500)
        self.assertEqual(self.call("GET", self.PODS + "/ya").status, 200)
        self.assertEqual(self.call("POST", "/api/v1/namespaces/kube-system/pods", pod("z")).status, 503)
        self.assertEqual(self.call("POST", self.PODS + "/ya/binding", {}).status, 504)

    def test_lost_answer(self):
        self.fault("on POST pods every=2 drop-after-commit")
        self.assertEqual(self.post("a").status, 201)
        self.lost("b")
        self.assertIsNotNone(self.get("b"))
        self.assertEqual(self.audit()["creates"], 2)

    def test_lost_request(self):
        self.fault("on POST pods drop-before-commit reset count=1")
        self.lost("a")
        self.assertIsNone(self.get("a"))
        self.assertEqual(self.post("a").status, 201)

    def test_hang(self):
        self.fault("on POST pods nth=1 hang", "on POST pods nth=2 hang-after-commit")
        for name, there in (("a", False), ("b", True)):
            with self.assertRaises(socket.timeout):
                self.call("POST", self.PODS, pod(name, node=None), timeout=0.3)
            self.assertEqual(self.get(name) is not None, there)

    def test_delayed_request_lands_after_its_client_left(self):
        self.fault("on POST pods delay=400ms")
        with self.assertRaises(socket.timeout):
            self.call("POST", self.PODS, pod("a", node=None), timeout=0.1)
        self.assertIsNone(self.get("a"))
        wait(lambda: self.get("a"), "the late landing")

    def test_delay_after(self):
        self.fault("on POST pods delay-after=300ms")
        c = socket.create_connection(("127.0.0.1", self.srv.port))
        body = json.dumps(pod("a", node=None))
        c.sendall(("POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (self.PODS, len(body), body)).encode())
        wait(lambda: self.get("a"), "the commit")
        c.settimeout(PATIENCE_S)
        self.assertTrue(c.recv(4096).startswith(b"HTTP/1.1 201"))
        c.close()

    def test_slow_bytes(self):
        self.fault("on GET pods slow-bytes=100/5ms")
        self.post("a")
        c = socket.create_connection(("127.0.0.1", self.srv.port))
        c.settimeout(PATIENCE_S)
        c.sendall(("GET %s/a HTTP/1.1\r\n\r\nGET /readyz HTTP/1.1\r\n\r\n" % self.PODS).encode())
        first = c.recv(65536)
        self.assertLessEqual(len(first), 1000)
        got = first
        while b"\r\n\r\nok" not in got:
            part = c.recv(65536)
            self.assertTrue(part)
            got += part
        self.assertIn(b'"name":"a"', got)
        c.close()

    def test_truncate(self):
        self.fault("on LIST nodes truncate=100")
        with self.assertRaises(http.client.IncompleteRead) as e:
            self.call("GET", "/api/v1/nodes")
        self.assertEqual(len(e.exception.partial), 100)

    def test_html_and_garbage(self):
        self.fault("on LIST nodes nth=1 html", "on LIST nodes nth=2 garbage")
        r = self.call("GET", "/api/v1/nodes")
        self.assertEqual((r.status, r.headers["Content-Type"]), (502, "text/html"))
        r = self.call("GET", "/api/v1/nodes")
        self.assertEqual(r.status, 200)
        with self.assertRaises(ValueError):
            json.loads(r.body)

    def test_list_gone(self):
        self.fault("on LIST pods nth=2 gone")
        self.ok("GET", self.PODS)
        self.fails(410, "Expired", "GET", self.PODS)

    def test_probes_can_fail(self):
        self.fault("on ANY status=503")
        self.assertEqual(self.call("GET", "/readyz").status, 503)
        self.assertEqual(self.call("GET", "/fake/state").status, 200)

    def test_rules_are_shown_with_their_counts(self):
        self.fault("on POST pods nth=2 status=500")
        for n in "abc":
            self.post(n)
        self.assertEqual(self.state()["faults"], [{"rule": "on POST pods nth=2 status=500", "seen": 3, "hits": 1}])


class StreamFaults(Case):
    def some(self, n, start=0):
        for i in range(start, start + n):
            self.create(pod("p%d" % i, node=None))

    def test_half_open(self):
        self.fault("on WATCH pods half-open after=2")
        w = self.watch(resourceVersion=self.rv())
        w.status()
        self.some(5)
        w.next()
        w.next()
        while w.feed(0.3):
            pass
        self.assertEqual((len(w.events), w.ended), (2, None))
        self.assertEqual(self.state()["watches"], 1)
        w.close()
        wait(lambda: self.state()["watches"] == 0, "the server to notice")

    def test_half_open_by_time(self):
        self.fault("on WATCH pods half-open after=50ms")
        w = self.watch(resourceVersion=self.rv())
        w.status()
        other = self.watch("/api/v1/nodes", resourceVersion=self.rv(), timeoutSeconds=1)
        other.until_end()
        self.some(1)
        self.assertFalse(w.feed(0.3))
        self.assertIsNone(w.ended)

    def test_close_and_reset(self):
        self.fault("on WATCH pods nth=1 close after=2", "on WATCH pods nth=2 close reset after=1")
        rv = self.rv()
        w = self.watch(resourceVersion=rv)
        w.status()
        self.some(3)
        self.assertEqual(w.until_end(), "cut")
        self.assertEqual(len(w.events), 2)
        w = self.watch(resourceVersion=rv)
        self.assertEqual(w.until_end(), "reset")
        self.assertEqual(self.watch(resourceVersion=rv).next()["type"], "ADDED")

    def test_gone(self):
        self.fault("on WATCH pods count=1 gone", "on WATCH pods nth=2 status=410", "on WATCH pods nth=3 gone after=1")
        w = self.watch(resourceVersion=self.rv())
        self.assertEqual(w.status(), 200)
        self.assertEqual(w.next()["object"]["code"], 410)
        self.assertEqual(w.until_end(), "clean")
        self.assertEqual(self.watch(resourceVersion=self.rv()).status(), 410)
        w = self.watch(resourceVersion=self.rv())
        w.status()
        self.some(1)
        self.assertEqual([w.next()["type"], w.next()["type"]], ["ADDED", "ERROR"])

    def test_garbage(self):
        self.fault("on WATCH pods garbage after=1")
        w = self.watch(resourceVersion=self.rv())
        w.status()
        self.some(2)
        self.assertEqual(w.next()["type"], "ADDED")
        with self.assertRaises(ValueError):
            w.next()
        self.assertEqual(w.next()["type"], "ADDED")

    def test_no_bookmarks(self):
        self.fault("on WATCH pods no-bookmarks")
        w = self.watch(resourceVersion=self.rv(), allowWatchBookmarks="true", timeoutSeconds=1)
        self.assertEqual(w.until_end(), "clean")
        self.assertEqual(w.events, [])

    def test_close_watches_and_resume(self):
        rv = self.rv()
        w = self.watch(resourceVersion=rv)
        w.status()
        self.some(1)
        w.next()
        self.fault("close-watches")
        self.assertEqual(w.until_end(), "cut")
        self.assertEqual(self.watch(resourceVersion=rv).next()["type"], "ADDED")

    def test_slow_stream(self):
        self.fault("on WATCH pods slow-bytes=64/1ms")
        w = self.watch(resourceVersion=self.rv())
        self.some(2)
        self.assertEqual([w.next()["type"], w.next()["type"]], ["ADDED", "ADDED"])


class Outages(Case):
    def test_down(self):
        w = self.watch(resourceVersion=self.rv())
        w.status()
        self.fault("down 300ms")
        self.assertIn(w.until_end(), ("cut", "reset"))
        with self.assertRaises(ConnectionRefusedError):
            self.call("GET", "/readyz")

        def back():
            try:
                return self.call("GET", "/readyz").status == 200
            except OSError:
                return False
        wait(back, "the server to be back")

    def test_blackhole(self):
        self.fault("blackhole 300ms")
        self.assertEqual(self.call("GET", "/readyz").status, 200)  # hung until it was over

    def test_at_and_when(self):
        self.fault("at 100ms node-add later", "when creates=2 node-add second", "when creates=9 node-add never")
        self.assertEqual(len(self.state()["waiting"]), 3)
        wait(lambda: self.call("GET", "/api/v1/nodes/later").status == 200, "later")
        self.create(pod("a"))
        self.assertEqual(self.call("GET", "/api/v1/nodes/second").status, 404)
        self.create(pod("b"))
        wait(lambda: self.call("GET", "/api/v1/nodes/second").status == 200, "second")
        self.assertEqual(self.state()["waiting"], ["when creates=9 node-add never"])
        self.fault("at 50ms on POST pods status=500")
        wait(lambda: self.state()["faults"], "the rule to come")


class Rewind(Case):
    def test_state_and_counter_go_back(self):
        self.create(pod("old", node=None))
        rv = self.rv()
        self.create(pod("new", node=None))
        self.call("DELETE", self.PODS + "/old")
        self.fault("label-pod new a=b")
        w = self.watch(resourceVersion=self.rv())
        w.status()
        token = self.ok("GET", "/api/v1/nodes?limit=1")["metadata"]["continue"]
        self.fault("rewind to=%d" % rv)
        self.assertEqual(w.until_end(), "cut")
        self.assertEqual(self.rv(), rv)
        self.assertEqual([p["metadata"]["name"] for p in self.ok("GET", self.PODS)["items"]], ["old"])
        self.assertEqual(self.watch(resourceVersion=rv - 1).next()["type"], "ERROR")
        self.fails(410, "Expired", "GET", "/api/v1/nodes?limit=1&continue=" + token)
        self.create(pod("again", node=None))
        self.assertEqual(self.watch(resourceVersion=rv).next()["object"]["metadata"]["name"], "again")

    def test_forgotten_pod_is_stopped(self):
        rv = self.rv()
        self.create(pod("a", gpus=4, hang=1))
        self.phase("a", "Running")
        self.fault("rewind to=%d" % rv)
        wait(lambda: self.audit()["running"] == 0, "the kubelet to stop it")
        self.create(pod("b", gpus=4, hang=1))
        self.phase("b", "Running")

    def test_forgotten_end_is_reported_again(self):
        self.create(pod("a", run="100ms"))
        running = int(self.phase("a", "Running")["metadata"]["resourceVersion"])
        self.phase("a", "Succeeded")
        self.fault("rewind to=%d" % running)
        self.phase("a", "Succeeded")
        self.assertEqual(self.audit()["starts"], 1)

    def test_forgotten_start_is_reported_again(self):
        rv = int(self.create(pod("a", hang=1))["metadata"]["resourceVersion"])
        self.phase("a", "Running")
        self.fault("rewind to=%d" % rv)
        self.phase("a", "Running")
        self.assertEqual(self.audit()["starts"], 1)

    def test_reborn_pod_runs_again(self):
        self.create(pod("a", run="50ms", job=5))
        running = int(self.phase("a", "Running")["metadata"]["resourceVersion"])
        self.phase("a", "Succeeded")
        self.call("DELETE", self.PODS + "/a")
        wait(lambda: self.audit()["live"] == 0, "the pod to be forgotten")
        self.fault("rewind to=%d" % running)
        self.phase("a", "Succeeded")
        a = self.audit()
        self.assertEqual((a["starts"], a["double_successes"]), (2, 1))

    def test_forgotten_binding(self):
        rv = int(self.create(pod("a", node=None, hang=1, gpus=4, slow_exit="200ms"))["metadata"]["resourceVersion"])

        def bind(node):
            self.ok("POST", self.PODS + "/a/binding", {"target": {"kind": "Node", "name": node}}, code=201)
        bind("node-0000")
        self.phase("a", "Running")
        self.fault("rewind to=%d" % rv)
        self.assertNotIn("nodeName", self.get("a")["spec"])
        bind("node-0001")  # while the first node still stops it
        self.phase("a", "Running")
        self.assertEqual(self.audit()["starts"], 2)
        self.create(pod("b", gpus=4, hang=1))
        self.phase("b", "Running")

    def test_too_far(self):
        r = self.fault("rewind to=999999")
        self.assertIn("error", r[0])
        self.assertIn("error", self.fault("rewind")[0])


class Poison(Case):
    def test_each_kind(self):
        rv = self.rv()
        kinds = ("nul", "hugeint", "big", "deep", "badutf8", "types")
        for k in kinds:
            self.fault("poison pod kind=%s name=%s" % (k, k))
        body = self.call("GET", self.PODS).body
        for mark in (b"\\u0000", b"123456789012345678901234567890", b"[[[[[[", b"\xff\xfe", b'"spec":["not an object"]'):
            self.assertIn(mark, body)
        self.assertGreater(len(body), 3 << 20)
        w = self.watch(resourceVersion=rv)
        w.status()
        while len(w.events) < len(kinds):
            self.assertTrue(w.feed(PATIENCE_S))
        self.fails(500, "InternalError", "PATCH", self.PODS + "/nul", {}, Content_Type="application/merge-patch+json")
        for k in kinds:
            self.assertEqual(self.call("DELETE", self.PODS + "/" + k).status, 200)
        self.assertEqual(self.ok("GET", self.PODS)["items"], [])

    def test_on_a_node(self):
        self.fault("poison pod name=x node=node-0000")
        self.assertEqual(len(self.ok("GET", self.PODS + "?fieldSelector=spec.nodeName%3Dnode-0000")["items"]), 1)
