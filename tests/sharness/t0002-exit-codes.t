#!/bin/sh
test_description='exit codes: the same everywhere, and the last line on standard error'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	start_gpuqd
'

test_expect_success 'the code of the job itself' '
	exits 75 gpuq run -- sh -c "exit 75" && last_result FAILED 75
'

test_expect_success '128 and the number of the signal' '
	exits 137 gpuq run -- sh -c "kill -KILL \$\$" && last_result FAILED 137 &&
	exits 139 gpuq run -- sh -c "kill -SEGV \$\$" && last_result FAILED 139
'

test_expect_success 'a command that does not exist fails as in a shell' '
	exits 127 gpuq run -- ./there-is-no-such-program && last_result FAILED 127
'

test_expect_success '248: not started in time, and it is cancelled' '
	full=$(sh_job "sleep 300" -g 4) && job_becomes "$full" RUNNING &&
	exits 248 gpuq run -g 1 --start-timeout 1s -- true &&
	id=$(tail -n 1 err | sed "s/^gpuq-result: //" | json id) && job_becomes "$id" CANCELLED
'

test_expect_success '248 with --keep: it lives on' '
	exits 248 gpuq run -g 1 --start-timeout 1s --keep -- true &&
	id=$(tail -n 1 err | sed "s/^gpuq-result: //" | json id) && job_is "$id" state PENDING &&
	gpuq cancel "$id" "$full" && job_becomes "$full" CANCELLED
'

test_expect_success '249: refused' '
	printf "command: [\"true\"]\ngpus: minus one\n" >bad.yaml &&
	exits 249 gpuq submit --wait bad.yaml && exits 1 gpuq submit bad.yaml
'

test_expect_success '251: over its time' '
	exits 251 gpuq run --time 1s -- sleep 300 && says err "^gpuq-result: .*\"state\":\"TIMEOUT\""
'

test_expect_success '252: cancelled while somebody waits' '
	id=$(sh_job "sleep 300") && job_becomes "$id" RUNNING &&
	{ ( exits 252 gpuq wait "$id" ) & waiter=$!; } &&
	gpuq cancel "$id" && wait "$waiter" && says err "^gpuq-result: .*\"state\":\"CANCELLED\""
'

test_expect_success '253: the wait ran out and the job lives on' '
	id=$(sh_job "sleep 300") && job_becomes "$id" RUNNING &&
	exits 253 gpuq wait --timeout 1s "$id" && job_is "$id" state RUNNING &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED
'

test_expect_success '254: no such job' '
	exits 254 gpuq wait 99999 && done=$(sh_job true) && exits 254 gpuq wait "$done" 99999 &&
	tail -n 1 err | grep "\"id\":99999," &&
	exits 254 gpuq status 99999 && exits 254 gpuq cancel 99999 && exits 254 gpuq hold 99999 &&
	exits 254 gpuq logs 99999 && says err "99999"
'

test_expect_success '2, or 255 where a job code could be 2: wrong usage' '
	exits 2 gpuq queue --no-such-option && says err "no-such-option" &&
	exits 2 gpuq no-such-verb && exits 2 gpuq status 1 2 3 && exits 2 gpuq logs &&
	exits 255 gpuq wait && exits 255 gpuq run --no-such-option x && exits 255 gpuq wait not-a-number
'

test_expect_success 'a verb that is nearly right is named' '
	exits 2 gpuq quue && says err "queue"
'

test_expect_success 'help is no error' '
	exits 0 gpuq --help && exits 0 gpuq submit --help && says out "gpus" && exits 0 gpuq help queue
'

test_done
