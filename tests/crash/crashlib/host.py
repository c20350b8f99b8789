"""The processes: one gpuqd that is killed and restarted, its cluster, the directory of both."""
import ctypes
import json
import os
import signal
import subprocess
import time
import urllib.request


def die_with_parent():
    """Let no process outlive the loop, however that ends."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def children_env(dir, tag):
    """Return the environment of the daemon, of its clients and through them of the jobs."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("GPUQ_") and k not in ("KUBECONFIG", "NOTIFY_SOCKET", "JOURNAL_STREAM", "NO_COLOR")}
    env.update(GPUQ_CRASH_TAG=tag, GPUQ_SERVER="unix:" + os.path.join(dir, "s"), HOME=dir)
    return env


class Daemon:
    """A gpuqd that is started and killed again and again on one state directory."""

    def __init__(self, build, dir, tag, options, patience_s):
        self.program = os.path.join(build, "gpuqd", "gpuqd")
        self.dir, self.options, self.patience_s = dir, options, patience_s
        self.env = children_env(dir, tag)
        self.log = open(os.path.join(dir, "gpuqd.log"), "ab")
        self.proc = None
        self.kills = self.starts = 0
        self.deaths = []  # ends that were not requested

    def failpoints(self):
        """Return the failpoints compiled in, each name once."""
        out = subprocess.run([self.program, "--failpoints"], capture_output=True, text=True, env=self.env)
        return sorted(set(out.stdout.split())) if out.returncode == 0 else []

    def start(self, failpoint=None):
        env = dict(self.env)
        if failpoint:
            env["GPUQ_FAILPOINT"] = failpoint
        self.starts += 1
        self.log.write(b"---- start %d %s\n" % (self.starts, (failpoint or "").encode()))
        self.log.flush()
        self.proc = subprocess.Popen(
            [self.program, "--state", os.path.join(self.dir, "state"), "--listen", env["GPUQ_SERVER"]] + self.options,
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=env, preexec_fn=die_with_parent)

    def kill(self):
        """kill -9. A daemon that is dead by then died by itself, which is recorded."""
        if self.proc.poll() is None:
            self.proc.kill()
            self.kills += 1
        code = self.proc.wait()
        if code != -signal.SIGKILL:
            self.deaths.append("start %d ended by itself with %d" % (self.starts, code))

    def dies(self, seconds):
        """Wait for a failpoint to kill it; True if it did."""
        try:
            code = self.proc.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        if code == -signal.SIGKILL:
            self.kills += 1
        else:
            self.deaths.append("start %d ended by itself with %d" % (self.starts, code))
        return True

    def stop(self):
        """Stop it as a service manager does; return the exit status."""
        self.proc.terminate()
        try:
            return self.proc.wait(timeout=self.patience_s)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            return "nothing for %d s after SIGTERM" % self.patience_s


class Local:
    """The local cluster: processes of this machine."""
    name = "local"
    gpus = 8
    failpoints = ("dispatch.", "journal.", "schedule.", "store.", "local.", "shepherd.")
    elsewhere = ("dispatch.adopt", "adopt.fill")  # pods that were not submitted: t0548, t0580

    def __init__(self, build, dir, seed):
        self.dir = dir
        self.ledger = os.path.join(dir, "ledger")
        open(self.ledger, "w").close()
        self.options = ["--cluster", "local", "--gpus", str(self.gpus)]

    def close(self):
        pass


class Fake:
    """fakekube: it is not killed, it loses replies."""
    name = "fake"
    nodes, gpus_of_node = 3, 4
    gpus = nodes * gpus_of_node
    failpoints = ("dispatch.", "journal.", "schedule.", "store.", "kube.")
    # Volumes to wait for, requests for nodes, claims of devices, placeholders, pods that were not submitted and
    # suspended Jobs are not part of this load: t31-kube-volumes, t40-kube-provision-kills, t36-kube-dra,
    # t48-kube-autoscaler, t0548-fake-adopt and t70-kube-suspended kill at these.
    elsewhere = ("kube.bind", "kube.capacity", "kube.claim", "kube.placeholder", "kube.node_keep", "dispatch.adopt",
                 "kube.owner", "kube.gate", "adopt.fill")
    faults = ("on POST pods every=11 drop-after-commit\n"
              "on POST pods every=17 status=503\n"
              "on DELETE pods every=7 drop-after-commit\n"
              "on LIST pods every=9 status=500\n"
              "on WATCH every=5 close after=20\n")

    def __init__(self, build, dir, seed):
        self.dir = dir
        path = {name: os.path.join(dir, name) for name in ("port", "kubeconfig", "audit", "faults")}
        with open(path["faults"], "w") as f:
            f.write(self.faults)
        self.audit_path = path["audit"]
        self.proc = subprocess.Popen(
            [os.path.join(build, "tests", "fakekube", "fakekube"), "--nodes", str(self.nodes),
             "--gpus", str(self.gpus_of_node), "--port-file", path["port"], "--kubeconfig", path["kubeconfig"],
             "--audit", path["audit"], "--script", path["faults"], "--seed", str(seed)],
            stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        while not os.path.exists(path["port"]):
            if self.proc.poll() is not None:
                raise SystemExit("fakekube does not start")
            time.sleep(0.02)
        with open(path["port"]) as f:
            self.port = int(f.read())
        self.options = ["--cluster", "kube", "--kubeconfig", path["kubeconfig"]]

    def get(self, page):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (self.port, page), timeout=60) as r:
            return json.load(r)

    def tell(self, lines):
        urllib.request.urlopen(urllib.request.Request(
            "http://127.0.0.1:%d/fake/fault" % self.port, data=lines.encode(), method="POST"), timeout=60).read()

    def close(self):
        self.proc.terminate()
        self.proc.wait()


CLUSTERS = {c.name: c for c in (Local, Fake)}


def processes(tag, but):
    """Return the processes of this run, without zombies: {pid: command line}."""
    found = {}
    mark = ("GPUQ_CRASH_TAG=" + tag).encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if mark not in f.read().split(b"\0") or int(pid) in but:
                    continue
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                found[int(pid)] = f.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            pass
    return found
