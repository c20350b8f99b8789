#!/bin/sh
test_description='AC-RAI-8: a job whose devices do nothing is stopped; what is not measured is not idle'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

cat >site.yaml <<'END'
version: 1
qos:
- {name: train, idle: 6s, max_time: 2h}
- {name: free}
queues:
- {name: lab, qos: [free, train]}
- {name: debug, idle: 4s, qos: [free, train]}
END

# page LINE...: what the metrics say from now on; USE POD DEVICE a line
page() {
	for page_line; do echo "$page_line"; done | while read -r use pod device; do
		echo "DCGM_FI_DEV_GPU_UTIL{gpu=\"$device\",UUID=\"GPU-$pod-$device\",pod=\"dcgm\",exported_pod=\"$pod\"} $use"
	done >page.new && mv page.new page
}

pod_of() {
	job "$1" "pods.$2.name"
}

# lasts SECONDS command...: it is true all that time
lasts() {
	lasts_until=$(($(date +%s) + $1))
	shift
	while [ "$(date +%s)" -lt $lasts_until ]; do
		"$@" || return 1
		sleep 0.2
	done
}

start_metrics() {
	rm -f metrics.port
	/usr/bin/python3 "$test_source/tests/sharness/metrics_page.py" "$PWD/metrics.port" "$PWD/page" </dev/null >>metrics.log 2>&1 3>&- 4>&- 5>&- &
	wait_for 60 test -s metrics.port && metrics_port=$(cat metrics.port)
}

# conf PATH...: the endpoints that are asked
conf() {
	{
		echo "metrics:"
		for conf_path; do echo "- http://127.0.0.1:$metrics_port$conf_path"; done
		echo "metrics_interval: 300ms"
		echo "idle_window: 2s"
	} >gpuqd.yaml
}

measured() {
	gpuq status --json | json "measured.$1"
}

test_expect_success 'a rule that is no shorter than the time limit is refused where it stands' '
	printf "version: 1\nqos:\n- {name: x, idle: 2h, max_time: 2h}\n" >bad.yaml &&
	test_must_fail gpuqd --state bad --site bad.yaml --check 2>err && says err "bad.yaml:3:[0-9]+: qos\[x\].idle: not shorter than max_time" &&
	printf "version: 1\nqueues:\n- {name: x, idle: 3h, max_time: 2h}\n" >bad.yaml &&
	test_must_fail gpuqd --state bad --site bad.yaml --check 2>err && says err "bad.yaml:3:[0-9]+: queues\[x\].idle: not shorter"
'

test_expect_success 'start; a job at zero is stopped after its time, one that does something is not' '
	: >page && start_metrics && conf /metrics && start_fake && start_fake_gpuqd --config gpuqd.yaml --site "$PWD/site.yaml" &&
	idle=$(fake_job hang=true --queue lab --qos train -g 1) && busy=$(fake_job hang=true --queue lab --qos train -g 1) &&
	other=$(fake_job hang=true --queue lab -g 1) &&
	job_becomes "$idle" RUNNING && job_becomes "$busy" RUNNING && job_becomes "$other" RUNNING &&
	page "0 $(pod_of "$idle" 0) 0" "1 $(pod_of "$busy" 0) 1" "0 $(pod_of "$other" 0) 2" &&
	wait_for 60 job_is "$idle" use.percent 0.0 && job_is "$idle" use.idle_limit_s 6 && job_is "$idle" use.idle_rule qos/train &&
	wait_for 60 eval "gpuq status $idle | grep -q \"^ *Use *0.0 %.* stopped when idle for .*6 (qos/train)\"" &&
	job_becomes "$idle" TIMEOUT && job_is "$busy" state RUNNING && job_is "$busy" use.percent 1.0 && job_is "$busy" use.idle_s 0 &&
	job_is "$other" state RUNNING
'

test_expect_success 'the end says why, wherever one looks; the exit code is that of a time limit' '
	job_is "$idle" end_cause idle && job "$idle" message >out && says out "^all its devices were idle for 6s; qos/train allows 6s$" &&
	gpuq status "$idle" >out && says out "End cause *idle" && gpuq why "$idle" >out && says out "TIMEOUT: all its devices were idle" &&
	gpuq history -o JOBID,END_CAUSE,MESSAGE >out && says out "^ *$idle +idle +all its devices were idle" &&
	gpuq events "$idle" --json >out && says out "\"event\":\"job.evict_asked\".*\"cause\":\"idle\"" && says out "\"rule\":\"qos/train\"" &&
	exits 251 gpuq wait "$idle" && says err "^gpuq-result: .*\"state\":\"TIMEOUT\""
'

test_expect_success 'one busy window and it is counted from nothing; the tighter of two rules counts' '
	a=$(fake_job hang=true --queue debug --qos train -g 1) && job_becomes "$a" RUNNING && p=$(pod_of "$a" 0) &&
	page "0 $p 0" && wait_for 60 job_is "$a" use.idle_s 2 && job_is "$a" use.idle_limit_s 4 && job_is "$a" use.idle_rule queue/debug &&
	page "3 $p 0" && wait_for 60 job_is "$a" use.idle_s 0 && lasts 5 job_is "$a" state RUNNING && page "0 $p 0" &&
	job_becomes "$a" TIMEOUT && job_is "$a" end_cause idle
'

test_expect_success 'a gang is idle when all devices of all its pods are' '
	g=$(fake_job hang=true --queue debug -N 2 --gpus-per-node=2) && job_becomes "$g" RUNNING &&
	p0=$(pod_of "$g" 0) && p1=$(pod_of "$g" 1) &&
	page "0 $p0 0" "0 $p0 1" "0 $p1 0" && wait_for 60 job_is "$g" use.percent 0.0 && lasts 7 job_is "$g" state RUNNING &&
	page "0 $p0 0" "0 $p0 1" "0 $p1 0" "7 $p1 1" && wait_for 60 job_is "$g" use.percent 1.7 && lasts 6 job_is "$g" state RUNNING &&
	page "0 $p0 0" "0 $p0 1" "0 $p1 0" "0 $p1 1" && job_becomes "$g" TIMEOUT
'

test_expect_success 'an endpoint that is gone stops nobody, and is told of' '
	a=$(fake_job hang=true --queue debug -g 1) && job_becomes "$a" RUNNING && page "0 $(pod_of "$a" 0) 0" &&
	wait_for 60 job_is "$a" use.percent 0.0 && mv page gone && wait_for 60 eval "measured trouble | grep -q \"status 503\"" &&
	gpuq status >out && says out "Idle rules *not everywhere: http://.*status 503" &&
	exits 0 gpuq doctor && says out "measured .*idle rules are not applied everywhere: .*status 503" &&
	lasts 6 job_is "$a" state RUNNING && mv gone page && job_becomes "$a" TIMEOUT && test "$(measured trouble)" = null
'

test_expect_success 'a restart of the daemon stops nobody early: windows are counted anew' '
	a=$(fake_job hang=true --queue lab --qos train -g 1) && job_becomes "$a" RUNNING && page "0 $(pod_of "$a" 0) 0" &&
	wait_for 60 job_is "$a" use.idle_s 4 && kill_gpuqd && sleep 3 && start_fake_gpuqd --config gpuqd.yaml &&
	wait_for 60 eval "job $a use | grep -q percent" && job "$a" use.idle_s >idle && test "$(cat idle)" -lt 4 && job_is "$a" state RUNNING &&
	job_becomes "$a" TIMEOUT && job_is "$a" end_cause idle
'

test_expect_success 'pages that are broken, endless or too large hold nothing up; what came whole counts' '
	stop_gpuqd && conf /half /slow /big /metrics && start_fake_gpuqd --config gpuqd.yaml && a=$(fake_job hang=true --queue lab -g 1) &&
	job_becomes "$a" RUNNING && page "12 $(pod_of "$a" 0) 0" && wait_for 60 job_is "$a" use.percent 12.0 &&
	gpuq cancel "$a" && job_becomes "$a" CANCELLED && job_is "$a" end_cause null && job_is "$a" use null
'

test_expect_success 'without a source the rule is not applied, and that is said' '
	stop_gpuqd && echo "idle_window: 1s" >gpuqd.yaml && start_fake_gpuqd --config gpuqd.yaml &&
	test "$(measured source)" = null && test "$(measured idle_rule)" = true &&
	a=$(fake_job hang=true --queue debug -g 1) && job_becomes "$a" RUNNING && lasts 6 job_is "$a" state RUNNING && job_is "$a" use null &&
	gpuq status >out && says out "Idle rules *not applied: gpuqd.yaml names no source" &&
	exits 0 gpuq doctor && says out "measured .*idle rules are not applied: gpuqd.yaml names no source" && gpuq cancel "$a" "$busy" "$other"
'

test_expect_success 'a wrong configuration is refused' '
	echo "metrics: [ftp://x/]" >bad.yaml && test_must_fail gpuqd --config bad.yaml --check 2>err && says err "bad.yaml:1:10: expected a URL" &&
	echo "idle_window: 10ms" >bad.yaml && test_must_fail gpuqd --config bad.yaml --check 2>err && says err "bad.yaml:1:14: expected 1s or more"
'

no_harm_was_done
test_done
