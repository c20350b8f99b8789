#!/bin/sh
test_description='gpuq why and gpuq plan: what stands in the way, what would help, when and at whose cost'
. "$(dirname "$0")/lib.sh"

# why ID PATH: of the answer
why() {
	gpuq why --json "$1" >why.json && json "$2" <why.json
}

# changes ID: kind and what it takes, one a line
changes() {
	gpuq why --json "$1" | /usr/bin/python3 -c '
import json, sys
for c in json.load(sys.stdin)["waiting"]["changes"]:
    print(c["change"], c["how"], c.get("code", c.get("to", "")), *[j["job"] for j in c.get("jobs", [])])'
}

test_expect_success 'start' '
	cat >site.yaml <<-END &&
	version: 1
	qos:
	- {name: firm, preemptible: false}
	- {name: short-grace, grace: 1s}
	queues:
	- {name: lab, quota: 3, qos: [normal, firm, short-grace]}
	- {name: small, quota: 1, limit: 1, budget: {gpu_minutes: 1000, period: month, mode: soft}}
	- {name: guest}
	END
	start_gpuqd --site site.yaml
'

test_expect_success 'a plan on an empty cluster: at once, here, at that cost' '
	echo "command: [sleep, \"60\"]" >job && gpuq plan -p small -g 1 -t 30 --json job >plan.json &&
	test "$(json start.by <plan.json)" = now && test "$(json start.victims <plan.json)" = "[]" &&
	test "$(json start.pods.0.devices <plan.json)" = "[0]" &&
	test "$(json cost.gpu_hours <plan.json)" = 0.5 && test "$(json cost.gpu_minutes <plan.json)" = 30.0 &&
	test "$(json cost.budget.queue <plan.json)" = small && test "$(json cost.budget.left_gpu_minutes <plan.json)" = 1000.0 &&
	gpuq plan -p small -g 1 -t 30 -- sleep 60 >out && says out "^Starts +at once" && says out "^Costs .*0.5 GPU-hours" &&
	test -z "$(gpuq queue -a -h)"
'

test_expect_success 'what submitting would refuse, planning refuses' '
	exits 1 gpuq plan -p small -g 2 job && says err "queue small" && exits 1 gpuq plan -p nowhere job && exits 2 gpuq plan
'

test_expect_success 'a job that runs: what was so when it was decided' '
	firm=$(sh_job "sleep 600" -p lab -g 1 --qos firm -t 60) && job_becomes "$firm" RUNNING &&
	test "$(why "$firm" starts.0.allocated)" = 1 && test "$(why "$firm" starts.0.quota)" = 3 && test "$(why "$firm" waiting)" = null &&
	gpuq why "$firm" >out && says out "^Decided .*after being pending for" && says out "queue lab held 1 of default"
'

test_expect_success 'a queue at its limit: named, with who may lift it and whose end would do' '
	one=$(sh_job "sleep 600" -p small -g 1 -t 20) && job_becomes "$one" RUNNING && two=$(sh_job "sleep 600" -p small -g 1) &&
	wait_for 60 job_is "$two" reason LimitQueue && changes "$two" >got && echo "lift now LimitQueue" >want && test_cmp want got &&
	gpuq why "$two" >out && says out "^Would start +without LimitQueue .small., which the manager can lift"
'

test_expect_success 'its start is estimated by the end of the other' '
	/usr/bin/python3 - <<-END
	import datetime, json, subprocess
	def at(text):
	    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
	v = json.loads(subprocess.check_output(["gpuq", "why", "--json", "$two"]))
	one = json.loads(subprocess.check_output(["gpuq", "status", "--json", "$one"]))
	end = at(one["start_time"]) + 20 * 60
	assert v["start"]["by"] == "simulation" and end <= at(v["start"]["start_time"]) < end + 120, v["start"]
	END
'

test_expect_success 'a job too large now: a smaller one would start' '
	big=$(sh_job "sleep 600" -p lab -g 3) && wait_for 60 job_is "$big" reason Resources && changes "$big" >got &&
	says got "^gpus now 2" && says got "^end .* $firm\$" && test "$(why "$big" waiting.place)" = 1 && gpuq cancel "$big"
'

test_expect_success 'what it may take from others is said first: inside the quota, or beyond the share' '
	big=$(sh_job "sleep 600" -p lab -g 3) && held=$(sh_job "sleep 600" -p lab -g 2 --hold) && wait_for 60 job_is "$big" reason Resources &&
	test "$(why "$big" waiting.standing)" = beyond && test "$(why "$held" waiting.standing)" = quota &&
	gpuq why "$big" >out && says out "^Entitled +beyond the fair share of queue lab" && says out "^Free +2 GPUs .* 2 on one node" && gpuq why "$held" >out &&
	says out "^Entitled +within the quota of queue lab: " && gpuq cancel "$big" "$held"
'

test_expect_success 'who comes second is told behind whom, and by which term' '
	first=$(sh_job "sleep 600" -p lab -g 3) && second=$(sh_job "sleep 600" -p lab -g 3 --nice=7) &&
	wait_for 60 eval "why $second waiting.place | grep -x 2" && test "$(why "$second" waiting.ahead.0.job)" = "$first" &&
	test "$(why "$second" waiting.ahead.0.by)" = nice && test "$(why "$second" waiting.ahead.0.points)" = 7 &&
	gpuq cancel "$first" "$second"
'

test_expect_success 'whose devices are claimed is told before it happens' '
	guest=$(sh_job "sleep 600" -p guest -g 2) && job_becomes "$guest" RUNNING &&
	gpuq plan -p lab -g 2 --json job >plan.json && test "$(json start.by <plan.json)" = claim &&
	test "$(json start.victims.0.job <plan.json)" = "$guest" && test "$(json start.victims.0.rule <plan.json)" = reclaim-quota &&
	gpuq plan -p lab -g 2 job >out && says out "^Victims +$guest of " && says out "rule reclaim-quota: the preemptor is within"
'

test_expect_success 'and explained to both sides afterwards' '
	claimant=$(sh_job "sleep 600" -p lab -g 2) && job_becomes "$claimant" RUNNING 90 &&
	for id in $guest $claimant; do
		gpuq why "$id" >out && says out "^Claim .* job $claimant needed 2 of default" && says out "queue guest: 2 -> 0, fair share 0, quota 0" ||
			return 1
	done &&
	gpuq why "$guest" >out && says out "^Evicted .* reclaim for job $claimant of queue lab" && says out "rule reclaim-quota:"
'

test_expect_success 'jobs that are not there, and those that have ended' '
	exits 254 gpuq why 4711 && gpuq cancel "$claimant" "$guest" "$two" "$one" "$firm" && job_becomes "$firm" CANCELLED &&
	gpuq why "$firm" >out && says out "^State +CANCELLED" && stop_gpuqd
'

test_done
