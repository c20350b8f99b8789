#!/bin/sh
test_description='the ledger: what was used, refunded, wasted and paid, whoever was killed on the way; grants'
. "$(dirname "$0")/lib.sh"

cat >site.yaml <<'END'
version: 1
currency: EUR
default_budget: {gpu_minutes: 600, period: month}
flavors:
- {name: default, price: {on_demand: 7.20, committed: 3.60}}
pools:
- {name: bought, selector: {no: such}, billing: committed}
qos:
- {name: high, priority: 10}
- {name: cheap, usage_factor: 0.5}
queues:
- {name: lab}
- {name: vis, parent: lab, qos: [normal, high, cheap]}
- {name: nlp, parent: lab, budget: {gpu_minutes: 1, period: day, mode: hard}}
END

# balance [option...]: rows of the report against the objects of the jobs, in milliseconds
cat >balance.py <<'END'
import json, subprocess, sys
def lines(*args):
    return [json.loads(l) for l in subprocess.check_output(["gpuq", *args]).splitlines() if l.strip()]
jobs = {}
for j in lines("queue", "-t", "all", "--json"):
    key = (j["user"], j["queue"])
    jobs[key] = jobs.get(key, 0) + j["gpu_seconds"]
rows = {}
for r in lines("report", "--json", *sys.argv[1:]):
    assert r["v"] == 1 and set(r["wasted_gpu_seconds"]) == {"evicted", "starting", "held", "stranded", "fragmented"}, r
    rows[r["user"], r["queue"]] = rows.get((r["user"], r["queue"]), 0) + r["gpu_seconds"]
for key in set(jobs) | set(rows):
    if abs(jobs.get(key, 0) - rows.get(key, 0)) > 0.1:
        sys.exit("%s: jobs used %s, the report says %s" % (key, jobs.get(key, 0), rows.get(key, 0)))
END
balance() {
	/usr/bin/python3 balance.py "$@"
}

# reported PATH [option...]: of the one row
reported() {
	reported_path=$1
	shift
	gpuq report --json "$@" | json "$reported_path"
}
more() {
	awk "BEGIN { exit !($1 > $2) }"
}

test_expect_success 'what ended is in the report, to the second and at its price' '
	start_gpuqd --site "$PWD/site.yaml" && gpuq report --json >none && ! grep . none &&
	one=$(sh_job "sleep 1.2" -p vis -g 2 --qos cheap) && job_becomes "$one" COMPLETED &&
	balance &&
	test "$(reported queue)" = vis && test "$(reported flavor)" = default && test "$(reported pods)" = 1 &&
	test "$(reported currency)" = EUR && test "$(reported share)" = 1.0 &&
	awk "BEGIN { d = $(reported cost) - $(reported gpu_seconds) * 0.002; exit d * d > 1e-8 }"
'

test_expect_success 'a table has hours, shares and money' '
	gpuq report >table && says table "^USER +QUEUE +FLAVOR +GPU_HOURS +SHARE +REFUNDED +WASTE +PODS +COST" &&
	says table " vis +default +0.00 +100.0% +0.00 +0.00 +1 +0.0[0-9] EUR$" &&
	gpuq report --by queue,day -h >table && says table "^vis +[0-9]{4}-[0-9]{2}-[0-9]{2} +0.00 " &&
	exits 2 gpuq report --by color && says err "color: expected user, queue, flavor, isolation or day" &&
	exits 2 gpuq report --since tomorrowish && says err "since tomorrowish: expected an instant"
'

test_expect_success 'it begins and ends at any instant' '
	before=$(date -u -d "1 hour ago" +%Y-%m-%dT%H:%M:%SZ) && later=$(date -u +%Y-%m-%dT%H:%M:%SZ) &&
	balance --since "$before" && gpuq report --json --until "$before" >none && ! grep . none &&
	sleep 1.1 && gpuq report --json --since 1s >none && ! grep . none &&
	exits 1 gpuq report --since "$later" --until "$before" && says err "the end is before the start"
'

test_expect_success 'half of what a cheap qos uses is taken from the budget' '
	gpuq usage --json vis | head -n 1 >vis && test "$(json budget_gpu_minutes <vis)" = 600 &&
	awk "BEGIN { d = $(json used_gpu_minutes <vis) * 120 - $(reported gpu_seconds); exit d * d > 0.01 }" &&
	gpuq usage lab --json >lab && test "$(json budget_gpu_minutes <lab)" = null
'

test_expect_success 'what runs is charged as it goes, once, also when the daemon is killed twice' '
	run=$(sh_job "exec sleep 600" -p vis -g 1) && job_becomes "$run" RUNNING && balance &&
	kill_gpuqd && start_gpuqd && job_is "$run" state RUNNING && balance && kill_gpuqd &&
	sleep 1 && start_gpuqd && balance && more "$(reported gpu_seconds)" 3 &&
	more "$(gpuq usage --json vis | head -n 1 | json used_gpu_minutes)" 0.02
'

test_expect_success 'the work of an eviction is lost and refunded' '
	used=$(gpuq usage --json vis | head -n 1 | json used_gpu_minutes) &&
	rest=$(sh_job "exec sleep 600" -p vis -g 3) && job_becomes "$rest" RUNNING && sleep 1.1 &&
	high=$(sh_job "exit 0" -p vis -g 4 --qos high) && job_becomes "$high" COMPLETED &&
	more "$(reported refunded_gpu_seconds)" 3 &&
	test "$(reported refunded_gpu_seconds)" = "$(reported wasted_gpu_seconds.evicted)" &&
	more "$(reported wasted_gpu_seconds.held)" 0 && more "$(reported wasted_gpu_seconds.starting)" 0 &&
	exits 0 gpuq cancel "$run" "$rest" && job_becomes "$run" CANCELLED && job_becomes "$rest" CANCELLED && balance &&
	before=$(reported refunded_gpu_seconds) && kill_gpuqd && start_gpuqd && balance &&
	test "$(reported refunded_gpu_seconds)" = "$before" && balance --since 2h &&
	test "$(reported refunded_gpu_seconds --since 2h)" = "$before"
'

test_expect_success 'AC-KGS-6: a grant is there at once, and after a restart' '
	exits 1 gpuq queues grant nowhere 5 && exits 1 gpuq queues grant lab 5 && says err "queue lab has no budget" &&
	exits 2 gpuq queues grant nlp && exits 2 gpuq queues grant nlp x &&
	long=$(sh_job "exit 0" -p nlp -g 1 -t 5) && wait_for 60 job_is "$long" reason Budget && job_is "$long" reasons.0.object nlp &&
	exits 0 gpuq queues grant nlp 10 --reason "paper deadline" && says out "^nlp: budget 1, granted 10, used 0 GPU-minutes$" &&
	says gpuqd.log "queue.granted queue=nlp gpu_minutes=10 .*paper deadline" && job_becomes "$long" COMPLETED &&
	kill_gpuqd && start_gpuqd && gpuq usage nlp --json | head -n 1 >nlp && test "$(json granted_gpu_minutes <nlp)" = 10 &&
	exits 0 gpuq queues grant nlp -- -5 && gpuq usage nlp --json | head -n 1 >nlp && test "$(json granted_gpu_minutes <nlp)" = 5
'

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS
test_expect_success FAILPOINTS 'a node whose devices do not add up is left alone, and says so' '
	kill_gpuqd && rm -f gpuqd.log && GPUQ_FAILPOINT="census.check:*=eio" start_gpuqd &&
	wait=$(sh_job "exit 0" -p vis -g 1) && wait_for 60 job_is "$wait" reason NodesUnavailable &&
	says gpuqd.log "node.frozen node=.*a test says so" && test "$(gpuq nodes --json | json state)" = suspect &&
	test "$(gpuq nodes --json | json note)" = "a test says so" && test "$(gpuq status --json | json devices.stranded)" = 4 &&
	test "$(gpuq status --json | json frozen_nodes)" != "[]" && kill_gpuqd && start_gpuqd && job_becomes "$wait" COMPLETED
'

test_expect_success 'the daemon stops' 'stop_gpuqd'

test_done
