#!/bin/sh
test_description='each device is one of eight things at every moment, and they add up, whatever goes on'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# watch.py: asks until ./stop is there; prints what was wrong, and which kinds were seen
cat >watch.py <<'END'
import json, os, socket, subprocess, sys
seen, n, last = {}, 0, None
while not os.path.exists("stop"):
    ask = subprocess.run(["gpuq", "status", "--json"], capture_output=True, text=True)
    if ask.returncode:
        continue
    s = json.loads(ask.stdout)
    d = s["devices"]
    if set(d) != {"allocated", "held", "reserved", "free", "stranded", "draining", "lost", "provisioning"}:
        sys.exit("other words: %s" % d)
    if abs(sum(d.values()) - s["gpus"]) > 1e-9 or min(d.values()) < 0 or s["frozen_nodes"]:
        sys.exit("sample %d: %s" % (n, s))
    if s["gpus"] not in (8, 6, 4):
        sys.exit("sample %d: %s devices" % (n, s["gpus"]))
    n += 1
    for k, v in d.items():
        if v and k not in seen:
            seen[k] = v
            with open("seen", "a") as f: print(k, file=f)
END

seen() {
	grep -qx "$1" seen
}
node_is() {
	gpuq nodes "$1" --json | json state | grep -qx "$2"
}

test_expect_success 'start, with somebody who watches all the time' '
	printf "version: 1\nqueues:\n- {name: left, quota: 4}\n- {name: right, quota: 4}\n" >site.yaml && touch seen &&
	start_fake && start_fake_gpuqd --site "$PWD/site.yaml" && wait_for 60 eval "test \$(free_gpus) = 8" &&
	{ /usr/bin/python3 watch.py >watch.out 2>&1 3>&- 4>&- 5>&- & } && watching=$! && wait_for 60 seen free
'

test_expect_success 'jobs that run, and others that claim their places' '
	for i in 1 2 3 4 5 6 7 8; do fake_job "hang=true slow-exit=$((i * 400))ms" -p left -g 1 >>ids || return 1; done &&
	job_becomes "$(tail -n 1 ids)" RUNNING && wait_for 60 seen allocated && r=$(fake_job "run=300ms" -p right -N 2 --gpus-per-node=2 -t 10) &&
	wait_for 60 seen held && job_becomes "$r" COMPLETED
'

test_expect_success 'half of a device' '
	for i in 1 2 3; do h=$(fake_job run=200ms -p right -g 0.5 -t 10) || return 1; done && { gpuq cancel -q right >out || :; }
'

test_expect_success 'nodes that are drained and used again' '
	exits 0 gpuq drain node-0000 --reason fan && wait_for 60 node_is node-0000 "drain.*" && gpuq cancel -q left >out && wait_for 60 seen draining &&
	exits 0 gpuq resume node-0000
'

test_expect_success 'reservations: of a node, of an amount, for nobody and for a queue' '
	wait_for 60 eval "test \$(in_queue) = 0" && exits 0 gpuq reserve whole --start now -t 1h -w node-0001 && wait_for 60 seen reserved &&
	exits 0 gpuq reserve --delete whole && exits 0 gpuq reserve some --start now -t 1h -g 3 -q right && a=$(fake_job run=500ms -p right -g 2 -t 10) &&
	job_becomes "$a" COMPLETED && exits 0 gpuq reserve --delete some
'

test_expect_success 'nodes that go down, come back, lose devices and are gone' '
	a=$(fake_job hang=true -p left -g 4) && b=$(fake_job hang=true -p right -g 4) && job_becomes "$a" RUNNING && job_becomes "$b" RUNNING &&
	fault "node-down node-0000" && wait_for 60 seen lost && fault "node-up node-0000" && wait_for 60 eval "node_is node-0000 \"alloc|mixed|idle\" || true" &&
	fault "devices node-0001=2" && sleep 1 && fault "devices node-0001=4" && sleep 0.5 && fault "node-gone node-0000" && sleep 1.5 &&
	fault "node-add node-0000 gpus=4" && wait_for 60 eval "test \$(gpuq status --json | json gpus) = 8" && gpuq cancel --me >out && wait_for 60 eval "test \$(in_queue) = 0"
'

test_expect_success 'devices beside which there is no core left' '
	a=$(fake_job hang=true -p left -g 1 -c 64 -w node-0000) && job_becomes "$a" RUNNING && wait_for 60 seen stranded && gpuq cancel "$a"
'

test_expect_success 'the daemon is killed in the middle of it' '
	for i in 1 2 3 4 5 6; do fake_job "run=2s" -p left -g 1 >>ids || return 1; done &&
	kill_gpuqd && start_fake_gpuqd && sleep 2
'

test_expect_success 'it has always added up, and every kind was seen' '
	touch stop && { wait "$watching" || :; } && cat watch.out && test_must_be_empty watch.out &&
	printf "%s\n" allocated draining free held lost reserved stranded >want && sort -u seen >got && test_cmp want got
'

no_harm_was_done
test_done
