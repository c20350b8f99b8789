#!/bin/sh
test_description='every list verb has the options of lists, every act the filters and --dry-run'
. "$(dirname "$0")/lib.sh"

lists='queue history nodes queues shares prio usage report events reservations'
acts='cancel hold release requeue update'

test_expect_success 'jobs with labels, that wait, run and have ended, and something for every list' '
	start_gpuqd && gpuq reserve later --start "now+1d" --duration 1h --gpus 1 &&
	done=$(sh_job "exit 0" -J done --label team=a --label stage=x) && exits 0 gpuq wait "$done" &&
	gone=$(sh_job "exit 1" -J gone --label team=b) && job_becomes "$gone" FAILED &&
	a=$(sh_job "sleep 300" -g 4 -J run-a --label team=a --label stage=x) && job_becomes "$a" RUNNING &&
	b=$(sh_job "sleep 300" -g 4 -J wait-b --label team=a --label stage=y) &&
	c=$(sh_job "sleep 300" -g 4 -J wait-c --label team=b) && d=$(sh_job "sleep 300" -g 4 -J wait-d --hold) &&
	wait_for 60 job_is "$c" reason Resources && test "$(job "$a" labels.team)" = a
'

# first_column VERB
first_column() {
	gpuq "$1" | head -n 1 | awk '{ print $1 }'
}
lines() { wc -l | tr -d " "; }

for verb in $lists; do
	test_expect_success "$verb: -h -o --sort --limit" '
		col=$(first_column $verb) && test -n "$col" && n=$(gpuq $verb | lines) && test "$n" -gt 1 &&
		test "$(gpuq $verb -h | lines)" = $((n - 1)) && test "$(gpuq $verb --no-header | lines)" = $((n - 1)) &&
		test "$(gpuq $verb -o "$col" | head -n 1)" = "$col" && gpuq $verb -h -o "$col" | awk "NF > 1 && !/ /{ exit 1 }" &&
		test "$(gpuq $verb -h --sort "$col" | lines)" = $((n - 1)) && test "$(gpuq $verb -h -S "-$col" | lines)" = $((n - 1)) &&
		test "$(gpuq $verb -h --limit 1 | lines)" = 1 && exits 2 gpuq $verb -o NO_SUCH && says err "no column" &&
		exits 2 gpuq $verb --sort NO_SUCH && exits 2 gpuq $verb --limit x && exits 2 gpuq $verb --no-such-option
	'
	test_expect_success "$verb: --json" '
		gpuq $verb --json >out.json && test -s out.json && gpuq $verb --json --limit 1 >one.json && test "$(lines <one.json)" = 1 &&
		/usr/bin/python3 -c "
import json, sys
for line in open(\"out.json\"):
    assert json.loads(line)[\"v\"] == 1, line"
	'
	test_expect_success "$verb: --csv" '
		gpuq $verb --csv >out.csv && gpuq $verb --csv -h >bare.csv && exits 2 gpuq $verb --csv --json && says err "together" &&
		/usr/bin/python3 -c "
import csv
rows, bare = list(csv.reader(open(\"out.csv\"))), list(csv.reader(open(\"bare.csv\")))
assert len(rows) > 1 and len(rows) == len(bare) + 1, (rows, bare)
assert all(len(r) == len(rows[0]) for r in rows + bare), rows
assert rows[0][0] == \"$(first_column $verb)\", rows[0]"
	'
	test_expect_success "$verb: --watch" '
		col=$(first_column $verb) && { gpuq $verb --watch=0.1 >watch.out 2>&1 & } && watching=$! &&
		wait_for 60 eval "test \$(grep -c \"^ *$col\" watch.out) -ge 2"; seen=$?; kill $watching; wait $watching; test $seen = 0
	'
done

# ids OPTION...: what queue shows, without ended jobs, sorted
ids() {
	gpuq queue -h -o JOBID "$@" | tr -d " " | sort -n | tr "\n" " "
}

test_expect_success 'filters of queue and history' '
	test "$(ids -l team=a)" = "$a $b " && test "$(ids -l team=a,stage!=x)" = "$b " && test "$(ids --labels team!=a)" = "$c $d " &&
	test "$(ids -l !team)" = "$d " && test "$(ids -l team -n wait-b,wait-c)" = "$b $c " && test "$(ids -l team=a -l stage=x)" = "$a " &&
	test "$(ids -u "$(id -un)" -q default -t R)" = "$a " && test "$(ids --me -w "$(gpuq nodes -h -o NODE | head -n 1 | tr -d " ")")" = "$a " &&
	test "$(ids -j "$a,$c" --since 1h)" = "$a $c " && test "$(gpuq history -h -o JOBID -l team=b | tr -d " ")" = "$gone" &&
	test "$(gpuq history -h -o JOBID -l team,stage=x | tr -d " ")" = "$done" && test "$(gpuq prio -h -o JOBID -l team=b | tr -d " ")" = "$c" &&
	exits 2 gpuq queue -l "a b" && says err "team=a" && exits 2 gpuq cancel -l =x && gpuq queue -o LABELS -h -j "$b" | grep -qx "team=a,stage=y"
'

test_expect_success 'labels of a manifest count, and change while the job waits' '
	gpuq update "$c" labels="{team: c}" && test "$(ids -l team=c)" = "$c " && gpuq update "$c" labels="{team: b}" &&
	kill_gpuqd && start_gpuqd && test "$(ids -l team=b)" = "$c "
'

# Whom each act can do something to: a runs, b and c wait, d is held.
test_expect_success 'acts: --dry-run says how many, and changes nothing' '
	gpuq queue --json >before.json &&
	for row in cancel:team=b hold:team=b release:!team requeue:stage=x update:team=b; do
		act=${row%%:*} && more= && { test $act != update || more=nice=5; } &&
		exits 0 gpuq $act --dry-run -l "${row#*:}" $more && says out "^Would $act 1 job\$" &&
		exits 0 gpuq $act --dry-run -l team=nobody $more && says out "^Would $act 0 jobs\$" && exits 2 gpuq $act $more || return 1
		for filter in --me "-u $(id -un)" "-q default" "-t PD" "-n wait-b" "-w nowhere" "-j $b" "--since 1h" "--until 1h"; do
			gpuq $act --dry-run $filter $more >out 2>err || [ $? = 1 ] || return 1
			says out "^Would $act [0-9]+ jobs?\$" || return 1
		done
	done &&
	gpuq queue --json >after.json && test "$(json id <before.json | sort)" = "$(json id <after.json | sort)" &&
	test "$(json state <before.json | sort)" = "$(json state <after.json | sort)"
'

test_expect_success 'acts on what is no job say whom they mean, too' '
	exits 0 gpuq drain --dry-run "$(gpuq nodes -h -o NODE | head -n 1 | tr -d " ")" && says out "1 node" &&
	exits 0 gpuq resume --dry-run "$(gpuq nodes -h -o NODE | head -n 1 | tr -d " ")" && says out "1 node|0 nodes" &&
	exits 0 gpuq queues stop --dry-run default && exits 0 gpuq queues set --dry-run default weight=2 &&
	exits 0 gpuq reserve --dry-run other --start now+2d --duration 1h --gpus 1 && test "$(gpuq reservations -h | lines)" = 1 &&
	gpuq queues set default budget="{gpu_minutes: 100}" && exits 0 gpuq queues grant --dry-run default 10 && says out "Would be default: budget 100, granted 10" &&
	exits 0 gpuq queues grant default 5 && says out "^default: budget 100, granted 5" && gpuq queue -t PD -h | grep -q . && gpuq export | grep -vq "weight: 2"
'

test_expect_success 'and then they do it, to those alone' '
	gpuq cancel -l team=a,stage!=x && job_becomes "$b" CANCELLED && job_is "$a" state RUNNING && job_is "$c" state PENDING &&
	gpuq hold -l team=b && wait_for 60 job_is "$c" reason HeldUser && gpuq release -l team=b && wait_for 60 job_is "$c" reason Resources &&
	gpuq requeue -l stage=x && job_becomes "$a" PENDING && job_becomes "$c" RUNNING && stop_gpuqd
'

test_done
