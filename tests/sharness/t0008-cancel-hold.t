#!/bin/sh
test_description='cancel, hold and release'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	start_gpuqd
'

test_expect_success 'a job that is submitted held does not start' '
	held=$(sh_job "exit 0" --hold) && after=$(sh_job "exit 0") && exits 0 gpuq wait "$after" &&
	job_is "$held" state PENDING && wait_for 60 job_is "$held" reason HeldUser
'

test_expect_success 'released, it does' '
	gpuq release "$held" && exits 0 gpuq wait "$held"
'

test_expect_success 'a waiting job can be held, and others pass it' '
	full=$(sh_job "sleep 300" -g 4) && job_becomes "$full" RUNNING &&
	one=$(sh_job "exit 0" -g 4) && two=$(sh_job "exit 0" -g 4) &&
	gpuq hold "$one" && wait_for 60 job_is "$one" reason HeldUser && gpuq cancel "$full" &&
	exits 0 gpuq wait "$two" && job_is "$one" state PENDING &&
	gpuq release "$one" && exits 0 gpuq wait "$one"
'

test_expect_success 'holding what has ended is refused' '
	exits 1 gpuq hold "$one" && test -s err
'

test_expect_success 'cancelling what has ended changes nothing' '
	test_might_fail gpuq cancel "$one" && job_is "$one" state COMPLETED
'

test_expect_success 'a waiting job is cancelled at once' '
	id=$(sh_job "exit 0" --hold) && gpuq cancel "$id" && job_is "$id" state CANCELLED &&
	job_is "$id" start_time null
'

test_expect_success 'a running job gets TERM and time to leave' '
	cat >polite.sh <<-\END &&
	#!/bin/sh
	trap "echo leaving; exit 3" TERM
	echo ready
	while :; do sleep 0.05; done
	END
	id=$(submit polite.sh) && job_becomes "$id" RUNNING && wait_for 60 eval "gpuq logs $id | grep ready" &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED && gpuq logs "$id" >out && says out "^leaving$"
'

test_expect_success 'one that does not listen is killed, with all of its children' '
	cat >deaf.sh <<-END &&
	#!/bin/sh
	trap "" TERM
	sh -c "trap \"\" TERM; echo \\\$\\\$ >\"$PWD/child\"; while :; do sleep 0.05; done" &
	while :; do sleep 0.05; done
	END
	printf "command: [sh, \"%s/deaf.sh\"]\ngrace: 1s\n" "$PWD" >deaf.yaml &&
	id=$(submit deaf.yaml) && job_becomes "$id" RUNNING && wait_for 60 test -s child &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED && wait_for 60 eval "! kill -0 $(cat child)"
'

test_expect_success 'by filter: all of mine with a name' '
	for n in 1 2 3; do sh_job "exit 0" --hold --name many || return 1; done >ids && other=$(sh_job "exit 0" --hold --name few) &&
	gpuq cancel --dry-run -n many >out && says out "3" && test "$(gpuq queue -h -n many | wc -l)" = 3 &&
	gpuq cancel -n many >out && says out "3" && gpuq queue -h -n many >out && test_must_be_empty out &&
	job_is "$other" state PENDING && gpuq cancel "$other"
'

test_expect_success 'a filter that matches nothing cancels nothing' '
	id=$(sh_job "exit 0" --hold) && test_might_fail gpuq cancel -n no-such-name &&
	job_is "$id" state PENDING && gpuq cancel "$id"
'

test_expect_success 'cancel without any choice is refused' '
	id=$(sh_job "exit 0" --hold) && exits 2 gpuq cancel && job_is "$id" state PENDING && gpuq cancel "$id"
'

test_expect_success ROOT 'the jobs of others are not ours to cancel' '
	open_to_all && id=$(sh_job "exit 0" --hold) &&
	exits 1 as nobody env HOME=/ gpuq cancel "$id" && job_is "$id" state PENDING &&
	theirs=$(printf "command: [\"true\"]\nhold: true\n" | as nobody env HOME=/ gpuq submit --parsable -) &&
	job_is "$theirs" user nobody && gpuq cancel "$theirs" "$id" && job_is "$theirs" state CANCELLED
'

test_expect_success ROOT 'a hold of an operator or a manager is not its owner s to release' '
	mine() { as nobody env HOME=/ gpuq "$@"; } && held_by_them() { job "$theirs" reasons | grep -q HeldAdmin; } &&
	printf "version: 1\nqueues: [{name: led, managers: [games]}]\n" >led.yaml && gpuq apply -f led.yaml &&
	theirs=$(printf "command: [sleep, \"300\"]\nhold: true\nqueue: led\n" | mine submit --parsable --chdir=/ -) &&
	exits 0 gpuq hold "$theirs" && wait_for 60 held_by_them &&
	exits 1 mine release "$theirs" && says err "a manager or operator holds it" && exits 1 mine release --me && held_by_them &&
	exits 0 mine hold "$theirs" && exits 1 mine release "$theirs" && job_is "$theirs" state PENDING &&
	exits 0 as games env HOME=/ gpuq release "$theirs" && job_becomes "$theirs" RUNNING &&
	exits 0 as games env HOME=/ gpuq requeue --hold "$theirs" && wait_for 60 held_by_them && exits 1 mine release "$theirs" &&
	exits 0 gpuq release "$theirs" && job_becomes "$theirs" RUNNING && exits 0 mine cancel "$theirs" && job_becomes "$theirs" CANCELLED
'

test_expect_success ROOT 'what is done to the jobs of others is noted, with who did it; what an owner does is not' '
	gpuq events --audit --json >out && grep "\"object\":\"job/$theirs\"" out >noted &&
	grep "\"action\":\"job.hold\"" noted | grep "\"who\":\"$(id -un)\"" | grep "\"owner\":\"nobody\"" &&
	grep "\"action\":\"job.release\"" noted | grep "\"who\":\"games\"" && grep "\"action\":\"job.requeue\"" noted &&
	! grep "\"who\":\"nobody\"" noted
'

test_expect_success 'a cancelled job stays cancelled after a kill' '
	id=$(sh_job "sleep 300") && job_becomes "$id" RUNNING && gpuq cancel "$id" && kill_gpuqd && start_gpuqd &&
	job_becomes "$id" CANCELLED && wait_for 60 eval "test \$(free_gpus) = 4" && stop_gpuqd
'

test_done
