#!/usr/bin/python3
"""hostile.py SOCKET|tls:PORT:TOKENFILE ATTACK - a client that does what it must not, and says what became of it.

Exit status 0 when the server ended each connection that had to be ended and went on. The seed is fixed: a
failure can be repeated.
"""
import json
import os
import random
import socket
import ssl
import struct
import sys
import time

rng = random.Random(20261121)
PATIENCE_S = 60


def pack(v):
    if v is None:
        return b"\xc0"
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, int):
        return struct.pack(">Bq", 0xd3, v) if v < 0 else struct.pack(">BQ", 0xcf, v)
    if isinstance(v, float):
        return struct.pack(">Bd", 0xcb, v)
    if isinstance(v, str):
        b = v.encode("utf-8", "surrogateescape")
        return struct.pack(">BI", 0xdb, len(b)) + b
    if isinstance(v, bytes):
        return struct.pack(">BI", 0xc6, len(v)) + v
    if isinstance(v, list):
        return struct.pack(">BI", 0xdd, len(v)) + b"".join(map(pack, v))
    return struct.pack(">BI", 0xdf, len(v)) + b"".join(pack(k) + pack(x) for k, x in v.items())


HELLO = pack([0, 1, "hello", [{"proto": [1, 0], "client": "hostile"}]])


def hello():
    if not sys.argv[1].startswith("tls:"):
        return HELLO
    with open(sys.argv[1].split(":", 2)[2]) as f:
        auth = {"token": f.read().strip()}
    return pack([0, 1, "hello", [{"proto": [1, 0], "client": "hostile", "auth": auth}]])


def connect_tls(port):
    """A stranger has few handshakes a second and connections: some are turned away."""
    until = time.time() + PATIENCE_S
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.set_alpn_protocols(["gpuq-rpc/1"])
    while True:
        try:
            s = tls.wrap_socket(socket.create_connection(("127.0.0.1", port)))
            s.settimeout(PATIENCE_S)
            return s
        except OSError:
            if time.time() > until:
                raise
            time.sleep(0.1)


def connect():
    if sys.argv[1].startswith("tls:"):
        return connect_tls(int(sys.argv[1].split(":", 2)[1]))
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(PATIENCE_S)
    s.connect(sys.argv[1])
    return s


def send(s, data):
    """What the server does not want any more is not our failure."""
    try:
        s.sendall(data)
        return True
    except (BrokenPipeError, ConnectionResetError):
        return False


def greeted():
    s = connect()
    s.sendall(hello())
    if not s.recv(65536):
        raise SystemExit("no answer to hello")
    return s


def ends(s):
    """Reads until the server closes it; the bytes."""
    got = b""
    try:
        while True:
            b = s.recv(65536)
            if not b:
                break
            got += b
    except ConnectionResetError:
        pass
    except socket.timeout:
        raise SystemExit("the server did not close the connection within %d s" % PATIENCE_S)
    s.close()
    return got


def slam(s):
    """RST instead of an end."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def noise():
    for n in range(150):
        s = connect() if n % 2 else greeted()
        send(s, rng.randbytes(rng.choice([1, 7, 300, 20000, 70000])))
        if n % 3:
            s.shutdown(socket.SHUT_WR)
            ends(s)
        else:
            slam(s)


def cut():
    submit = pack([0, 2, "job.submit", [{"specs": [{"command": ["true"], "hold": True}], "dry_run": True}]])
    for whole, begin in ((HELLO, connect), (submit, greeted)):
        for n in range(1, len(whole)):
            s = begin()
            s.sendall(whole[:n])
            if n % 2:
                s.shutdown(socket.SHUT_WR)
                ends(s)
            else:
                slam(s)


BOMBS = [
    b"\x91" * 100000,  # a list in a list in a list
    b"\x81\xa1a" * 50000,
    b"\xdd\xff\xff\xff\xff" * 20000,  # lists that say that they are long
    b"\xdf\xff\xff\xff\xff" * 20000,
    b"\xdd\x00\x01\x00\x00" * 20000,
    b"\xc6\xff\xff\xff\xff" + b"x" * 100000,  # bytes that say that they are many
    b"\xdb\xff\xff\xff\xf0" + b"x" * 100000,
    b"\xc9\x7f\xff\xff\xff\x01" + b"x" * 100000,
    b"\xc1" * 100,  # no type
    pack([0, 7, "job.submit", [{"specs": [[[]] * 1000] * 200}]]),
    pack(["a"] * 100000),
    pack([0, 7, "x" * (5 << 20), []]),  # longer than a message may be
    pack([0, 7, "job.list", [{"ids": ["x"] * 65000}]]),
    pack([0, -1, "job.list", [{}]]),
    pack([0, 1 << 40, "job.list", [{}]]),
    pack([9, 1, "job.list", [{}]]),
    pack([0, 7, "job.list", {}]),
    pack([0, 7, "job.list", [1, 2, 3]]),
    pack([1, 7, None, None]),
    pack({"a": {"a": {"a": 1}}}),
]


def bombs():
    for _ in range(5):
        for bomb in BOMBS:
            for begin in (connect, greeted):
                s = begin()
                send(s, bomb)
                try:
                    s.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                ends(s)


def flood():
    """Far more answers than are ever read."""
    for _ in range(4):
        s = greeted()
        s.settimeout(5)
        call = b"".join(pack([0, n, "job.list", [{"all": True}]]) for n in range(2, 100))
        try:
            for _ in range(2000):
                s.sendall(call)
        except (socket.timeout, BrokenPipeError, ConnectionResetError):
            pass  # either is right: it stops reading, or it has had enough
        slam(s)


METHODS = ["hello", "job.submit", "job.get", "job.list", "job.cancel", "job.hold", "job.release", "job.wait", "job.logs",
           "job.exec", "job.attach", "job.forward",
           "node.list", "queue.list", "status", "event.watch", "", "no.such", "job.submit\0", "\udcff\udcfe"]
KEYS = ["id", "ids", "index", "specs", "key", "dry_run", "users", "states", "limit", "names", "follow", "tail", "$", "all",
        "timeout_us", "force", "signal", "since_us", "\u202e", ""]


def value(depth=0):
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind < 6:
        return rng.choice([None, True, 0, -1, 1, 2**63 - 1, -2**63, 2**64 - 1, 1e308, float("nan"), "", "1", "x" * 2000,
                           "\udcff", b"\0\1", "1_2", "1_[0-4000000]", [], {}])
    if kind < 8:
        return [value(depth + 1) for _ in range(rng.randrange(5))]
    return {rng.choice(KEYS): value(depth + 1) for _ in range(rng.randrange(5))}


def wrong():
    """Messages that are well-formed and mean nothing."""
    for _ in range(60):
        s = greeted()
        for n in range(2, 40):
            params = {rng.choice(KEYS): value() for _ in range(rng.randrange(5))}
            if not send(s, pack([0, n, rng.choice(METHODS[1:]), [params]])):
                break
            if n % 5 == 0 and not send(s, pack([2, rng.choice(["$/credit", "$/cancel", "$/x"]), value() or []])):
                break
        s.shutdown(socket.SHUT_WR)
        ends(s)


def loris():
    """A byte now and then: before hello, in hello, after it. The limits are 5 and 15 s."""
    socks = [connect() for _ in range(40)] + [greeted() for _ in range(20)]
    began = time.monotonic()
    left = set(socks)
    while left:
        if time.monotonic() - began > PATIENCE_S:
            raise SystemExit("%d of %d are still open" % (len(left), len(socks)))
        for s in list(left):
            s.settimeout(0)
            try:
                s.sendall(b"\xdd" if s in socks[:20] else HELLO[:1])
                if s.recv(65536) == b"":
                    left.discard(s)
            except BlockingIOError:
                pass
            except OSError:
                left.discard(s)
        time.sleep(0.5)


def crowd():
    """More connections than one user may have: the last are refused, none for ever."""
    socks, refused = [], 0
    for _ in range(300):
        s = connect()
        socks.append(s)
    for s in socks:
        send(s, HELLO)
        try:
            answer = s.recv(65536)
        except ConnectionResetError:
            answer = b""
        refused += not answer or b"$/error" in answer
    for s in socks:
        slam(s)
    if not 30 <= refused <= 60:
        raise SystemExit("%d of 300 were refused; 256 may come" % refused)


def hoard():
    """HOARD [N [SECONDS]]: N connections, each with an unfinished message of nearly 4 MiB; as much of it as is read
    in that time."""
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 250
    seconds = int(sys.argv[4]) if len(sys.argv) > 4 else 12
    size = (4 << 20) - 1000
    head = b"\x94\x00\x01\xaajob.submit\x91\x81\xa5specs\xc6" + struct.pack(">I", size)
    piece = b"x" * 65536
    socks = {}
    for _ in range(n):
        s = greeted()
        s.sendall(head)
        s.setblocking(False)
        socks[s] = size - 1
    until = time.time() + seconds
    while time.time() < until and socks:
        moved = 0
        for s in list(socks):
            try:
                sent = s.send(piece[:socks[s]]) if socks[s] else 0
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                continue
            except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                del socks[s]
                continue
            socks[s] -= sent
            moved += sent
        if not moved:
            time.sleep(0.05)
    for s in socks:
        slam(s)


def waiters():
    """WAITERS N JOB: N connections that wait for a job, until stdin ends; then what became of them."""
    socks, taken = [], 0
    for _ in range(int(sys.argv[3])):
        s = connect()
        socks.append(s)
        send(s, hello() + pack([0, 2, "job.wait", [{"ids": [sys.argv[4]], "until": "end"}]]))
        try:
            taken += b"$/error" not in s.recv(65536)
        except ConnectionResetError:
            pass
    print(taken, flush=True)
    sys.stdin.read()


def idle():
    """IDLE N: N connections that say hello and no more, until stdin ends."""
    socks = []
    for _ in range(int(sys.argv[3])):
        socks.append(greeted())
    print(len(socks), flush=True)
    sys.stdin.read()


def lasting():
    """LASTING METHOD JSON N EACH: N connections with EACH such calls, which give no credit, until stdin ends. Prints how
    many of them were refused as busy."""
    method, params = sys.argv[3], json.loads(sys.argv[4])
    each = int(sys.argv[6])
    socks, refused = [], 0
    for _ in range(int(sys.argv[5])):
        s = greeted()
        send(s, b"".join(pack([0, 2 + i, method, [params]]) for i in range(each)) + pack([0, 1000, "status.get", [{}]]))
        reader = reader_of(s)
        while True:
            m = reader.value()
            if m[0] == 1 and m[1] == 1000:
                break
            refused += m[0] == 1 and m[2] is not None and m[2]["name"] == "busy"
        socks.append(s)
    print(refused, flush=True)
    sys.stdin.read()


def reader_of(s):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../unit/cli"))
    sys.dont_write_bytecode = True
    from fake import Reader
    return Reader(s)


def logins():
    """Without proof: logins until one is refused, one that is not known, a second call, a method that needs a user."""
    def first(method, params):
        s = connect()
        send(s, pack([0, 1, method, [params]]))
        m = reader_of(s).value()
        return s, m[2]["name"] if m[0] == 1 and m[2] else m[2][0]["name"] if m[0] == 2 else "ok"

    n = 0
    while (last := first("auth.begin", {})[1]) == "ok" and n < 100:
        n += 1
    s, unknown = first("auth.finish", {"login": "x" * 64})
    send(s, pack([0, 2, "auth.finish", [{"login": "x"}]]))
    if b"first call must be hello" not in ends(s):
        raise SystemExit("a second call before hello was taken")
    print("%d begun, then %s; unknown: %s; job.list: %s" % (n, last, unknown, first("job.list", {})[1]))


def pace():
    """PACE METHOD N: N calls as fast as they are answered. Prints how many were refused as busy, each with a time."""
    s, busy = greeted(), 0
    reader, left = reader_of(s), int(sys.argv[4])
    while left:
        n = min(left, 100)
        send(s, b"".join(pack([0, 2 + i, sys.argv[3], [{}]]) for i in range(n)))
        for _ in range(n):
            m = reader.value()
            if m[2] is not None and m[2]["name"] == "busy":
                busy += 1 if 1 <= m[2]["retry_ms"] <= 1000 else 10**6
        left -= n
    print(busy)


ATTACKS = {f.__name__: f for f in (lasting, logins, pace, noise, cut, bombs, flood, wrong, loris, crowd, hoard, waiters, idle)}
if __name__ == "__main__":
    ATTACKS[sys.argv[2]]()
