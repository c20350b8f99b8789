"""Help and completion follow from the tables."""
import re
import shutil
import subprocess

from fake import Case, GPUQ, main


class Help(Case):
    def commands(self):
        out = self.ok("help")
        return re.findall(r"^  ([a-z-]+) +\S", out, re.M)

    def options(self, command):
        out = self.ok(command, "--help")
        return re.findall(r"^  (?:-(\S),|   ) --([a-z-]+)", out, re.M)

    def test_every_command_has_help(self):
        names = self.commands()
        self.assertIn("submit", names)
        for name in names:
            out = self.ok(name, "--help")
            self.assertTrue(out.startswith("Usage: gpuq " + name), name)
            self.assertEqual(self.ok("help", name), out)
        self.assertEqual(self.ok("--help"), self.ok("help"))

    def test_names_and_letters_are_unique(self):
        for name in self.commands():
            options = self.options(name)
            longs = [o[1] for o in options]
            letters = [o[0] for o in options if o[0]]
            self.assertEqual(len(longs), len(set(longs)), name)
            self.assertEqual(len(letters), len(set(letters)), name)
            self.assertIn("help", longs)
            self.assertIn("server", longs)

    def test_lists_share_their_options(self):
        for name in ("queue", "nodes", "queues"):
            options = self.options(name)
            for o in (("h", "no-header"), ("o", "format"), ("", "json"), ("", "watch"),
                      ("", "limit"), ("S", "sort")):
                self.assertIn(o, options, name)

    def test_filters_are_the_same_everywhere(self):
        for name in ("queue", "cancel", "hold", "release"):
            letters = {o[0] for o in self.options(name)}
            self.assertLessEqual(set("uqtnwj"), letters, name)

    def test_unknown_words_get_the_nearest(self):
        self.assertEqual(self.run_gpuq("sumbit"),
                         (2, "", "gpuq: no command sumbit; did you mean submit?\n"))
        self.assertIn("did you mean --json?", self.run_gpuq("queue", "--jsno")[2])
        self.assertIn("needs a value", self.run_gpuq("queue", "-o")[2])
        self.assertIn("no option -Z", self.run_gpuq("queue", "-Z")[2])
        self.assertIn("takes no value", self.run_gpuq("queue", "--json=1")[2])

    def test_completion_knows_every_option(self):
        for shell in ("bash", "zsh", "fish"):
            out = self.ok("completion", shell)
            for name in self.commands():
                self.assertIn(name, out)
            for _, o in self.options("submit"):
                self.assertTrue("--" + o in out or "-l " + o in out, (shell, o))
        self.assertEqual(self.run_gpuq("completion", "tcsh")[0], 2)

    def test_shells_accept_their_scripts(self):
        for shell, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]),
                             ("fish", ["fish", "--no-execute"])):
            if not shutil.which(shell):
                continue
            p = self.path(shell, self.ok("completion", shell))
            r = subprocess.run(check + [p], capture_output=True, timeout=60)
            self.assertEqual((r.returncode, r.stderr), (0, b""), shell)

    def test_bash_completes(self):
        if not shutil.which("bash"):
            self.skipTest("no bash")
        p = self.path("c", self.ok("completion", "bash"))
        script = (". %s; COMP_WORDS=(gpuq %s); COMP_CWORD=%d; compopt() { :; }; _gpuq; "
                  "echo ${COMPREPLY[*]}")

        def complete(words, at):
            r = subprocess.run(["bash", "-c", script % (p, words, at)], timeout=60,
                               capture_output=True, text=True, cwd=self.dir)
            self.assertEqual(r.stderr, "")
            return r.stdout.split()
        self.assertEqual(complete("canc", 1), ["cancel"])
        self.assertEqual(complete("submit --start-t", 2), ["--start-timeout="])
        self.assertEqual(complete("completion f", 2), ["fish"])

    def test_nothing_is_written_to_a_full_disk_in_silence(self):
        with open("/dev/full", "w") as full:
            r = subprocess.run([GPUQ, "help"], stdout=full, stderr=subprocess.PIPE,
                               env=self.env(), timeout=60)
        self.assertEqual(r.returncode, 1)
        self.assertIn(b"standard output", r.stderr)


if __name__ == "__main__":
    main()
