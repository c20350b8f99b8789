#!/bin/sh
test_description='jobs that have ended are listed, all of them'
. "$(dirname "$0")/lib.sh"

test_expect_success 'more than one client takes at once' '
	start_gpuqd &&
	/usr/bin/python3 -c "
for n in range(400): print(\"---\\n{name: j%d, command: [a], hold: true}\" % n)" >many.yaml &&
	submit many.yaml >ids && test "$(wc -l <ids)" = 400 && test_must_fail gpuq cancel $(cat ids) 999 && wait_for 60 eval "test \$(in_queue) = 0"
'

test_expect_success 'each is there once, the newest first' '
	gpuq queue -a --json | json id >listed && sort -n ids >want && sort -n listed | cmp - want &&
	sort -nr listed | cmp - listed
'

test_expect_success 'a limit takes the newest' '
	gpuq queue -a --json --limit=3 | json id >listed && tail -n 3 want | sort -nr | cmp - listed
'

# past FILTER...: ids as gpuq history lists them
past() {
	gpuq history --json "$@" | json id
}

test_expect_success 'the history lists them by name, user, state, queue, id and time' '
	past >listed && cp listed listed_all && sort -nr ids | cmp - listed && past --me | cmp - listed &&
	past -t CANCELLED -q default | cmp - listed && past --since 1h | cmp - listed &&
	past -n j7 -n j9,j8 | sort -n >some && sed -n "8,10p" ids | sort -n | cmp - some &&
	past -t FAILED >none && past --until 1h >>none && past -u nobody >>none && test_must_be_empty none &&
	first=$(head -n 1 ids) && test "$(past "$first")" = "$first" && test "$(past -j "$first" -t CA)" = "$first" &&
	test_expect_code 254 gpuq history 999999
'

test_expect_success 'a table of it' '
	gpuq history -n j5 -o JOBID,NAME:5,STATE,EXIT_CODE,ELAPSED,WAIT,GPU_SECONDS,ATTEMPT,EVICTIONS >table &&
	head -n 1 table | grep "JOBID NAME  *STATE  *EXIT_CODE ELAPSED WAIT GPU_SECONDS ATTEMPT EVICTIONS" &&
	sed -n 2p table | grep "j5  *CANCELLED  *- *0:00"
'

test_expect_success 'as they are listed after a restart' '
	kill_gpuqd && start_gpuqd && gpuq queue -a --json | json id | sort -n | cmp - want && past | cmp - listed_all && stop_gpuqd
'

# 200 are deleted at a time; 400 take between 400 and 512 KiB here, 200 between 256 and 300.
test_expect_success 'stored jobs take no more than they may: the oldest that have ended are deleted' '
	echo "history_size: 350Ki" >gpuqd.yaml && start_gpuqd --config gpuqd.yaml &&
	wait_for 60 eval "past >left; test \$(wc -l <left) -lt 400" && test -s left && tail -n "$(wc -l <left)" want | sort -nr | cmp - left &&
	stop_gpuqd
'

test_expect_success 'no more are kept than may be, the newest' '
	echo "history_max: 150" >gpuqd.yaml && start_gpuqd --config gpuqd.yaml &&
	wait_for 60 eval "past >left; test \$(wc -l <left) = 150" && tail -n 150 want | sort -nr | cmp - left &&
	test_expect_code 254 gpuq status "$(head -n 1 want)" && gpuq status "$(tail -n 1 want)"
'

test_expect_success 'nor longer than they may be, as the file says when it is read again' '
	echo "history_keep: 1s" >gpuqd.yaml && kill -HUP "$gpuqd_pid" &&
	wait_for 60 eval "past >left; test ! -s left" && test_expect_code 254 gpuq history "$(tail -n 1 want)" && stop_gpuqd
'

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS
test_expect_success FAILPOINTS 'a job on its way from memory to the disk is in each list, and is known to have ended' '
	GPUQ_FAILPOINT="store.commit:*=delay:300" start_gpuqd --gpus 4 && id=$(sh_job "exit 0" --hold) &&
	{ gpuq cancel "$id" 3>&- 4>&- 5>&- & } && cancel_pid=$! &&
	for i in 1 2 3 4 5 6 7 8 9 10; do gpuq queue -a --json | json id | grep -qx "$id" || return 1; done &&
	wait $cancel_pid && exits 1 gpuq cancel "$id" && says err "already ended" && stop_gpuqd
'

test_expect_success FAILPOINTS 'no other call waits with a list of the history for its check at the start' '
	GPUQ_FAILPOINT="store.check.late:1=delay:6000" start_gpuqd --gpus 4 &&
	{ gpuq history --json >late 3>&- 4>&- 5>&- & } && history_pid=$! && sleep 1 &&
	begin=$(date +%s) && gpuq version && gpuq diag >/dev/null && took=$(($(date +%s) - begin)) &&
	test_must_be_empty late && test $took -le 3 && wait $history_pid &&
	test -s late && gpuq history --json | cmp - late && stop_gpuqd
'

test_done
