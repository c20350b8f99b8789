#!/usr/bin/env python3
"""Every rule and every fault of the fake apiserver, one test each.

usage: selftest.py PATH-TO-fakekube [unittest options]

Talks HTTP over plain sockets, so that half-open streams, slow bytes and lost
answers can be seen for what they are. Waits for states, never for times.
"""
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

FAKEKUBE = None
PATIENCE_S = 30


class Server:
    def __init__(self, *flags, script=None):
        self.dir = tempfile.TemporaryDirectory()
        self.flags = list(flags)
        if script is not None:
            with open(self.path("script"), "w") as f:
                f.write(script)
            self.flags += ["--script", self.path("script")]
        self.port = 0
        self.start()

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def start(self):
        if os.path.exists(self.path("port")):
            os.unlink(self.path("port"))
        self.proc = subprocess.Popen(
            [FAKEKUBE, "--port", str(self.port), "--port-file", self.path("port"),
             "--kubeconfig", self.path("kubeconfig"), "--audit", self.path("audit")] + self.flags,
            stderr=subprocess.PIPE, text=True)
        wait(lambda: os.path.exists(self.path("port")) or self.proc.poll() is not None, "the port file")
        if self.proc.poll() is not None:
            raise AssertionError("fakekube ended: " + self.proc.stderr.read())
        with open(self.path("port")) as f:
            self.port = int(f.read())

    def stop(self):
        if self.proc.stderr.closed:
            return self.proc.returncode, ""
        self.proc.terminate()
        _, err = self.proc.communicate(timeout=PATIENCE_S)
        return self.proc.returncode, err

    def close(self):
        code, err = self.stop()
        self.dir.cleanup()
        if code != 0 or "ERROR: " in err or "runtime error" in err:
            raise AssertionError("fakekube left with %s: %s" % (code, err))

    def audit_lines(self):
        with open(self.path("audit")) as f:
            return [json.loads(line) for line in f]


def wait(check, what):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        got = check()
        if got:
            return got
        time.sleep(0.005)
    raise AssertionError("waited in vain for " + what)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Watch:
    """A raw stream of events."""

    def __init__(self, port, path):
        self.sock = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.sock.sendall(("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path).encode())
        self.raw = b""
        self.events = []
        self.ended = None  # None, "clean", "cut", "reset"
        self.head = None
        self.at = 0

    def feed(self, timeout):
        self.sock.settimeout(timeout)
        try:
            data = self.sock.recv(1 << 20)
        except socket.timeout:
            return False
        except ConnectionResetError:
            self.ended = "reset"
            return False
        if not data:
            self.ended = self.ended or "cut"
            return False
        self.raw += data
        self.parse()
        return True

    def parse(self):
        if self.head is None:
            if b"\r\n\r\n" not in self.raw:
                return
            self.head, self.raw = self.raw.split(b"\r\n\r\n", 1)
            self.body = b""
        while self.ended is None and b"\r\n" in self.raw:
            size, rest = self.raw.split(b"\r\n", 1)
            n = int(size, 16)
            if len(rest) < n + 2:
                return
            self.raw = rest[n + 2:]
            if n == 0:
                self.ended = "clean"
            self.body += rest[:n]
        while b"\n" in self.body:
            line, self.body = self.body.split(b"\n", 1)
            self.events.append(line)

    def next(self):
        end = time.monotonic() + PATIENCE_S
        while self.at >= len(self.events):
            if self.ended or time.monotonic() > end:
                raise AssertionError("no event; ended: %s" % self.ended)
            self.feed(1)
        self.at += 1
        return json.loads(self.events[self.at - 1])

    def until_end(self):
        end = time.monotonic() + PATIENCE_S
        while not self.ended and time.monotonic() < end:
            self.feed(1)
        return self.ended

    def status(self):
        while self.head is None:
            if not self.feed(PATIENCE_S):
                raise AssertionError("no answer: %s" % self.ended)
        return int(self.head.split()[1])

    def close(self):
        self.sock.close()


def pod(name, node="node-0000", gpus=1, job=None, index="0", attempt="1", meta=None, spec=None, **play):
    p = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": {"gpuq.test/" + k.replace("_", "-"): str(v)
                                                   for k, v in play.items()}},
        "spec": {"restartPolicy": "Never",
                 "containers": [{"name": "main", "image": "busybox",
                                 "resources": {"limits": {"nvidia.com/gpu": gpus} if gpus else {}}}]},
    }
    if node:
        p["spec"]["nodeName"] = node
    if job is not None:
        p["metadata"]["labels"] = {"gpuq.io/job": str(job), "gpuq.io/array-index": "0",
                                   "gpuq.io/attempt": attempt, "gpuq.io/index": index}
    p["metadata"].update(meta or {})
    p["spec"].update(spec or {})
    return p


class Case(unittest.TestCase):
    flags = ("--nodes", "2", "--gpus", "4", "--seed", "7")
    script = None

    def setUp(self):
        self.watches = []
        self.srv = Server(*self.flags, script=self.script)

    def tearDown(self):
        for w in self.watches:
            w.close()
        self.srv.close()

    def call(self, method, path, body=None, timeout=PATIENCE_S, **headers):
        c = http.client.HTTPConnection("127.0.0.1", self.srv.port, timeout=timeout)
        try:
            h = {"Content-Type": "application/json"}
            h.update({k.replace("_", "-"): v for k, v in headers.items()})
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            c.request(method, path, body, h)
            r = c.getresponse()
            return Reply(r.status, r.headers, r.read())
        finally:
            c.close()

    def ok(self, method, path, body=None, code=(200, 201), **headers):
        r = self.call(method, path, body, **headers)
        self.assertIn(r.status, code if isinstance(code, tuple) else (code,), r.body[:2000])
        return r.json

    def fails(self, code, reason, method, path, body=None, **headers):
        r = self.call(method, path, body, **headers)
        self.assertEqual(r.status, code, r.body[:2000])
        j = r.json
        self.assertEqual(j["kind"], "Status")
        self.assertEqual(j["code"], code)
        self.assertEqual(j.get("reason", ""), reason)
        return j

    def watch(self, path="/api/v1/pods", **params):
        params.setdefault("watch", "1")
        w = Watch(self.srv.port, path + "?" + urllib.parse.urlencode(params))
        self.watches.append(w)
        return w

    PODS = "/api/v1/namespaces/default/pods"

    def create(self, p, ns="default"):
        return self.ok("POST", "/api/v1/namespaces/%s/pods" % ns, p, code=201)

    def get(self, name):
        r = self.call("GET", self.PODS + "/" + name)
        return r.json if r.status == 200 else None

    def phase(self, name, *phases):
        return wait(lambda: (lambda p: p if p and p["status"].get("phase") in phases else None)(self.get(name)),
                    "%s to be %s" % (name, "/".join(phases)))

    def gone(self, name):
        wait(lambda: self.get(name) is None, name + " to go")

    def audit(self, jobs=False):
        return self.ok("GET", "/fake/audit" + ("?jobs=1" if jobs else ""))

    def state(self):
        return self.ok("GET", "/fake/state")

    def rv(self):
        return self.state()["resourceVersion"]

    def fault(self, *lines):
        return self.ok("POST", "/fake/fault", "\n".join(lines) + "\n")


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
        self.assertEqual(causes(pod("x", gpus="1500m")), {"spec.containers[0].resources.limits[nvidia.com/gpu]"})
        p = pod("x")
        p["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": 1}}
        self.assertEqual(causes(p), {"spec.containers[0].resources.limits[nvidia.com/gpu]"})
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
                         {"metadata.ownerReferences[0]." + k for k in ("apiVersion", "name", "uid")})

    def test_configmaps_and_services(self):
        cms, svcs = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/services"
        self.ok("POST", cms, {"metadata": {"name": "c"}, "data": {"run.sh": "echo"}, "immutable": True}, code=201)
        self.fails(422, "Invalid", "PATCH", cms + "/c", {"data": {"run.sh": "other"}},
                   Content_Type="application/merge-patch+json")
        self.fails(422, "Invalid", "POST", cms, {"metadata": {"name": "d"}, "data": {"a/b": ""}})
        self.fails(422, "Invalid", "POST", cms, {"metadata": {"name": "d"}, "data": {"a": "x" * 1048577}})
        self.ok("POST", svcs, {"metadata": {"name": "s"}, "spec": {"clusterIP": "None"}}, code=201)
        self.fails(422, "Invalid", "POST", svcs, {"metadata": {"name": "1s"}, "spec": {"clusterIP": "None"}})
        self.fails(422, "Invalid", "POST", svcs, {"metadata": {"name": "t"}, "spec": {}})

    def test_too_large(self):
        self.fails(413, "RequestEntityTooLarge", "POST", self.PODS, "x" * 3145729)

    def test_priority_class_must_exist(self):
        j = self.fails(403, "Forbidden", "POST", self.PODS, pod("x", spec={"priorityClassName": "zz"}))
        self.assertIn("no PriorityClass with name zz was found", j["message"])
        self.ok("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "zz"}, "value": 7}, code=201)
        self.assertEqual(self.create(pod("x", spec={"priorityClassName": "zz"}))["spec"]["priority"], 7)

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
        self.assertEqual(p["metadata"]["annotations"], {})
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
        events = [w.next() for _ in range(3)]
        self.assertEqual([(e["type"], e["object"]["status"]["phase"]) for e in events],
                         [("MODIFIED", "Running"), ("MODIFIED", "Failed"), ("DELETED", "Failed")])
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


class Scripts(Case):
    script = "# a comment\n\non POST pods nth=1 status=500   # the first\nnode-add from-script gpus=1\n"

    def test_at_the_start(self):
        self.assertEqual(self.call("POST", self.PODS, pod("a")).status, 500)
        self.assertEqual(self.call("POST", self.PODS, pod("a")).status, 201)
        self.ok("GET", "/api/v1/nodes/from-script")

    def test_bad_lines_are_refused(self):
        bad = {
            "frobnicate": "unknown command 'frobnicate'",
            "on": "expected GET",
            "on FETCH pods status=500": "found FETCH",
            "on POST pods": "does nothing",
            "on POST pods status=500 html": "a rule does one thing",
            "on POST pods status=abc": "bad value in 'status=abc'",
            "on POST pods status=200": "bad value",
            "on POST pods nth=0 status=500": "bad value in 'nth=0'",
            "on POST pods slow-bytes=1": "bad value",
            "on POST pods colour=red": "unknown word 'colour=red'",
            "on POST pods half-open": "are for WATCH",
            "on WATCH pods truncate=5": "a stream has no end",
            "on GET pods gone": "gone is for LIST and WATCH",
            "on POST pods delay=5parsecs": "bad value",
            'on POST pods status=500 message="x': "not closed",
            "at soon clear": "expected a time",
            "when cows=3 clear": "unknown counter 'cows'",
            "when creates clear": "COUNTER=NUMBER",
            "devices node-0000": "NODE=NUMBER",
            "node-down": "argument is missing",
            "node-down a b": "unknown word 'b'",
            "poison cow": "expected pod",
            "poison pod kind=arsenic": "kind is one of",
            "rewind to=x": "bad value",
            "down later": "expected a time",
            "at 1s": "unknown command ''",
        }
        self.fault("clear")
        for line, text in bad.items():
            j = self.fails(400, "BadRequest", "POST", "/fake/fault", "node-add half\n%s\n" % line)
            self.assertTrue(j["message"].startswith("line:2: "), (line, j["message"]))
            self.assertIn(text, j["message"])
        self.assertEqual(self.call("GET", "/api/v1/nodes/half").status, 404)  # nothing was done
        self.assertEqual(self.state()["faults"], [])

    def test_check_and_start_refuse_by_file_and_line(self):
        path = self.srv.path("bad")
        with open(path, "w") as f:
            f.write("clear\non POST pods nth=x status=500\n")
        for flag in ("--check", "--script"):
            r = subprocess.run([FAKEKUBE, flag, path], capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual(r.returncode, 1)
            self.assertIn(path + ":2: bad value in 'nth=x'", r.stderr)
        r = subprocess.run([FAKEKUBE, "--check", self.srv.path("script")], timeout=PATIENCE_S)
        self.assertEqual(r.returncode, 0)

    def test_commands_that_cannot_be_done_say_so(self):
        for line in ("node-down nowhere", "delete-pod nobody", "label-pod nobody a=b", "foreign nowhere",
                     "devices nowhere=1"):
            self.assertIn("no such", self.fault(line)[0]["error"])

    def test_usage(self):
        for flags in (["--nodes", "x"], ["--unknown"], ["word"], ["--port", "70000"], ["--run", "long"]):
            r = subprocess.run([FAKEKUBE] + flags, capture_output=True, timeout=PATIENCE_S)
            self.assertEqual(r.returncode, 2, flags)
        r = subprocess.run([FAKEKUBE, "--help"], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(r.returncode, 0)
        self.assertIn("drop-after-commit", r.stdout)
        self.assertEqual(self.call("GET", "/fake/help").body.decode(), r.stdout[r.stdout.index("A script is lines"):])


class Audit(Case):
    def test_counts_and_lines(self):
        self.create(pod("a", run="10ms", job=1, meta={"annotations": {"gpuq.io/token": "t", "gpuq.test/run": "10ms"}}))
        self.phase("a", "Succeeded")
        self.call("DELETE", self.PODS + "/a")
        a = self.audit(jobs=True)
        self.assertEqual({k: a[k] for k in ("creates", "deletes", "starts", "ends", "succeeded", "failed", "duplicates",
                                            "running", "live", "max_running")},
                         {"creates": 1, "deletes": 1, "starts": 1, "ends": 1, "succeeded": 1, "failed": 0,
                          "duplicates": 0, "running": 0, "live": 0, "max_running": 1})
        self.assertEqual(a["by_verb"], {"create pods": 1, "delete pods": 1})
        self.assertEqual([(j["job"], j["creates"], j["succeeded"], j["max_running"]) for j in a["jobs"]],
                         [("/1/0", 1, 1, 1)])
        lines = self.srv.audit_lines()
        self.assertEqual([x["verb"] for x in lines], ["create", "stop", "end", "delete"])
        first = lines[0]
        self.assertEqual((first["node"], first["gpus"], first["annotations"], first["labels"]["gpuq.io/job"]),
                         ("node-0000", 1, {"gpuq.io/token": "t"}, "1"))

    def test_duplicate_of_a_live_slot(self):
        self.create(pod("a", hang=1, job=1, attempt="1"))
        self.create(pod("other", hang=1, job=1, attempt="1", index="1"))
        self.phase("a", "Running")
        self.assertEqual(self.audit()["duplicates"], 0)
        self.create(pod("b", hang=1, job=1, attempt="2"))
        self.phase("b", "Running")
        a = self.audit(jobs=True)
        self.assertEqual((a["duplicates"], a["attempt_overlaps"]), (1, 1))
        self.assertEqual(a["jobs"][0]["max_attempts_running"], 2)
        self.assertIn("duplicate", [x["verb"] for x in self.srv.audit_lines()])

    def test_no_duplicate_after_the_end(self):
        self.create(pod("a", run="1ms", job=1))
        self.phase("a", "Succeeded")
        self.create(pod("b", run="1ms", job=1, attempt="2"))
        self.phase("b", "Succeeded")
        a = self.audit()
        self.assertEqual((a["duplicates"], a["double_successes"]), (0, 1))

    def test_forced_delete_and_new_pod_is_a_duplicate(self):
        self.create(pod("a", hang=1, job=1, slow_exit="1h"))
        self.phase("a", "Running")
        self.call("DELETE", self.PODS + "/a", {"gracePeriodSeconds": 0})
        self.create(pod("b", hang=1, job=1, attempt="2"))
        self.assertEqual(self.audit()["duplicates"], 1)


class Restart(Case):
    def setUp(self):
        self.watches = []
        self.dir = tempfile.TemporaryDirectory()
        self.srv = Server(*self.flags, "--state", os.path.join(self.dir.name, "state"))

    def tearDown(self):
        super().tearDown()
        self.dir.cleanup()

    def test_state_survives(self):
        self.create(pod("runs", run="1s", job=1))
        self.create(pod("hangs", gpus=3, hang=1, job=2))
        self.create(pod("unbound", node=None))
        self.phase("runs", "Running")
        self.phase("hangs", "Running")
        self.fault("poison pod name=bad", "node-down node-0001")
        rv, uid = self.rv(), self.ok("GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"]
        items = self.call("GET", "/api/v1/pods").body
        port = self.srv.port
        self.assertEqual(self.srv.stop()[0], 0)
        self.srv.start()
        self.assertEqual(self.srv.port, port)
        self.assertEqual(self.ok("GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"], uid)
        self.assertEqual(self.watch(resourceVersion=rv - 1).next()["type"], "ERROR")
        self.assertIn(b'"name":"bad"', items)
        self.assertIn(b"\\u0000", self.call("GET", self.PODS + "/bad").body)
        self.phase("runs", "Succeeded")
        self.create(pod("more", gpus=2, job=2, attempt="2"))
        self.assertEqual(self.phase("more", "Failed")["status"]["reason"], "UnexpectedAdmissionError")
        a = self.audit(jobs=True)
        self.assertEqual((a["creates"], a["duplicates"], a["running"]), (4, 1, 1))
        self.create(pod("lost", node="node-0001"))
        self.assertEqual(self.call("GET", self.PODS + "/lost/log").status, 500)

    def test_not_ours(self):
        self.srv.stop()
        for text in ("", "{}\n", "nonsense\n", '{"fakekube":1,"resourceVersion":5}\n{"kind":"Cow"}\n'):
            path = self.srv.path("other")
            with open(path, "w") as f:
                f.write(text)
            r = subprocess.run([FAKEKUBE, "--state", path], capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual(r.returncode, 1, text)
            self.assertIn(path, r.stderr)


class Abuse(Case):
    def raw(self, data, wait_reply=True):
        c = socket.create_connection(("127.0.0.1", self.srv.port))
        c.settimeout(PATIENCE_S)
        got = b""
        try:
            c.sendall(data)
            while wait_reply:
                part = c.recv(65536)
                if not part:
                    break
                got += part
        except OSError:
            pass
        c.close()
        return got

    def test_malformed(self):
        for data in (b"nonsense\r\n\r\n", b"GET\r\n\r\n", b"GET x HTTP/1.1\r\n\r\n", b"GET / HTTP/3\r\n\r\n",
                     b"GET /%zz HTTP/1.1\r\n\r\n", b"GET /%00 HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
                     b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"G\0T / HTTP/1.1\r\n\r\n",
                     b"GET /?" + b"&".join(b"a=%d" % i for i in range(65)) + b" HTTP/1.1\r\n\r\n",
                     b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                     b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 300):
            self.assertTrue(self.raw(data).startswith(b"HTTP/1.1 400"), data[:60])
        self.assertEqual(self.call("GET", "/readyz").status, 200)

    def test_limits(self):
        self.assertTrue(self.raw(b"GET / HTTP/1.1\r\nX: " + b"x" * 70000 + b"\r\n\r\n").startswith(b"HTTP/1.1 431"))
        self.assertTrue(self.raw(b"POST / HTTP/1.1\r\nContent-Length: 3145729\r\n\r\n").startswith(b"HTTP/1.1 413"))
        self.assertTrue(self.raw(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4000000\r\n")
                        .startswith(b"HTTP/1.1 413"))

    def test_chunked_and_pipelined_and_torn(self):
        body = json.dumps(pod("a", node=None)).encode()
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 50]), body[i:i + 50]) for i in range(0, len(body), 50))
        data = (b"POST %s HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n"
                b"GET /readyz HTTP/1.1\r\nConnection: close\r\n\r\n" % (self.PODS.encode(), chunks))
        c = socket.create_connection(("127.0.0.1", self.srv.port))
        c.settimeout(PATIENCE_S)
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(0, len(data), 7):
            c.sendall(data[i:i + 7])
        got = b""
        while True:
            part = c.recv(65536)
            if not part:
                break
            got += part
        c.close()
        self.assertTrue(got.startswith(b"HTTP/1.1 201"))
        self.assertTrue(got.endswith(b"ok"))

    def test_expect_continue(self):
        body = json.dumps(pod("a", node=None)).encode()
        c = socket.create_connection(("127.0.0.1", self.srv.port))
        c.settimeout(PATIENCE_S)
        c.sendall(b"POST %s HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
                  % (self.PODS.encode(), len(body)))
        self.assertTrue(c.recv(4096).startswith(b"HTTP/1.1 100"))
        c.sendall(body)
        self.assertTrue(c.recv(4096).startswith(b"HTTP/1.1 201"))
        c.close()

    def test_clients_that_leave_early(self):
        body = json.dumps(pod("a", node=None)).encode()
        head = b"POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (self.PODS.encode(), len(body))
        for cut in (3, len(head), len(head) + 10):
            self.raw((head + body)[:cut], wait_reply=False)
        for _ in range(20):
            w = self.watch()
            w.close()
        wait(lambda: self.state()["watches"] == 0, "the watches to go")
        self.assertEqual(self.audit()["creates"], 0)

    def test_random_bytes(self):
        import random
        rng = random.Random(5)
        seed = b"POST /api/v1/namespaces/default/pods?a=b HTTP/1.1\r\nContent-Length: 5\r\n\r\n{\"a\":1}"
        for _ in range(300):
            data = bytearray(seed)
            for _ in range(rng.randrange(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            self.raw(bytes(data), wait_reply=False)
        self.assertEqual(self.call("GET", "/readyz").status, 200)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(__doc__)
    FAKEKUBE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
