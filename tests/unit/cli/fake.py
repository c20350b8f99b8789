"""A server of gpuq-rpc/1 that answers as a test tells it, and a way to run gpuq.

Only the standard library is used: the MessagePack below is as much of it as the
client speaks. Every server and process is stopped by the test that started it.
"""
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

GPUQ = os.environ.get("GPUQ", os.path.abspath("gpuq/gpuq"))


# ---- MessagePack ----

def pack(v):
    if v is None:
        return b"\xc0"
    if v is True or v is False:
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, int):
        if 0 <= v < 128:
            return struct.pack("B", v)
        if v >= 0:
            return b"\xcf" + struct.pack(">Q", v)
        return b"\xd3" + struct.pack(">q", v)
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, str):
        b = v.encode("utf-8", "surrogateescape")
        return b"\xdb" + struct.pack(">I", len(b)) + b
    if isinstance(v, (bytes, bytearray)):
        return b"\xc6" + struct.pack(">I", len(v)) + bytes(v)
    if isinstance(v, (list, tuple)):
        return b"\xdd" + struct.pack(">I", len(v)) + b"".join(map(pack, v))
    if isinstance(v, dict):
        return b"\xdf" + struct.pack(">I", len(v)) + b"".join(
            pack(k) + pack(x) for k, x in v.items())
    raise TypeError(type(v))


class Reader:
    """Values from a socket, one after another."""

    SIZES = {0xcc: ">B", 0xcd: ">H", 0xce: ">I", 0xcf: ">Q",
             0xd0: ">b", 0xd1: ">h", 0xd2: ">i", 0xd3: ">q",
             0xca: ">f", 0xcb: ">d"}
    LENGTHS = {0xd9: (">B", "str"), 0xda: (">H", "str"), 0xdb: (">I", "str"),
               0xc4: (">B", "bin"), 0xc5: (">H", "bin"), 0xc6: (">I", "bin"),
               0xdc: (">H", "list"), 0xdd: (">I", "list"),
               0xde: (">H", "map"), 0xdf: (">I", "map")}

    def __init__(self, sock):
        self.f = sock.makefile("rb")

    def take(self, n):
        b = self.f.read(n)
        if len(b) < n:
            raise EOFError
        return b

    def body(self, kind, n):
        if kind == "str":
            return self.take(n).decode("utf-8", "surrogateescape")
        if kind == "bin":
            return self.take(n)
        if kind == "list":
            return [self.value() for _ in range(n)]
        return {self.value(): self.value() for _ in range(n)}

    def value(self):
        c = self.take(1)[0]
        if c < 0x80:
            return c
        if c >= 0xe0:
            return c - 256
        if c < 0x90:
            return self.body("map", c & 15)
        if c < 0xa0:
            return self.body("list", c & 15)
        if c < 0xc0:
            return self.body("str", c & 31)
        if c in (0xc0, 0xc2, 0xc3):
            return {0xc0: None, 0xc2: False, 0xc3: True}[c]
        if c in self.SIZES:
            fmt = self.SIZES[c]
            return struct.unpack(fmt, self.take(struct.calcsize(fmt)))[0]
        fmt, kind = self.LENGTHS[c]
        return self.body(kind, struct.unpack(fmt, self.take(struct.calcsize(fmt)))[0])


# ---- the server ----

class Refused(Exception):
    """An error of the server: code and name as in libgpuq/err.def."""

    def __init__(self, code, name, msg):
        super().__init__(msg)
        self.error = {"code": code, "name": name, "msg": msg}


class Gone(Exception):
    """Raised by a handler: the connection breaks."""


class Call:
    def __init__(self, conn, msgid, method, params):
        self.conn, self.msgid, self.method = conn, msgid, method
        self.meta = params.pop("$", {}) if params else {}
        self.params = params or {}
        self.key = self.meta.get("k")
        self.seq = 0
        self.cancelled = threading.Event()

    def item(self, value):
        self.seq += 1
        self.conn.send([2, "$/item", [self.msgid, self.seq, value]])

    def until_cancelled(self):
        """Keep the stream open until the client has enough."""
        self.cancelled.wait(60)
        raise Refused(11, "cancelled", "cancelled")


class Connection(threading.Thread):
    def __init__(self, server, sock):
        super().__init__(daemon=True)
        self.server, self.sock = server, sock
        self.lock = threading.Lock()
        self.calls = {}

    def send(self, message):
        try:
            with self.lock:
                self.sock.sendall(pack(message))
        except OSError:
            pass

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        for c in list(self.calls.values()):
            c.cancelled.set()

    def answer(self, call):
        try:
            result = self.server.handle(call)
            self.send([1, call.msgid, None, result])
        except Refused as e:
            self.send([1, call.msgid, e.error, None])
        except Gone:
            self.close()

    def run(self):
        reader = Reader(self.sock)
        try:
            while True:
                m = reader.value()
                if m[0] == 0:
                    call = Call(self, m[1], m[2], m[3][0] if m[3] else {})
                    self.calls[call.msgid] = call
                    threading.Thread(target=self.answer, args=(call,), daemon=True).start()
                elif m[0] == 2 and m[1] == "$/cancel" and m[2][0] in self.calls:
                    self.calls[m[2][0]].cancelled.set()
        except (EOFError, OSError, ValueError, KeyError):
            self.close()


class Fake:
    """handlers: method -> function(call) that returns the reply or raises."""

    def __init__(self, path, kind="local", **handlers):
        self.path, self.kind = path, kind
        self.handlers = {k.replace("_", ".", 1): v for k, v in handlers.items()}
        self.seen = []
        self.connections = []
        self.listener = None
        self.start()

    def start(self):
        self.listener = socket.socket(socket.AF_UNIX)
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.listener.bind(self.path)
        self.listener.listen(16)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener):
        try:
            while True:
                sock, _ = listener.accept()
                conn = Connection(self, sock)
                self.connections.append(conn)
                conn.start()
        except OSError:
            pass

    def handle(self, call):
        if call.method == "hello":
            return {"version": "9.8.7", "proto": [1, 0], "server": "fake", "user": "ann",
                    "role": "user", "cluster": {"kind": self.kind}, "limits": {}}
        self.seen.append(call)
        if call.method not in self.handlers:
            raise Refused(10, "no_such_method", "no method " + call.method)
        return self.handlers[call.method](call)

    def of(self, method):
        return [c for c in self.seen if c.method == method]

    def stop(self):
        if self.listener:
            try:
                self.listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            self.listener.close()
            self.listener = None
        for c in self.connections:
            c.close()
        self.connections = []


def job(id=17, state="RUNNING", **more):
    """A job object as the server sends it."""
    ended = state not in ("PENDING", "PROVISIONING", "STARTING", "RUNNING", "COMPLETING")
    j = {"id": id, "array_index": None, "array": None, "name": "train", "user": "ann",
         "queue": "default", "account": None, "state": state, "reason": None, "reasons": [],
         "submit_time": 1700000000000000, "start_time": None, "end_time": None,
         "eligible_time": 1700000000000000, "time_limit_s": None, "exit_code": None,
         "attempt": 0, "priority": 100, "flavor": "a100", "pod_count": 1, "gpus": 1,
         "pods": [], "gpu_seconds": 0, "evictions": []}
    if state == "PENDING":
        j["reason"] = "Resources"
    elif state != "CANCELLED":
        j["start_time"] = 1700000060000000
        j["pods"] = [{"name": "gpuq-x-17-0-0", "index": 0, "group": "main", "node": "n1",
                      "devices": [], "state": "ended" if ended else "running"}]
    if ended:
        j["end_time"] = 1700000120000000
        if state == "COMPLETED":
            j["exit_code"] = 0
    j.update(more)
    return j


class Case(unittest.TestCase):
    """A test with a directory of its own that is removed, and servers that are stopped."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="gpuq-cli.")
        self.addCleanup(shutil.rmtree, self.dir)
        self.sock = os.path.join(self.dir, "s")

    def serve(self, kind="local", **handlers):
        f = Fake(self.sock, kind, **handlers)
        self.addCleanup(f.stop)
        return f

    def path(self, name, text=None, mode=0o644):
        p = os.path.join(self.dir, name)
        if text is not None:
            with open(p, "w") as f:
                f.write(text)
            os.chmod(p, mode)
        return p

    def env(self, **more):
        e = {"PATH": os.environ["PATH"], "HOME": self.dir, "LC_ALL": "C.UTF-8",
             "TZ": "UTC", "GPUQ_SERVER": "unix:" + self.sock}
        for k in ("LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if k in os.environ:
                e[k] = os.environ[k]
        e.update(more)
        return {k: v for k, v in e.items() if v is not None}

    def start(self, *args, stdin=subprocess.DEVNULL, env=None, program=GPUQ, **more):
        more.setdefault("stdout", subprocess.PIPE)
        p = subprocess.Popen([program, *args], stdin=stdin, stderr=subprocess.PIPE,
                             env=env or self.env(), cwd=self.dir, **more)
        self.addCleanup(self.reap, p)
        return p

    @staticmethod
    def reap(p):
        if p.poll() is None:
            p.kill()
            p.communicate()

    def run_gpuq(self, *args, input=None, env=None):
        """Returns (exit code, stdout, stderr) as text."""
        p = self.start(*args, stdin=subprocess.PIPE, env=env)
        out, err = p.communicate((input or "").encode(), timeout=120)
        return p.returncode, out.decode(), err.decode()

    def ok(self, *args, **more):
        code, out, err = self.run_gpuq(*args, **more)
        self.assertEqual((code, err), (0, ""), out)
        return out


class Tap(unittest.TestResult):
    """One line a test, as tests/run reads them."""

    n = 0

    def say(self, line, test, why=""):
        self.n += 1
        name = "%s/%s" % (type(test).__name__.lower(), test.id().split(".")[-1][len("test_"):])
        print("%s %d - %s%s" % (line, self.n, name, why), flush=True)

    def failed(self, test, err):
        self.say("not ok", test)
        for line in self._exc_info_to_string(err, test).splitlines():
            print("# " + line, flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.say("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say("ok", test, " # SKIP " + reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.failed(test, err)


def main():
    """All tests of the script, or those that are named on the command line."""
    import __main__
    loader = unittest.defaultTestLoader
    suite = (loader.loadTestsFromNames(sys.argv[1:], __main__) if sys.argv[1:]
             else loader.loadTestsFromModule(__main__))
    print("1..%d" % suite.countTestCases(), flush=True)
    result = Tap()
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)
