"""A small Kubernetes API client for the tests: kubeconfig in, JSON in and out, one connection kept.

Standard library, and python3-yaml to read kubeconfigs and manifests.
"""
import base64
import http.client
import json
import os
import ssl
import tempfile
import time
import urllib.parse

import yaml


class ApiError(Exception):
    """An answer that is no success: .status, .reason and the server's own message."""

    def __init__(self, status, body):
        try:
            self.answer = json.loads(body)
        except ValueError:
            self.answer = {}
        self.status = status
        self.reason = self.answer.get("reason", "")
        super().__init__(f"{status} {self.reason}: {self.answer.get('message', body[:300])}")


def _named(items, name, what):
    for item in items or []:
        if item["name"] == name:
            return item[what]
    raise SystemExit(f"kubeconfig: no {what} named {name}")


def _bytes(entry, key, base):
    """The bytes of a certificate or key that a kubeconfig has inline or in a file, or None."""
    if entry.get(key + "-data"):
        return base64.b64decode(entry[key + "-data"])
    if entry.get(key):
        with open(os.path.join(base, entry[key]), "rb") as f:
            return f.read()
    return None


class Client:
    def __init__(self, kubeconfig, timeout=60):
        with open(kubeconfig) as f:
            config = yaml.safe_load(f)
        base = os.path.dirname(os.path.abspath(kubeconfig))
        context = _named(config["contexts"], config["current-context"], "context")
        cluster = _named(config["clusters"], context["cluster"], "cluster")
        user = _named(config["users"], context["user"], "user")

        self.server = cluster["server"]
        url = urllib.parse.urlsplit(self.server)
        self.host, self.port = url.hostname, url.port
        self.timeout = timeout
        self.headers = {}
        ca = _bytes(cluster, "certificate-authority", base)
        self.tls = ssl.create_default_context(cadata=ca.decode()) if ca else None
        cert, key = _bytes(user, "client-certificate", base), _bytes(user, "client-key", base)
        if cert:
            # ssl reads client certificates from files only.
            with tempfile.NamedTemporaryFile() as pem:
                pem.write(cert + b"\n" + key)
                pem.flush()
                self.tls.load_cert_chain(pem.name)
        token = user.get("token")
        if user.get("tokenFile"):
            with open(os.path.join(base, user["tokenFile"])) as f:
                token = f.read().strip()
        if token:
            self.headers["Authorization"] = "Bearer " + token
        self.conn = None

    def _connect(self, timeout):
        if not self.tls:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.tls)

    def raw(self, method, path, body=None, content_type="application/json"):
        """One request; returns (status, bytes). A connection that the server closed is made anew."""
        headers = dict(self.headers)
        if body is not None:
            headers["Content-Type"] = content_type
            if not isinstance(body, (bytes, str)):
                body = json.dumps(body)
        for last in (False, True):
            fresh = self.conn is None
            if fresh:
                self.conn = self._connect(self.timeout)
            try:
                self.conn.request(method, path, body, headers)
                response = self.conn.getresponse()
                return response.status, response.read()
            except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
                self.conn.close()
                self.conn = None
                if last or fresh:
                    raise
            except Exception:
                self.conn.close()
                self.conn = None
                raise

    def call(self, method, path, body=None, content_type="application/json"):
        """One request whose JSON answer is wanted; ApiError unless it is a success."""
        status, data = self.raw(method, path, body, content_type)
        if status >= 300:
            raise ApiError(status, data.decode(errors="replace"))
        return json.loads(data) if data else None

    def get(self, path):
        return self.call("GET", path)

    def patch(self, path, change, kind="merge"):
        types = {"merge": "merge-patch", "json": "json-patch", "strategic": "strategic-merge-patch"}
        return self.call("PATCH", path, change, f"application/{types[kind]}+json")

    def list(self, path):
        """All items of a collection and its resourceVersion, page by page."""
        items, token = [], ""
        while True:
            join = "&" if "?" in path else "?"
            page = self.get(f"{path}{join}limit=500&continue={urllib.parse.quote(token)}")
            items += page["items"] or []
            token = page["metadata"].get("continue", "")
            if not token:
                return items, page["metadata"]["resourceVersion"]

    def insist(self, path, body):
        """Patch; once more while the server has too much to do, or the object changes meanwhile."""
        for left in range(20, -1, -1):
            try:
                return self.patch(path, body)
            except ApiError as e:
                if left == 0 or e.status not in (409, 429) and e.status < 500:
                    raise
            except OSError:
                if left == 0:
                    raise
            time.sleep(0.5)

    def watch(self, path, version, timeout_s=300):
        """The events after version: (type, object), bookmarks and errors too. Ends with the stream."""
        join = "&" if "?" in path else "?"
        conn = self._connect(timeout_s + 30)
        try:
            conn.request("GET", f"{path}{join}watch=1&resourceVersion={version}"
                         f"&allowWatchBookmarks=true&timeoutSeconds={timeout_s}", headers=self.headers)
            response = conn.getresponse()
            if response.status >= 300:
                raise ApiError(response.status, response.read().decode(errors="replace"))
            for line in response:
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            conn.close()
