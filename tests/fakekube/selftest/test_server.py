"""Scripts, the audit, restarts, and clients that abuse the server."""
import json
import os
import random
import socket
import subprocess
import tempfile

from selftest import fake
from selftest.fake import Case, PATIENCE_S, Server, pod, wait


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
            r = subprocess.run([fake.FAKEKUBE, flag, path], capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual(r.returncode, 1)
            self.assertIn(path + ":2: bad value in 'nth=x'", r.stderr)
        r = subprocess.run([fake.FAKEKUBE, "--check", self.srv.path("script")], timeout=PATIENCE_S)
        self.assertEqual(r.returncode, 0)

    def test_commands_that_cannot_be_done_say_so(self):
        for line in ("node-down nowhere", "delete-pod nobody", "label-pod nobody a=b", "foreign nowhere",
                     "devices nowhere=1"):
            self.assertIn("no such", self.fault(line)[0]["error"])

    def test_usage(self):
        for flags in (["--nodes", "x"], ["--unknown"], ["word"], ["--port", "70000"], ["--run", "long"]):
            r = subprocess.run([fake.FAKEKUBE] + flags, capture_output=True, timeout=PATIENCE_S)
            self.assertEqual(r.returncode, 2, flags)
        r = subprocess.run([fake.FAKEKUBE, "--help"], capture_output=True, text=True, timeout=PATIENCE_S)
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
            r = subprocess.run([fake.FAKEKUBE, "--state", path], capture_output=True, text=True, timeout=PATIENCE_S)
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
        rng = random.Random(5)
        seed = b"POST /api/v1/namespaces/default/pods?a=b HTTP/1.1\r\nContent-Length: 5\r\n\r\n{\"a\":1}"
        for _ in range(300):
            data = bytearray(seed)
            for _ in range(rng.randrange(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            self.raw(bytes(data), wait_reply=False)
        self.assertEqual(self.call("GET", "/readyz").status, 200)
