#!/bin/sh
test_description='MIG instances: what a node has of them, who gets them, what others took'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# instances NODE: "PROFILE COUNT FREE" a line
instances() {
	gpuq nodes --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    n = json.loads(line)
    if n["name"] == sys.argv[1]:
        for m in n.get("mig", []): print(m["profile"], m["count"], m["free"])' "$1"
}

has_instances() {
	[ "$(instances node-0000)" = "$1" ] || { echo "it has '$(instances node-0000)', not '$1'"; return 1; }
}

test_expect_success 'a node with two instances beside its devices' '
	start_fake && start_fake_gpuqd && /usr/bin/curl -sSf -X PATCH -H "Content-Type: application/merge-patch+json" \
		--data-binary "{\"status\": {\"allocatable\": {\"nvidia.com/mig-1g.10gb\": \"2\"}, \"capacity\": {\"nvidia.com/mig-1g.10gb\": \"2\"}}}" \
		"http://127.0.0.1:$fake_port/api/v1/nodes/node-0000/status" >/dev/null &&
	wait_for 60 has_instances "1g.10gb 2 2" && test "$(free_gpus)" = 8.285
'

test_expect_success 'a job takes one where they are, and asks the device plugin for it by its name' '
	a=$(fake_job hang=true --mig 1g.10gb) && job_becomes "$a" RUNNING && job_is "$a" pods.0.node node-0000 &&
	has_instances "1g.10gb 2 1" && test "$(free_gpus)" = 8.142 &&
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods" >pods.out &&
	grep -q "\"nvidia.com/mig-1g.10gb\": *\"1\"" pods.out
'

test_expect_success 'a third waits until one is free; another profile is nowhere' '
	b=$(fake_job hang=true --mig 1g.10gb) && job_becomes "$b" RUNNING && c=$(fake_job run=300ms --mig 1g.10gb) &&
	wait_for 60 job_is "$c" reason Resources && has_instances "1g.10gb 2 0" &&
	d=$(fake_job run=300ms --mig 3g.40gb 2>warned) && grep "no node can hold" warned && wait_for 60 job_is "$d" reason Unsatisfiable
'

test_expect_success 'the live state as a scenario has them as well' '
	gpuq export --scenario >now.yaml && "$test_build/gpuqd/gpuq-sim" run now.yaml >now.out && says now.out "running +$a +node-0000" &&
	says now.out "running +$b +node-0000" && says now.out "pending +$c +Resources 1g.10gb" && says now.out "pending +$d +Unsatisfiable" &&
	gpuq cancel "$a" && exits 0 gpuq wait "$c" && gpuq cancel "$b" "$d"
'

test_expect_success 'a restart finds who has which' '
	b=$(fake_job hang=true --mig 1g.10gb) && job_becomes "$b" RUNNING && kill_gpuqd && start_fake_gpuqd &&
	wait_for 60 has_instances "1g.10gb 2 1" && job_is "$b" state RUNNING && gpuq cancel "$b" &&
	wait_for 60 has_instances "1g.10gb 2 2"
'

test_done
