#!/bin/sh
test_description='what a scenario of a live daemon tells of MIG: layouts of pools, choices of running jobs'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

sim() {
	"$test_build/gpuqd/gpuq-sim" run "$@"
}

# task JOB: what the scenario has of its first task, as words
task() {
	/usr/bin/python3 -c '
import re, sys
for part in re.split(r"\n *- *\{?\"?job\"?: *", open("now.yaml").read()):
    if re.match(r"\"?%s\b" % sys.argv[1], part):
        print(" ".join(part.split("tasks:")[1].split()))' "$1"
}

test_expect_success 'a running job that accepts instances in place of a part is exported with that, and with the one that it has' '
	start_fake --nodes 2 --gpus 4 && offers node-0000 "\"nvidia.com/gpu\": null, \"nvidia.com/mig-3g.20gb\": \"2\"" && start_fake_gpuqd && wait_for 60 node_is node-0000 mig.0.count 2 &&
	a=$(fake_job hang=true --gpu-memory 18Gi --mig-ok -w node-0000) && job_becomes "$a" RUNNING && b=$(fake_job hang=true --gpu-memory 18Gi --mig-ok -w node-0000) && job_becomes "$b" RUNNING &&
	c=$(fake_job hang=true --gpu-memory 18Gi --mig-ok -w node-0000) && wait_for 60 job_is "$c" reason Resources && gpuq export --scenario >now.yaml && task "$a" >a.out && cat a.out &&
	says a.out "gpus: 1 mig_ok: true mig: 3g.20gb" && says a.out "gpu_mem_mb: 18432" && says a.out "node: node-0000" && task "$c" >c.out && cat c.out && says c.out "mig_ok: true" && ! grep -q "mig: 3g" c.out &&
	sim now.yaml >now.out && cat now.out && grep "running *$a *node-0000\\[3g.20gb" now.out && grep "pending *$c .*Resources" now.out
'

test_expect_success '... so that it is known where it could run instead' '
	sed "s/^    nodes:/    steps:\n      - {event: finish, job: \"$a\"}\n    nodes:/" now.yaml >end.yaml && sim end.yaml >end.out && cat end.out && grep "started *$c *node-0000\\[3g.20gb" end.out && gpuq cancel "$a" "$b" "$c"
'

test_expect_success 'pools whose nodes may be cut are exported with their layouts: the scenario has a node cut as gpuqd would' '
	echo "{version: 1, pools: [{name: m, mig: {manager: true, layouts: [all-1g.10gb, all-disabled], again: 30m}}]}" >site.yaml && gpuq apply -f site.yaml && gpuq drain node-0000 node-0001 >/dev/null &&
	a=$(fake_job hang=true --mig 1g.10gb 2>warned) && wait_for 60 job_is "$a" state PENDING && gpuq export --scenario >now.yaml && grep -A8 "^    pools:" now.yaml >pools.out && cat pools.out &&
	grep "name: m" pools.out && grep "manager: true" pools.out && grep "all-1g.10gb" pools.out && grep "again: 1800" pools.out && sim now.yaml >now.out && grep "pending *$a" now.out && ! grep "^  cut" now.out &&
	sed "s/state: drained/state: ready/; s/again: 1800/again: 1800, delay: 0/" now.yaml | sed "s/^\( *\)again: 1800, delay: 0/\1again: 1800\n\1delay: 0/" >cut.yaml && sim cut.yaml >cut.out && cat cut.out &&
	grep "^  cut *node-0001 *all-1g.10gb done for $a" cut.out && grep "started *$a *node-0001\\[1g.10gb" cut.out
'

no_harm_was_done

test_done
