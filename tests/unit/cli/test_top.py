"""The full screen view on a terminal of our own: a pty, and a screen of 80 by 24 that is read back."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import test_hostile as hostile
from fake import Case, GPUQ, job, main

STATUS = {"gpus": 8, "devices": {"allocated": 3, "free": 5}, "jobs": {"PENDING": 1, "RUNNING": 2},
          "cluster": {"kind": "local", "stale_since": None, "read_only": False}}


class Screen:
    """As much of a terminal as TERM=vt100 asks for."""

    def __init__(self, lines, columns):
        self.resize(lines, columns)
        self.raw = b""

    def resize(self, lines, columns):
        self.lines, self.columns = lines, columns
        self.cells = [[" "] * columns for _ in range(lines)]
        self.y = self.x = 0

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.cells)

    def put(self, c):
        if self.x >= self.columns:
            self.x, self.y = 0, min(self.y + 1, self.lines - 1)
        self.cells[self.y][self.x] = c
        self.x += 1

    def clear(self, y0, x0, y1, x1):
        for y in range(y0, min(y1, self.lines - 1) + 1):
            for x in range(x0 if y == y0 else 0, (x1 if y == y1 else self.columns - 1) + 1):
                if x < self.columns:
                    self.cells[y][x] = " "

    def command(self, args, final):
        n = [int(a) if a.isdigit() else 0 for a in args.lstrip("?").split(";")]
        last = (self.lines - 1, self.columns - 1)
        if final == "H":
            self.y = min(max(n[0], 1), self.lines) - 1
            self.x = min(max(n[1] if len(n) > 1 else 1, 1), self.columns) - 1
        elif final == "J":
            self.clear(*((self.y, self.x) + last if n[0] == 0 else (0, 0, self.y, self.x)
                         if n[0] == 1 else (0, 0) + last))
        elif final == "K":
            self.clear(self.y, self.x if n[0] != 1 else 0, self.y,
                       self.x if n[0] == 1 else self.columns - 1)
        elif final in "ABCD":
            k = max(n[0], 1)
            self.y = max(0, min(self.lines - 1, self.y + {"A": -k, "B": k}.get(final, 0)))
            self.x = max(0, min(self.columns - 1, self.x + {"C": k, "D": -k}.get(final, 0)))

    def feed(self, data):
        self.raw += data
        while self.raw:
            c = self.raw[:1]
            if c == b"\033":
                if len(self.raw) < 2:
                    return
                if self.raw[1:2] == b"[":
                    end = next((i for i in range(2, len(self.raw))
                                if 0x40 <= self.raw[i] <= 0x7e), None)
                    if end is None:
                        return
                    self.command(self.raw[2:end].decode(), chr(self.raw[end]))
                    self.raw = self.raw[end + 1:]
                elif self.raw[1:2] in b"()":
                    if len(self.raw) < 3:
                        return
                    self.raw = self.raw[3:]
                elif self.raw[1:2] == b"M":
                    self.y = max(0, self.y - 1)
                    self.raw = self.raw[2:]
                else:
                    self.raw = self.raw[2:]
                continue
            self.raw = self.raw[1:]
            if c == b"\r":
                self.x = 0
            elif c == b"\n":
                self.y = min(self.y + 1, self.lines - 1)
            elif c == b"\b":
                self.x = max(0, self.x - 1)
            elif c >= b" ":
                self.put(c.decode("latin-1"))


class Top(Case):
    def listing(self, objects):
        def handler(call):
            for o in objects:
                call.item(o)
            return {}
        return handler

    def serve_all(self, jobs=(), nodes=(), queues=(), **more):
        return self.serve(status_get=lambda call: STATUS, job_list=self.listing(jobs),
                          node_list=self.listing(nodes), queue_list=self.listing(queues), **more)

    def open(self, lines=24, columns=80):
        self.master, slave = pty.openpty()
        self.addCleanup(os.close, self.master)
        self.screen = Screen(lines, columns)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.addCleanup(os.close, slave)
        self.top = subprocess.Popen([GPUQ, "top", "--watch=0.2"], stdin=slave, stdout=slave,
                                    stderr=subprocess.PIPE, env=self.env(TERM="vt100"),
                                    start_new_session=True)
        self.addCleanup(self.reap, self.top)

    def read(self):
        while select.select([self.master], [], [], 0.05)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            self.seen = getattr(self, "seen", b"") + data
            self.screen.feed(data)

    def until(self, wanted, what=""):
        """Read until the screen is as wanted: a text on it, or a function of its text."""
        end = time.monotonic() + 30
        while True:
            self.read()
            text = self.screen.text()
            if wanted(text) if callable(wanted) else wanted in text:
                return text
            if time.monotonic() > end or self.top.poll() is not None:
                self.fail("never %s on the screen:\n%s\n%s" % (
                    what or wanted, text, self.top.stderr.read() if self.top.poll() is not None
                    else b""))

    def press(self, keys):
        os.write(self.master, keys.encode())

    def ends(self, code=0):
        end = time.monotonic() + 30
        while self.top.poll() is None and time.monotonic() < end:
            self.read()
        self.read()
        self.assertEqual(self.top.poll(), code)
        # The terminal is as it was, and shows its ordinary screen.
        self.assertEqual(termios.tcgetattr(self.slave), self.before)

    JOBS = [job(17, "RUNNING", name="train", gpus=2), job(18, "PENDING", name="eval", gpus=8),
            job(9, "PENDING", name="tune", user="bob", gpus=1)]

    def test_shows_the_cluster_and_its_jobs_on_80_by_24(self):
        self.serve_all(self.JOBS)
        self.open()
        text = self.until("train")
        lines = text.split("\n")
        self.assertRegex(lines[0], r"gpuq top  \d\d:\d\d:\d\d  local cluster")
        self.assertEqual(lines[1], "GPUs  8: 3 allocated, 5 free")
        self.assertEqual(lines[2], "Jobs  1 PENDING, 2 RUNNING")
        self.assertRegex(lines[3], r"1 jobs  2 nodes  3 queues  3 of 3")
        self.assertRegex(lines[4], r"^ *JOBID QUEUE +NAME +USER +ST\^ +TIME +GPUS")
        self.assertTrue(all(len(line) <= 80 for line in lines))
        self.press("q")
        self.ends()

    def order(self, text):
        return [w.split()[2] for w in text.split("\n")[5:8] if len(w.split()) > 2]

    def test_sorts_and_reverses(self):
        self.serve_all(self.JOBS)
        self.open()
        self.until(lambda text: self.order(text) == ["eval", "tune", "train"], "by state")
        self.press("ssss")  # TIME, then GPUS, USE, then PRIORITY
        self.press("\033")
        self.until("PRIORITY^")
        self.press("ssss")
        self.until(lambda text: self.order(text) == ["eval", "train", "tune"], "by name")
        self.press("S")
        self.until(lambda text: self.order(text) == ["tune", "train", "eval"], "reversed")
        self.press("q")
        self.ends()

    def test_filters(self):
        self.serve_all(self.JOBS)
        self.open()
        self.until("train")
        self.press("/BO")
        self.until("show only: BO")
        self.press("\n")
        self.until(lambda text: "1 of 3 with BO" in text and "train" not in text, "one job")
        self.press("/")
        self.press("\033")
        self.until("3 of 3")
        self.press("q")
        self.ends()

    def test_looks_at_a_job(self):
        def why(call):
            return {"job": job(call.params["id"], "PENDING", reasons=[
                {"code": "Resources", "object": "gpus", "unit": "gpus", "have": 5, "need": 8,
                 "since": None, "who": "nobody"}]), "waiting": None, "starts": [], "claims": []}
        s = self.serve_all(self.JOBS, job_why=why)
        self.open()
        self.until("train")
        self.press("j")
        self.press("\n")
        self.until("Resources: 5 of 8 GPUs free")
        self.assertEqual(s.of("job.why")[0].params, {"id": 9})
        self.press("\033")
        self.until("1 jobs  2 nodes")
        self.press("q")
        self.ends()

    def test_nodes_and_queues(self):
        self.serve_all(self.JOBS, nodes=[
            {"name": "n1", "state": "mixed", "flavor": "a100", "gpus": 2, "free_gpus": 1,
             "devices": [{"index": i, "state": s, "memory_mib": 40960, "free_memory_mib": 0,
                          "free_milli": 0, "jobs": ["17"]} for i, s in
                         enumerate(("allocated", "free"))]}],
            queues=[{"name": "lab", "quota": 4, "allocated": 3, "pending_jobs": 7}])
        self.open()
        self.until("train")
        self.press("\t")
        text = self.until("allocated   ")
        self.assertRegex(text.split("\n")[5], r"^n1 +mixed a100 +0 allocated +40Gi +0 +0 17$")
        self.press("3")
        self.until(lambda text: "lab" in text and "FAIR_SHARE" in text, "queues")
        self.press("1")
        self.until("train")
        self.press("q")
        self.ends()

    def test_names_do_not_act_on_the_terminal(self):
        self.serve_all([job(17, name="a\033]0;owned\007b\033[2J")])
        self.open()
        self.until("a\\x1b]0;owned\\x07b")
        self.assertNotIn(b"\033]0;", self.seen)
        self.press("q")
        self.ends()

    def test_nothing_of_any_answer_acts_on_the_terminal(self):
        ours = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>78M]|[\x0e\x0f\b\r\n]")
        panes = (("1", "JOBID"), ("2", "DEVICE"), ("3", "FAIR_SHARE"), ("1", "JOBID"), ("\n", "Reason"))
        for nasty, keys in ((hostile.NASTY, panes), (hostile.BROKEN, (("1", "not UTF-8"),))):
            def bad(v):
                return hostile.poisoned(v, nasty)
            s = self.serve(status_get=lambda call: bad(hostile.STATUS),
                           job_list=self.listing([bad(hostile.JOB), bad(hostile.WAITS)]),
                           node_list=self.listing([bad(hostile.NODE)]),
                           queue_list=self.listing([bad(hostile.QUEUE)]),
                           job_why=lambda call: bad(hostile.WHY))
            self.seen = b""
            self.open(columns=250)
            for key, wanted in keys:
                self.press(key)
                self.until(lambda text: wanted in text and (
                    nasty == hostile.BROKEN or "\\x1b[2J" in text), wanted)
            self.press("q")
            self.ends()
            left = ours.sub(b"", self.seen).decode("utf-8", "surrogateescape")
            self.assertIsNone(hostile.ACTS.search(left) or re.search("[\udc80-\udcff]", left), repr(left))
            s.stop()

    def test_follows_the_size_of_the_terminal(self):
        self.serve_all(self.JOBS)
        self.open()
        self.until("train")
        for lines, columns in ((12, 40), (50, 132), (4, 20), (24, 80)):
            self.screen.resize(lines, columns)
            fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                        struct.pack("HHHH", lines, columns, 0, 0))
            os.kill(self.top.pid, signal.SIGWINCH)
            self.until(lambda text: text.startswith("gpuq top") and (
                lines < 8 or "train" in text), "%d lines of %d" % (lines, columns))
        self.press("q")
        self.ends()

    def test_gives_the_terminal_back_on_a_signal(self):
        for signo in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.serve_all(self.JOBS)
            self.open()
            self.until("train")
            os.kill(self.top.pid, signo)
            self.ends()
            self.seen = b""

    def test_a_server_that_goes_away_is_waited_for(self):
        s = self.serve_all(self.JOBS)
        self.open()
        self.until("train")
        s.stop()
        text = self.until("no gpuqd answers")
        self.assertIn("train", text)
        s.start()
        self.until(lambda text: "q quit" in text, "the keys again")
        self.press("q")
        self.ends()

    def test_needs_a_terminal(self):
        self.serve_all()
        code, out, err = self.run_gpuq("top")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("no terminal", err)

    def test_an_unknown_terminal_and_no_server_are_said(self):
        def start(term):
            master, slave = pty.openpty()
            self.addCleanup(os.close, master)
            p = subprocess.Popen([GPUQ, "top"], stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                                 env=self.env(TERM=term))
            os.close(slave)
            self.addCleanup(self.reap, p)
            return p.wait(60), p.stderr.read().decode(), p.stderr.close()
        code, err, _ = start("vt100")
        self.assertEqual(code, 255)
        self.assertIn("no gpuqd answers", err)
        self.serve_all()
        code, err, _ = start("no-such-terminal")
        self.assertEqual(code, 2)
        self.assertIn("TERM", err)


if __name__ == "__main__":
    main()
