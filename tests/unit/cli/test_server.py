"""Where the server is looked for, and what is said when there is none."""
import json
import os
import shutil
import socket
import tempfile

from fake import Case, Fake, GPUQ, main


class Places(Case):
    """Which of several servers answers `gpuq version`; each has a version of its own."""

    def fake(self, name):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        f = Fake(path)
        self.addCleanup(f.stop)
        handle = f.handle

        def named(call):
            reply = handle(call)
            return dict(reply, version=name) if call.method == "hello" else reply
        f.handle = named
        return "unix:" + path

    def version(self, *args, **env):
        return json.loads(self.ok("version", "--json", *args, env=self.env(**env)))["server"]

    def test_order(self):
        option, env, conf = self.fake("option"), self.fake("env"), self.fake("conf")
        os.makedirs(os.path.join(self.dir, ".config/gpuq"))
        self.path(".config/gpuq/config.yaml", "server: %s\n" % conf)
        self.assertEqual(self.version("--server", option, GPUQ_SERVER=env), "option")
        self.assertEqual(self.version(GPUQ_SERVER=env), "env")
        self.assertEqual(self.version(GPUQ_SERVER=None), "conf")
        self.assertEqual(self.version(GPUQ_SERVER=""), "conf")
        self.assertEqual(json.loads(self.ok("--server=" + option, "version", "--json"))["server"],
                         "option")

    def test_a_path_is_a_socket(self):
        self.assertEqual(self.version(GPUQ_SERVER=self.fake("env")[len("unix:"):]), "env")

    def test_xdg_config_home(self):
        os.makedirs(os.path.join(self.dir, "x/gpuq"))
        self.path("x/gpuq/config.yaml", "server: %s\n" % self.fake("xdg"))
        self.assertEqual(self.version(GPUQ_SERVER=None,
                                      XDG_CONFIG_HOME=os.path.join(self.dir, "x")), "xdg")

    def test_ones_own_daemon(self):
        other = {}
        if os.geteuid() == 0:
            # Root's own daemon is the system's, so somebody else has to look, in a
            # folder to which they find the way; they may have none to our build.
            other = {"user": 65534, "group": 65534, "extra_groups": []}
            self.dir = tempfile.mkdtemp(prefix="gpuq-cli.", dir="/tmp")
            self.addCleanup(shutil.rmtree, self.dir)
            other["program"] = shutil.copy(GPUQ, os.path.join(self.dir, "gpuq"))
        self.fake(".local/state/gpuq/gpuqd.sock")
        for path, _, files in os.walk(self.dir):
            for f in [path] + [os.path.join(path, f) for f in files]:
                os.chmod(f, 0o777)
        p = self.start("version", "--json", env=self.env(GPUQ_SERVER=None), **other)
        out, err = p.communicate(timeout=60)
        self.assertEqual((p.returncode, err), (0, b""))
        self.assertEqual(json.loads(out)["server"], ".local/state/gpuq/gpuqd.sock")

    def test_bad_configuration(self):
        os.makedirs(os.path.join(self.dir, ".config/gpuq"))
        for text, place in (("server: 5\n", "config.yaml:1:9: server: "),
                            ("serve: x\n", "config.yaml:1:1: serve: no such key"),
                            ("- a\n", "config.yaml:1:1: expected one map")):
            self.path(".config/gpuq/config.yaml", text)
            code, out, err = self.run_gpuq("queue", env=self.env(GPUQ_SERVER=None))
            self.assertEqual((code, out), (255, ""), text)
            self.assertIn(place, err)


class Nobody(Case):
    def test_every_verb_says_so(self):
        f = self.path("j.yaml", "name: t\ncommand: [x]\n")
        for args in (["queue"], ["queues"], ["nodes"], ["status"], ["status", "1"], ["cancel", "1"],
                     ["hold", "1"], ["release", "1"], ["wait", "1"],
                     ["logs", "1"], ["submit", f], ["submit", "--wait", f], ["run", f]):
            code, out, err = self.run_gpuq(*args)
            self.assertEqual((code, out), (255, ""), args)
            self.assertIn(self.sock, err, args)
            self.assertIn("$GPUQ_SERVER", err, args)

    def test_version_without_server(self):
        code, out, err = self.run_gpuq("version")
        self.assertEqual(code, 255)
        self.assertRegex(out, r"^client \d+\.\d+\.\d+\n$")
        self.assertRegex(self.ok("version", "--client"), r"^client \d+\.\d+\.\d+\n$")

    def test_a_stale_socket(self):
        s = socket.socket(socket.AF_UNIX)
        s.bind(self.sock)
        s.close()
        self.assertEqual(self.run_gpuq("queue")[0], 255)

    def test_wrong_addresses(self):
        for addr in ("tls://host:1", "nonsense", "unix:"):
            code, out, err = self.run_gpuq("queue", "--server", addr)
            self.assertEqual((code, out), (255, ""), addr)
            self.assertTrue(err.startswith("gpuq: "), addr)

    def test_default_places_are_named(self):
        code, out, err = self.run_gpuq("queue", env=self.env(GPUQ_SERVER=None))
        if code == 0:
            self.skipTest("a daemon serves this machine")
        self.assertEqual(code, 255)
        self.assertIn("/run/gpuq/gpuqd.sock", err)
        self.assertIn("start one with `gpuqd`", err)


if __name__ == "__main__":
    main()
