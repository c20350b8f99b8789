#!/bin/sh
test_description='every reason is met: its code, what stands in the way, have, need, who can act, and what gpuq why says of it'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# write_site [LIMIT]: LIMIT on the devices of one job of queue single
write_site() {
	cat >site.yaml <<-END
	version: 1
	qos:
	- {name: firm, preemptible: false}
	licenses:
	- {name: matlab, count: 1}
	queues:
	- {name: wide, quota: 8, qos: [normal, firm]}
	- {name: lim, limit: 1}
	- {name: single, max_gpus: {job: ${1-4}}}
	- {name: mine, max_running: {user: 1}}
	- {name: firm, quota: 1, qos: [firm]}
	- {name: purse, budget: {gpu_minutes: 10, period: day, mode: hard}}
	- {name: shut, stopped: true}
	- {name: left}
	- {name: right}
	- {name: vip}
	END
}

# has JOB CODE OBJECT HAVE NEED WHO: it has that reason; `*` = whatever
has() {
	gpuq status "$1" --json >has.json && /usr/bin/python3 - "$@" <<-'END'
	import json, sys
	job, code, object, have, need, who = sys.argv[1:]
	reasons = [r for line in open("has.json") for r in json.loads(line)["reasons"]]
	for r in reasons:
	    got = [r["code"]] + ["-" if x is None else str(x) for x in (r["object"], r["have"], r["need"], r["who"])]
	    if all(w in ("*", g) for w, g in zip((code, object, have, need, who), got)):
	        assert r["since"], r
	        break
	else:
	    sys.exit("job %s: %s" % (job, reasons))
	END
}

# meets JOB CODE OBJECT HAVE NEED WHO: it gets that reason; gpuq why tells the same, and what the word means
meets() {
	wait_for ${REASON_WAIT-60} has "$@" && gpuq why "$1" >why.out && says why.out "^(Reason)? +$2" &&
		case $6 in nobody) : ;; *) says why.out "$2.*can be changed by $6" ;; esac &&
		says why.out "$(sed -n "s/.*X([A-Z_]*, \"$2\", \"$6\", *\"\([a-z' ]*\).*/\1/p" "$test_source/libgpuq/names.h")" &&
		echo "$2" >>met
}

# nobody: all jobs have ended
nobody() {
	fault clear && gpuq cancel "$@" >out; wait_for 60 eval "test \$(in_queue) = 0"
}

test_expect_success 'start' '
	printf "scheduler: {claim_spare_max: 1, cross_queue_priority: true}\n" >gpuqd.yaml &&
	write_site && start_fake && start_fake_gpuqd --config gpuqd.yaml --site "$PWD/site.yaml" && wait_for 60 eval "test \$(free_gpus) = 8"
'

test_expect_success 'devices: too few, in pieces, never enough, on nodes that are out of use' '
	nobody --me && a=$(fake_job hang=true -p wide -g 2 -w node-0000) && b=$(fake_job hang=true -p wide -g 2 -w node-0001) &&
	job_becomes "$a" RUNNING && job_becomes "$b" RUNNING &&
	j=$(fake_job hang=true -p wide -g 3) && meets "$j" Fragmented gpus 2 3 nobody && gpuq cancel "$j" &&
	j=$(fake_job hang=true -p wide -g 5) && meets "$j" Unsatisfiable gpus 4 5 user && gpuq cancel "$j" &&
	c=$(fake_job hang=true -p wide -g 2 -w node-0000) && d=$(fake_job hang=true -p wide -g 1 -w node-0001) &&
	job_becomes "$c" RUNNING && job_becomes "$d" RUNNING &&
	j=$(fake_job hang=true -p wide -g 2) && meets "$j" Resources gpus 1 2 nobody && gpuq cancel "$j" &&
	gpuq drain node-0000 --reason test && j=$(fake_job hang=true -p wide -g 4 -w node-0000) &&
	meets "$j" NodesUnavailable node-0000 0 1 operator && gpuq resume node-0000 && nobody --me
'

test_expect_success 'times: begin, deadline' '
	nobody --me && j=$(fake_job hang=true -p wide -g 1 --begin now+1h) && meets "$j" BeginTime - "*" "*" user &&
	k=$(fake_job hang=true -p wide -g 1 -t 20 --begin now+1h --deadline now+90m) &&
	gpuq update "$k" time=2h && meets "$k" Deadline - "*" "*" user && nobody --me
'

test_expect_success 'other jobs: dependencies, an array, those ahead, those that leave' '
	nobody --me && a=$(fake_job hang=true -p wide -g 4 -t 30) && job_becomes "$a" RUNNING && bad=$(fake_job "run=100ms exit-code=3" -p wide --retry=0) &&
	job_becomes "$bad" FAILED && j=$(fake_job hang=true -p wide -g 1 -d "afterok:$a") && meets "$j" Dependency "afterok:$a" - - user &&
	k=$(fake_job hang=true -p wide -g 1 -d "afterok:$bad") && meets "$k" DependencyNever "afterok:$bad" - - user &&
	r=$(fake_job hang=true -p wide -g 1 --array=0-3%1) && meets "$r" ArrayLimit - 1 2 user && gpuq cancel "$j" "$k" "$r" >out &&
	wait_for 60 eval "test \$(in_queue) = 1" &&
	big=$(fake_job hang=true -p wide -N 2 --gpus-per-node=4 -t 60) && meets "$big" Resources gpus 4 8 nobody &&
	j=$(fake_job hang=true -p wide --qos firm -g 1 -t 600 --nice=100) && meets "$j" Priority "$big" - - nobody && nobody --me
'

test_expect_success 'claims: victims that leave, a share that is exceeded' '
	nobody --me && a=$(fake_job hang=true -p left -g 4) &&
	b=$(fake_job hang=true -p left -g 4) && job_becomes "$a" RUNNING && job_becomes "$b" RUNNING &&
	j=$(fake_job hang=true -p right -N 2 --gpus-per-node=3) && meets "$j" FairShare right 4 6 nobody && gpuq cancel "$j" >out &&
	fault "on DELETE pods every=1 status=503" && k=$(fake_job hang=true -p wide -g 4) && meets "$k" Victims "*" "*" "*" nobody &&
	fault clear && nobody --me
'

test_expect_success 'claims: what would be left over, until the daemon is told that it may be' '
	nobody --me && a=$(fake_job hang=true -p left -g 4) && job_becomes "$a" RUNNING && b=$(fake_job hang=true -p left -g 4) &&
	job_becomes "$b" RUNNING && j=$(fake_job hang=true -p right -g 2) && meets "$j" ClaimSpare claim_spare_max 1 2 operator &&
	says why.out "Would start +without ClaimSpare .claim_spare_max.*operator" && gpuq export --scenario >scenario.out && says scenario.out "claim_spare_max: 1" && says scenario.out "cross_queue_priority: true" &&
	printf "scheduler: {claim_spare_max: 2}\n" >gpuqd.yaml && kill -HUP $gpuqd_pid && job_becomes "$j" RUNNING && nobody --me
'

test_expect_success 'people: holds of the owner and of an operator' '
	nobody --me && j=$(fake_job hang=true -p wide -g 1 --hold) && meets "$j" HeldUser - - - user && nobody --me
'

test_expect_success ROOT 'people: an operator' '
	nobody --me && open_to_all && echo "{command: [a], image: test}" >other.yaml && chmod a+r other.yaml &&
	j=$(as nobody gpuq submit --parsable -p wide -g 1 --hold other.yaml) && gpuq hold "$j" && meets "$j" HeldAdmin - - - operator && nobody "$j"
'

test_expect_success 'limits: of a queue, a user, a job, a quota, licenses, a stopped queue' '
	nobody --me && a=$(fake_job hang=true -p lim -g 1) && job_becomes "$a" RUNNING && j=$(fake_job hang=true -p lim -g 1) &&
	meets "$j" LimitQueue lim 0 1 manager && nobody --me &&
	a=$(fake_job hang=true -p mine -g 1) && job_becomes "$a" RUNNING && j=$(fake_job hang=true -p mine -g 1) &&
	meets "$j" LimitUser mine 0 1 manager && nobody --me &&
	a=$(fake_job hang=true -p firm --qos firm -g 1) && job_becomes "$a" RUNNING && j=$(fake_job hang=true -p firm --qos firm -g 1) &&
	meets "$j" Quota firm 0 1 manager && nobody --me &&
	j=$(fake_job hang=true -p single -g 3 --hold) && write_site 2 && exits 0 gpuq apply -f site.yaml && gpuq release "$j" &&
	meets "$j" LimitJob single 2 3 user && nobody --me &&
	a=$(fake_job hang=true -p wide -L matlab) && job_becomes "$a" RUNNING && j=$(fake_job hang=true -p wide -L matlab) &&
	meets "$j" License matlab 0 1 operator && nobody --me &&
	j=$(fake_job hang=true -p shut -g 1) && meets "$j" QueueStopped shut - - manager && nobody --me
'

test_expect_success 'budgets: used up, and committed' '
	nobody --me && j=$(fake_job hang=true -p purse -g 1 -t 11) && meets "$j" Budget purse 10 11 manager && gpuq cancel "$j" >out &&
	a=$(fake_job hang=true -p purse -g 1 -t 8) && job_becomes "$a" RUNNING && j=$(fake_job hang=true -p purse -g 1 -t 5) &&
	meets "$j" BudgetCommitted purse "*" 5 manager && nobody --me
'

test_expect_success 'the calendar' '
	nobody --me && exits 0 gpuq reserve demo --start now --duration 1h --pool default --queue vip && j=$(fake_job hang=true -p wide -g 1 -t 30) &&
	meets "$j" Reservation demo "*" "*" operator && exits 0 gpuq reserve --delete demo && nobody --me
'

test_expect_success 'the cluster: a quota of the namespace, pods that are being started, nobody who has looked yet' '
	nobody --me && /usr/bin/curl -sSf -H "Content-Type: application/json" --data-binary "{\"apiVersion\": \"v1\", \"kind\": \"ResourceQuota\",
		\"metadata\": {\"name\": \"q\"}, \"spec\": {\"hard\": {\"requests.nvidia.com/gpu\": \"2\"}}}" \
		"http://127.0.0.1:$fake_port/api/v1/namespaces/default/resourcequotas" >/dev/null &&
	a=$(fake_job hang=true -p wide -g 2) && job_becomes "$a" RUNNING && j=$(fake_job hang=true -p wide -g 2) &&
	meets "$j" NamespaceQuota "*" "*" "*" operator && nobody --me &&
	j=$(fake_job "hang=true start=600s" -p wide -g 1) && meets "$j" Starting - - - nobody && nobody --me &&
	stop_fake && wait_for 90 is_stale && j=$(fake_job hang=true -p wide -g 1) && meets "$j" NotEvaluated - - - nobody
'

# What does not happen here: ClaimsRest takes claims that go back and forth (tests/unit/test_reversal), HeldRetries
# pods that never run, again and again, NodeEnds nodes that were requested for a time (tests/unit/test_asks),
# NodesAvoided a node that failed its job (tests/scenario/reasons.yaml).
# FlavorWait (t0575), MigLayout (t0539), Provisioning (t38), ProvisioningFailed and ProvisioningLimit (t41), Fenced, ClusterRefused, VolumeNotFound and
# VolumePending need a real control plane (t17, t31, and kube-refused); so does DeviceClaim (t36).
test_expect_success 'no reason is left out' '
	sed -n "/define GPUQ_REASONS/,/^$/s/.*X([A-Z_]*, \"\([A-Za-z]*\)\".*/\1/p" "$test_source/libgpuq/names.h" | sort >all &&
	printf "%s\n" ClaimsRest ClusterRefused DeviceClaim Fenced FlavorWait HeldRetries MigLayout NodeEnds NodesAvoided None Provisioning ProvisioningFailed ProvisioningLimit Recovering RestoredUnknown VolumeInUse VolumeNotFound VolumePending >>met && { test_have_prereq ROOT || echo HeldAdmin >>met; } &&
	sort -u met >got && test_cmp all got
'

test_done
