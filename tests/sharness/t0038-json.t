#!/bin/sh
test_description='what --json prints is what gpuq-json(5) says'
. "$(dirname "$0")/lib.sh"

# described SECTION COMMAND...: its objects have the keys and types of that section
described() {
	section=$1
	shift
	gpuq "$@" >json.out && /usr/bin/python3 "$test_source/tests/sharness/check_json.py" "$test_source/man/gpuq-json.5" "$section" <json.out
}

test_expect_success 'jobs of every kind' '
	start_gpuqd && ended=$(sh_job "exit 3" -g 1) && job_becomes "$ended" FAILED &&
	run=$(sh_job "sleep 300" -g 1) && job_becomes "$run" RUNNING && big=$(sh_job "exit 0" -g 4) &&
	array=$(sh_job "exit 0" --array 0-3%2 --hold) && wait_for 60 eval "gpuq queue --json $big | grep -q code" &&
	described Job queue --json && described Job queue -a --json && described Job history --json &&
	described Job status --json "$run" && described Job queue --json -j "$array"
'

test_expect_success 'a dry run' '
	echo "{name: a, command: [a], array: 0-3}" >a.yaml && described Job submit --dry-run --json a.yaml
'

test_expect_success 'the others' '
	described Event events --json "$ended" && described Event events --json && described Node nodes --json &&
	described Queue queues --json && described Status status --json
'

test_expect_success 'shares, priorities, use, reports, reservations' '
	cat >site.yaml <<-\END &&
	version: 1
	queues: [{name: lab, budget: {gpu_minutes: 100, period: month}}, {name: tea, parent: lab, quota: 2}]
	END
	gpuq apply -f site.yaml >/dev/null && described Share shares --json && described Priority prio --json &&
	described Usage usage --json && described Report report --json && described Report report --by day --json &&
	described "Change of the site" reserve some --gpus 1 --duration 1h --start now+2h --json &&
	gpuq reserve all --nodes "$(gpuq nodes -s -h -o NODE)" --duration 1h --start now+9h --queue lab >/dev/null &&
	described Reservation reservations --json && described Reservation reservations --calendar --json && described Audit events --audit --json
'

test_expect_success 'the answers of what is done' '
	described "Act on jobs" hold --json --dry-run "$big" && described "Act on jobs" update --json "$big" nice=3 &&
	{ gpuq cancel --json 999 "$array" >json.out || :; } &&
	/usr/bin/python3 "$test_source/tests/sharness/check_json.py" "$test_source/man/gpuq-json.5" "Act on jobs" <json.out &&
	described "Act on nodes" drain --json "$(gpuq nodes -s -h -o NODE)" && described "Act on nodes" resume --dry-run --json "*" &&
	described "Change of the site" apply --json --dry-run -f site.yaml && described "Change of the site" queues stop lab --json
'

test_expect_success 'the check sees what is wrong' '
	check="/usr/bin/python3 $test_source/tests/sharness/check_json.py $test_source/man/gpuq-json.5" &&
	gpuq queues --json >good && $check Queue <good &&
	sed "s/\"state\":[^,}]*/\"state\":5/" good >bad && test_must_fail $check Queue <bad &&
	sed "s/\"weight\":[^,]*,//" good >bad && test_must_fail $check Queue <bad &&
	sed "s/^{/{\"surprise\":1,/" good >bad && test_must_fail $check Queue <bad && test_must_fail $check Queue </dev/null
'

stop_gpuqd
test_done
