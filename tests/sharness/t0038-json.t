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
	array=$(sh_job "exit 0" --array 0-3%2 --hold) && wait_for 20 eval "gpuq queue --json $big | grep -q code" &&
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

test_expect_success 'the check sees what is wrong' '
	check="/usr/bin/python3 $test_source/tests/sharness/check_json.py $test_source/man/gpuq-json.5" &&
	gpuq queues --json >good && $check Queue <good &&
	sed "s/\"state\":[^,}]*/\"state\":5/" good >bad && test_must_fail $check Queue <bad &&
	sed "s/\"weight\":[^,]*,//" good >bad && test_must_fail $check Queue <bad &&
	sed "s/^{/{\"surprise\":1,/" good >bad && test_must_fail $check Queue <bad && test_must_fail $check Queue </dev/null
'

stop_gpuqd
test_done
