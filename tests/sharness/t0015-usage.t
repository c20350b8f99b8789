#!/bin/sh
test_description='what jobs use is charged once, counts for budgets and for whose turn it is'
. "$(dirname "$0")/lib.sh"

# used QUEUE: GPU-minutes; more A B: A > B
used() {
	gpuq queues --json "$1" | json used_gpu_minutes
}
more() {
	awk "BEGIN { exit !($1 > $2) }"
}
used_more() {
	more "$(used "$1")" "$2"
}

test_expect_success 'over-committed quotas are told when a site is read' '
	cat >site.yaml <<-END &&
	version: 1
	qos:
	- {name: high, priority: 10}
	queues:
	- {name: day, quota: 3, qos: [normal, high], budget: {gpu_minutes: 10, period: day, mode: hard}}
	- {name: open, quota: 2}
	END
	start_gpuqd --site site.yaml &&
	wait_for 60 says gpuqd.log "site.overcommitted .*parent=- flavor=default quotas=5.000 has=4.000"
'

test_expect_success 'a job that may use more than the budget waits, and is told the numbers' '
	big=$(sh_job "exit 0" -p day -g 1 -t 11) && wait_for 60 job_is "$big" reason Budget &&
	job_is "$big" reasons.0.have 10 && job_is "$big" reasons.0.need 11 && job_is "$big" reasons.0.object day
'

test_expect_success 'a shorter one starts, and holds what it may use' '
	run=$(sh_job "sleep 300" -p day -g 1 -t 8) && job_becomes "$run" RUNNING &&
	two=$(sh_job "exit 0" -p day -g 1 -t 3) && wait_for 60 job_is "$two" reason BudgetCommitted &&
	none=$(sh_job "exit 0" -p day -g 0 -t 600) && job_becomes "$none" COMPLETED
'

test_expect_success 'running jobs are charged all the time' '
	wait_for 60 used_more day 0.01
'

test_expect_success 'a restart forgets nothing and charges nothing twice' '
	before=$(used day) && kill_gpuqd && start_gpuqd --site site.yaml &&
	job_is "$run" state RUNNING && used_more day "$before" &&
	gpuq queues --json day && ! used_more day 5
'

test_expect_success 'what a job did not use is free when it ends' '
	exits 0 gpuq cancel "$run" && job_becomes "$run" CANCELLED && job_becomes "$two" COMPLETED &&
	after=$(used day) && used_more day 0.01 && ! used_more day 5 &&
	sleep 1.1 && test "$(used day)" = "$after"
'

test_expect_success 'a higher class comes first, whoever waits longer' '
	exits 0 gpuq cancel "$big" &&
	fill=$(sh_job "until [ -e $TMPDIR/go ]; do sleep 0.05; done" -p open -g 4) && job_becomes "$fill" RUNNING &&
	low=$(sh_job "cat /proc/uptime" -p day -g 4 -t 1) && high=$(sh_job "cat /proc/uptime" -p day -g 4 -t 1 --qos high) &&
	wait_for 60 eval "more \$(job $high priority) \$(job $low priority)" &&
	job_is "$high" priority_terms.qos 100000000 && job_is "$low" priority_terms.qos 0 &&
	test "$(job "$low" priority_terms.fairshare)" = "$(job "$high" priority_terms.fairshare)" &&
	touch "$TMPDIR/go" && job_becomes "$low" COMPLETED && job_becomes "$high" COMPLETED &&
	more "$(gpuq logs "$low" | cut -d" " -f1)" "$(gpuq logs "$high" | cut -d" " -f1)"
'

test_expect_success ROOT 'who has used less comes first' '
	rm -f "$TMPDIR/go" && open_to_all &&
	fill=$(sh_job "until [ -e $TMPDIR/go ]; do sleep 0.05; done" -p open -g 4) && job_becomes "$fill" RUNNING &&
	mine=$(sh_job "cat /proc/uptime" -p open -g 4) &&
	printf "#!/bin/sh\ncat /proc/uptime\n" >theirs.sh &&
	theirs=$(as nobody env HOME=/ gpuq submit --parsable --chdir / -p open -g 4 - <theirs.sh) &&
	wait_for 60 eval "more \$(job $theirs priority) \$(job $mine priority)" &&
	touch "$TMPDIR/go" && job_becomes "$mine" COMPLETED && job_becomes "$theirs" COMPLETED &&
	more "$(gpuq logs "$mine" | cut -d" " -f1)" "$(gpuq logs "$theirs" | cut -d" " -f1)"
'

test_expect_success 'the daemon stops' 'stop_gpuqd'

test_done
