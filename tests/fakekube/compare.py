#!/usr/bin/env python3
"""The fake apiserver against a real one: the same requests, the same answers?

usage: compare.py PATH-TO-fakekube [--verbose]

Sends a list of requests to both and compares the code, the reason, the fields of
the causes and, where a line asks for it, the message or parts of the object. The
real server is the one that tests/kube/cluster has started: $KUBE_SERVER, $KUBE_DIR.
Prints TAP; exits 77 where there is none.
"""
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from selftest.fake import pod  # noqa: E402

NS = "/api/v1/namespaces/cmp"
PODS = NS + "/pods"
MERGE, STRATEGIC, JSONP = ("application/merge-patch+json", "application/strategic-merge-patch+json",
                           "application/json-patch+json")


def with_resources(name, resources):
    p = pod(name, node=None)
    p["spec"]["containers"][0]["resources"] = resources
    return p


def changed(p, **spec):
    p["spec"].update(spec)
    return p


def two_containers(name):
    p = pod(name, node=None)
    p["spec"]["containers"] *= 2
    return p


def mounted(name):
    p = pod(name, node=None)
    p["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    return p


# Each: what, method, path, body, options. Options: type (of the body), compare
# ("message" or a function of the answer), save (a name for the answer's uid).
def steps(saved):
    yield "pod is created", "POST", PODS, pod("a", node=None), {
        "save": "a", "compare": lambda j: (j["status"]["phase"], j["spec"]["tolerations"], j["spec"]["priority"],
                                           j["spec"]["containers"][0]["resources"], j["spec"]["schedulerName"])}
    yield "name is taken", "POST", PODS, pod("a", node=None), {"compare": "message"}
    yield "namespace is missing", "POST", "/api/v1/namespaces/nons/pods", pod("x"), {"compare": "message"}
    yield "namespace differs", "POST", PODS, pod("x", meta={"namespace": "other"}), {"compare": "message"}
    yield "not JSON", "POST", PODS, "{nope", {}
    yield "an array", "POST", PODS, "[]", {}
    yield "another kind", "POST", PODS, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}}, {}
    yield "a label that is a number", "POST", PODS, pod("x", meta={"labels": {"a": 1}}), {}
    yield "containers that are an object", "POST", PODS, pod("x", spec={"containers": {}}), {}
    yield "a bad quantity", "POST", PODS, pod("x", gpus="1x"), {}
    yield "a bad name", "POST", PODS, pod("Big_Name"), {"compare": "message"}
    yield "no containers", "POST", PODS, pod("x", spec={"containers": []}), {"compare": "message"}
    yield "two containers of a name", "POST", PODS, two_containers("x"), {"compare": "message"}
    yield "a restart policy", "POST", PODS, pod("x", spec={"restartPolicy": "Sometimes"}), {"compare": "message"}
    yield "half a GPU", "POST", PODS, pod("x", gpus="1500m"), {}
    yield "GPU request without limit", "POST", PODS, with_resources("x", {"requests": {"nvidia.com/gpu": 1}}), {}
    yield "GPU request differs", "POST", PODS, with_resources(
        "x", {"requests": {"nvidia.com/gpu": 2}, "limits": {"nvidia.com/gpu": 1}}), {}
    yield "cpu request over limit", "POST", PODS, with_resources("x", {"requests": {"cpu": 2}, "limits": {"cpu": 1}}), {}
    yield "mount of no volume", "POST", PODS, mounted("x"), {"compare": "message"}
    yield "a bad label key", "POST", PODS, pod("x", meta={"labels": {"a b": "c"}}), {}
    yield "a bad label value", "POST", PODS, pod("x", meta={"labels": {"a": "-c-"}}), {}
    yield "too much annotation", "POST", PODS, pod("x", meta={"annotations": {"k": "v" * 262144}}), {"compare": "message"}
    yield "an owner without a name", "POST", PODS, pod("x", meta={"ownerReferences": [{"kind": "Pod"}]}), {}
    yield "a deadline of 0", "POST", PODS, pod("x", spec={"activeDeadlineSeconds": 0}), {}
    yield "a bad host name", "POST", PODS, pod("x", spec={"hostname": "A.b"}), {}
    yield "no such priority class", "POST", PODS, pod("x", spec={"priorityClassName": "zz"}), {"compare": "message"}
    yield "dry run", "POST", PODS + "?dryRun=All", pod("dry", node=None), {}
    yield "dry run stored nothing", "GET", PODS + "/dry", None, {"compare": "message"}
    yield "list with a bad token", "GET", PODS + "?continue=xyz!", None, {}
    yield "list with a bad version", "GET", PODS + "?resourceVersion=abc", None, {}
    yield "list by an unknown field", "GET", PODS + "?fieldSelector=spec.color%3Dred", None, {"compare": "message"}
    yield "list by a bad label selector", "GET", PODS + "?labelSelector=a+in+b", None, {}
    yield "match without version", "GET", PODS + "?resourceVersionMatch=Exact", None, {}
    yield "list from the future", "GET", PODS + "?resourceVersion=99999999", None, {}
    yield "list by field", "GET", PODS + "?fieldSelector=metadata.name%3Da,spec.nodeName%3D", None, {
        "compare": lambda j: [p["metadata"]["name"] for p in j["items"]]}
    yield "list items have no kind", "GET", PODS, None, {"compare": lambda j: (j["kind"], sorted(j["items"][0]))}
    yield "watch with half a watch-list", "GET", PODS + "?watch=1&sendInitialEvents=true", None, {}
    yield "merge patch", "PATCH", PODS + "/a", {"metadata": {"annotations": {"gpuq.io/x": "1"}}}, {
        "type": MERGE, "compare": lambda j: j["metadata"]["annotations"]}
    yield "stale patch", "PATCH", PODS + "/a", {"metadata": {"resourceVersion": "1"}}, {"type": MERGE, "compare": "message"}
    yield "patch of the uid", "PATCH", PODS + "/a", {"metadata": {"uid": "other"}}, {"type": MERGE}
    yield "patch of a node", "PATCH", PODS + "/a", {"spec": {"nodeName": "n"}}, {"type": MERGE}
    yield "plain JSON is no patch", "PATCH", PODS + "/a", {}, {}
    yield "JSON patch test fails", "PATCH", PODS + "/a", [{"op": "test", "path": "/metadata/name", "value": "b"}], {
        "type": JSONP}
    yield "status patch", "PATCH", PODS + "/a/status", {"status": {"conditions": [
        {"type": "gpuq.io/P", "status": "True"}]}}, {
            "type": STRATEGIC, "compare": lambda j: [c["type"] for c in j["status"]["conditions"] if "gpuq" in c["type"]]}
    yield "finalizer is added", "PATCH", PODS + "/a", {"metadata": {"finalizers": ["gpuq.io/f"]}}, {
        "type": STRATEGIC, "compare": lambda j: j["metadata"]["finalizers"]}
    yield "binding with another uid", "POST", PODS + "/a/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a", "uid": "other"},
        "target": {"kind": "Node", "name": "nowhere"}}, {}
    yield "binding", "POST", PODS + "/a/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"},
        "target": {"kind": "Node", "name": "nowhere"}}, {"compare": lambda j: j["status"]}
    yield "binding again", "POST", PODS + "/a/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"},
        "target": {"kind": "Node", "name": "nowhere"}}, {"compare": "message"}
    yield "bound", "GET", PODS + "/a", None, {"compare": lambda j: (j["spec"]["nodeName"], [
        (c["type"], c["status"]) for c in j["status"]["conditions"] if c["type"] == "PodScheduled"])}
    yield "log of a pod that waits", "GET", PODS + "/none/log", None, {"compare": "message"}
    yield "delete with another uid", "DELETE", PODS + "/a", {"preconditions": {"uid": "other"}}, {}
    yield "delete with grace", "DELETE", PODS + "/a", {"gracePeriodSeconds": 20}, {
        "compare": lambda j: j["metadata"]["deletionGracePeriodSeconds"]}
    yield "longer grace is ignored", "DELETE", PODS + "/a", {"gracePeriodSeconds": 90}, {
        "compare": lambda j: j["metadata"]["deletionGracePeriodSeconds"]}
    yield "shorter grace is taken", "DELETE", PODS + "/a", {"gracePeriodSeconds": 10}, {
        "compare": lambda j: j["metadata"]["deletionGracePeriodSeconds"]}
    yield "name of a leaving pod", "POST", PODS, pod("a", node=None), {"compare": "message"}
    yield "binding a leaving pod", "POST", PODS + "/a/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"},
        "target": {"kind": "Node", "name": "nowhere"}}, {}
    yield "by force, but for the finalizer", "DELETE", PODS + "/a", {"gracePeriodSeconds": 0}, {
        "compare": lambda j: j["metadata"]["deletionGracePeriodSeconds"]}
    yield "the finalizer goes", "PATCH", PODS + "/a", {"metadata": {"finalizers": None}}, {"type": MERGE}
    yield "and the pod with it", "GET", PODS + "/a", None, {"compare": "message"}
    yield "delete of nothing", "DELETE", PODS + "/a", None, {"compare": "message"}
    yield "gated pod", "POST", PODS, pod("g", node=None, spec={"schedulingGates": [{"name": "x.io/g"}]}), {}
    yield "binding a gated pod", "POST", PODS + "/g/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "g"}, "target": {"kind": "Node", "name": "n"}}, {}
    yield "unbound pod goes at once", "DELETE", PODS + "/g", None, {
        "compare": lambda j: j["metadata"].get("deletionGracePeriodSeconds")}
    yield "it is gone", "GET", PODS + "/g", None, {}
    yield "configmap", "POST", NS + "/configmaps", {
        "metadata": {"name": "c"}, "data": {"run.sh": "x"}, "immutable": True}, {}
    yield "immutable", "PATCH", NS + "/configmaps/c", {"data": {"run.sh": "y"}}, {"type": MERGE, "compare": "message"}
    yield "a bad key", "POST", NS + "/configmaps", {"metadata": {"name": "d"}, "data": {"a/b": ""}}, {}
    yield "too much data", "POST", NS + "/configmaps", {"metadata": {"name": "d"}, "data": {"a": "x" * 1048577}}, {
        "compare": "message"}
    yield "configmap goes", "DELETE", NS + "/configmaps/c", None, {"compare": lambda j: (j["kind"], j.get("status"))}
    yield "headless service", "POST", NS + "/services", {
        "metadata": {"name": "s"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}}}, {}
    yield "service with a digit", "POST", NS + "/services", {"metadata": {"name": "1s"}, "spec": {"clusterIP": "None"}}, {}
    yield "service without ports", "POST", NS + "/services", {"metadata": {"name": "t"}, "spec": {}}, {
        "compare": "message"}
    yield "lease without a fraction", "POST", "/apis/coordination.k8s.io/v1/namespaces/cmp/leases", {
        "metadata": {"name": "l"}, "spec": {"renewTime": "2026-11-20T08:00:00Z"}}, {}
    yield "lease", "POST", "/apis/coordination.k8s.io/v1/namespaces/cmp/leases", {
        "metadata": {"name": "l"}, "spec": {"renewTime": "2026-11-20T08:00:00.000000Z"}}, {}
    yield "too large", "POST", PODS, "x" * 3145729, {"compare": "message"}
    yield "no such resource", "GET", "/api/v1/cows", None, {}
    yield "no such group", "GET", "/apis/cows.io/v1/cows", None, {}
    yield "PUT of a collection", "PUT", PODS, {}, {}
    yield "POST of an object", "POST", PODS + "/x", {}, {}
    yield "quota", "POST", NS + "/resourcequotas", {
        "metadata": {"name": "rq"}, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}, {"settle": True}
    yield "pod within quota", "POST", PODS, pod("q1", node=None, gpus=2), {}
    yield "pod over quota", "POST", PODS, pod("q2", node=None, gpus=2), {"compare": "message"}
    yield "repeated pod in a full quota", "POST", PODS, pod("q1", node=None, gpus=2), {}
    yield "pod without GPUs", "POST", PODS, pod("q3", node=None, gpus=0), {}
    yield "delete of all", "DELETE", PODS, None, {}
    yield "all are gone", "GET", PODS, None, {"compare": lambda j: j["items"] or []}


class Target:
    def __init__(self, url, context=None, token=None):
        self.url, self.context = urllib.parse.urlparse(url), context

    def call(self, method, path, body=None, ctype="application/json"):
        args = (self.url.hostname, self.url.port)
        c = (http.client.HTTPSConnection(*args, timeout=60, context=self.context) if self.context
             else http.client.HTTPConnection(*args, timeout=60))
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            c.request(method, path, body, {"Content-Type": ctype, "User-Agent": "compare/1"})
            r = c.getresponse()
            data = r.read()
        finally:
            c.close()
        try:
            return r.status, json.loads(data)
        except ValueError:
            return r.status, {}


def prepare(target):
    """An empty namespace where pods can be made."""
    target.call("POST", "/api/v1/namespaces", {"metadata": {"name": "cmp"}})
    target.call("POST", NS + "/serviceaccounts", {"metadata": {"name": "default"}})


def settle(target):
    for _ in range(300):
        if target.call("GET", NS + "/resourcequotas/rq")[1].get("status", {}).get("used"):
            return
        time.sleep(0.05)


def outcome(answer, options):
    code, j = answer
    got = {"code": code}
    if code >= 400:
        got["reason"] = j.get("reason", "")
        got["causes"] = sorted({c.get("field", "") for c in j.get("details", {}).get("causes", [])})
        if options.get("compare") == "message":
            got["message"] = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "UID", j.get("message", ""))
    elif callable(options.get("compare")):
        try:
            got["object"] = options["compare"](j)
        except (KeyError, IndexError, TypeError) as e:
            got["object"] = "missing: %r" % e
    return got


def main():
    server, folder = os.environ.get("KUBE_SERVER"), os.environ.get("KUBE_DIR")
    if not server or not folder:
        print("no real cluster: tests/kube/cluster start DIR; eval \"$(tests/kube/cluster env DIR)\"")
        sys.exit(77)
    pki = os.path.join(folder, "pki")
    context = ssl.create_default_context(cafile=os.path.join(pki, "ca.crt"))
    context.load_cert_chain(os.path.join(pki, "admin.crt"), os.path.join(pki, "admin.key"))
    real = Target(server, context)
    failed = n = 0
    with tempfile.TemporaryDirectory() as d:
        port = os.path.join(d, "port")
        proc = subprocess.Popen([sys.argv[1], "--nodes", "2", "--port-file", port])
        try:
            while not os.path.exists(port) and proc.poll() is None:
                time.sleep(0.02)
            with open(port) as f:
                fake = Target("http://127.0.0.1:" + f.read().strip())
            prepare(real)
            prepare(fake)
            for what, method, path, body, options in steps({}):
                n += 1
                got = [outcome(t.call(method, path, body, options.get("type", "application/json")), options)
                       for t in (real, fake)]
                if options.get("settle"):
                    settle(real)
                    settle(fake)
                same = got[0] == got[1]
                failed += not same
                print("%s %d - %s" % ("ok" if same else "not ok", n, what))
                if not same or "--verbose" in sys.argv:
                    print("# real %s\n# fake %s" % tuple(json.dumps(g) for g in got))
        finally:
            proc.terminate()
            proc.wait()
            real.call("DELETE", "/api/v1/namespaces/cmp")
    print("1..%d" % n)
    sys.exit(failed != 0)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(__doc__)
    main()
