"""A fake apiserver under test, and a client that sees the bytes."""
import http.client
import json
import os
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse

FAKEKUBE = None  # the path of the program, set by selftest.py
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
