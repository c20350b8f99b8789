#!/bin/sh
test_description='gpuq logs of one attempt on the local cluster; what has no times says so'
. "$(dirname "$0")/lib.sh"

# wrote ID N TEXT: the output of that attempt
wrote() {
	gpuq logs --attempt "$2" "$1" >got && echo "$3" >want && test_cmp want got
}

test_expect_success 'each attempt of a job that has ended has its own output' '
	start_gpuqd && id=$(sh_job "echo try \$GPUQ_RESTART_COUNT; [ \$GPUQ_RESTART_COUNT = 2 ]" --retry 2) && gpuq wait "$id" && job_is "$id" attempt 2 &&
	for n in 0 1 2; do wrote "$id" $n "try $n" || return 1; done && gpuq logs "$id" >got && says got "^try 2$" && test "$(wc -l <got)" = 1 &&
	exits 1 gpuq logs --attempt 3 "$id" && says err "job $id has no attempt 3: its attempts are 0 to 2" && exits 2 gpuq logs --attempt -1 "$id" && exits 2 gpuq logs --attempt x "$id"
'

test_expect_success 'also while a later one runs, and after a kill; following one that has ended ends' '
	live=$(sh_job "echo try \$GPUQ_RESTART_COUNT; [ \$GPUQ_RESTART_COUNT = 0 ] || until [ -e go ]; do sleep 0.1; done; [ -e go ]" --retry 1) &&
	wait_for 30 eval "gpuq logs $live | grep -q \"try 1\"" && wrote "$live" 0 "try 0" && timeout 60 gpuq logs -f --attempt 0 "$live" >got && says got "^try 0$" &&
	kill_gpuqd && start_gpuqd && wrote "$live" 0 "try 0" && wrote "$id" 0 "try 0" && { gpuq logs -f --attempt 1 "$live" >followed & } && touch go && gpuq wait "$live" && wait $! &&
	says followed "^try 1$" && test "$(wc -l <followed)" = 1
'

test_expect_success 'of elements and of pods of a gang, and of one that is told to run again' '
	arr=$(sh_job "echo \$GPUQ_ARRAY_TASK_ID of \$GPUQ_RESTART_COUNT; [ \$GPUQ_RESTART_COUNT = 1 ]" -a 0-2 --retry 1) && gpuq wait "$arr" && wrote "${arr}_1" 0 "1 of 0" && wrote "${arr}_1" 1 "1 of 1" &&
	gang=$(sh_job "echo from \$GPUQ_RESTART_COUNT; touch said\$GPUQ_POD_INDEX; until [ -e said0 ] && [ -e said1 ]; do sleep 0.1; done; [ \$GPUQ_RESTART_COUNT = 1 ]" --pods 2 --retry 1) && gpuq wait "$gang" && gpuq logs --attempt 0 "$gang" >got && test "$(grep -c "from 0" got)" = 2 &&
	gpuq logs --attempt 0 --pod 1 "$gang" >got && test "$(cat got)" = "from 0" &&
	last=$(sh_job "echo once; [ -e never ]" --retry 1 -p default) && { gpuq wait "$last"; test $? = 1; } && wrote "$last" 0 once
'

test_expect_success 'only its owner gets it, and a file of its own is named' '
	other=$(sh_job "echo again; [ \$GPUQ_RESTART_COUNT = 1 ]" --output "$PWD/own.txt" --retry 1) && gpuq wait "$other" && exits 1 gpuq logs --attempt 0 "$other" && says err "wrote its output to $PWD/own.txt" &&
	gpuq logs --attempt 1 "$other" >got && says got again && first=$(ls state/logs | grep -- "-$id-0-0\." | head -n 1) && test -n "$first" &&
	mv "state/logs/$first" "state/logs/$(echo "$first" | sed "s/\.......\(..\)/.fffffe\1/")" && exits 1 gpuq logs --attempt 0 "$id" && says err "no output of pod .* is kept"
'

test_expect_success 'output here has no times' '
	exits 1 gpuq logs --timestamps "$id" && says err "without times: leave out timestamps" && exits 1 gpuq logs --since 1h "$id" && says err "leave out since" && exits 2 gpuq logs --since soon "$id" && stop_gpuqd
'

test_done
