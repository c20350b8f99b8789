#!/bin/sh
test_description='recorded cycles are decided again, and the live state is a scenario'
. "$(dirname "$0")/lib.sh"

sim=$test_build/gpuqd/gpuq-sim

cat >site.yaml <<'END'
version: 1
queues:
- {name: prod, quota: 2}
- {name: batch, quota: 2, max_gpus: {user: 4}}
licenses:
- {name: matlab, count: 3}
END

test_expect_success 'a daemon that records, and something to decide' '
	start_gpuqd --site "$PWD/site.yaml" --record "$PWD/cycles" &&
	a=$(sh_job "exec sleep 600" --queue batch -g 1 --time 1h) && b=$(sh_job "exec sleep 600" --queue batch -g 3) &&
	job_becomes "$a" RUNNING && job_becomes "$b" RUNNING &&
	c=$(sh_job "exec sleep 600" --queue prod -g 2 --licenses matlab:2 --nice=7) && job_becomes "$c" RUNNING &&
	d=$(sh_job "exit 0" --queue prod -g 1 --hold --array 0-9) && wait_for 60 job_is "$d" reason HeldUser
'

test_expect_success 'the scheduler decides them again as it did' '
	"$sim" replay cycles/*.mp >out && says out "^[1-9][0-9]* cycles, 0 different$"
'

test_expect_success 'a kill loses none that was written, and the next daemon goes on in another file' '
	kill_gpuqd && start_gpuqd --record "$PWD/cycles" && wait_for 60 job_is "$d" reason HeldUser &&
	wait_for 60 test -s cycles/cycles-00000002.mp && "$sim" replay cycles/*.mp >out && says out "^[1-9].* 0 different$"
'

test_expect_success 'what is no record, or half of one, is told with its place' '
	exits 1 "$sim" replay site.yaml && says err "site.yaml: record 1: expected a record of a cycle" &&
	head -c 100 cycles/cycles-00000001.mp >half.mp && exits 1 "$sim" replay half.mp && says err "half.mp: record 1: .*incomplete" &&
	exits 1 "$sim" replay nothing.mp && says err "nothing.mp" && exits 2 "$sim" replay && exits 2 "$sim" replay --json half.mp
'

test_expect_success 'another decision is shown line by line' '
	sed "s/place $a on/place 9 on/" cycles/cycles-00000001.mp >other.mp && exits 1 "$sim" replay other.mp &&
	says out "^other.mp: cycle [0-9]+ .* decided differently" && says out "^- place 9 on" && says out "^[+] place $a on" &&
	says out "^[1-9][0-9]* cycles, 1 different$"
'

test_expect_success 'the live state as a scenario: the same jobs run, and wait for the same' '
	gpuq export --scenario >now.yaml && "$sim" run now.yaml >out &&
	says out "running +$a +" && says out "running +$c +" && says out "pending +$b +" && says out "pending +$d.*HeldUser" &&
	gpuq export --scenario --json >now.json && "$sim" run now.json >out2 && test_cmp out out2 &&
	says now.yaml "nice: 7" && says now.yaml "priority_weights:" && "$sim" check now.yaml >judged && says judged "1 passed, 0 failed"
'

test_expect_success 'without --scenario it is the site' '
	exits 0 gpuq export && says out "^version: 1" && exits 2 gpuq export --scenario more
'

test_expect_success 'a folder that cannot be made is refused at the start' '
	stop_gpuqd && echo >file && test_must_fail gpuqd --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster local --gpus 1 --record "$PWD/file/x" >out 2>&1 &&
	says out "file/x"
'

test_done
