#!/bin/sh
test_description='the state directory is removed, renamed, replaced or mounted over under a running gpuqd'
. "$(dirname "$0")/lib.sh"

echo '{command: [sleep, "1000"], hold: true}' >job.yaml

if [ "$(id -u)" = 0 ] && mkdir state && mount -t tmpfs -o size=16m,mode=700 gpuq-test "$PWD/state" 2>/dev/null; then
	umount "$PWD/state"
	test_set_prereq MOUNT
	mounted=$PWD/state
	trap 'end_code=$?; end_all; umount "$mounted" 2>/dev/null; umount "$mounted" 2>/dev/null; (exit $end_code); die' EXIT
fi
rm -rf state

# ended: gpuqd ends by itself with 74
ended() {
	wait_for 60 gpuqd_is_dead || return 1
	wait "$gpuqd_pid"
	ended_code=$?
	gpuqd_pid=
	[ $ended_code = 74 ] || { echo "exit status $ended_code"; tail -n 5 gpuqd.log; return 1; }
	says gpuqd.log 'state directory was (removed|replaced)'
}

# not_taken: no submission is acknowledged from here on
not_taken() {
	gpuq submit --parsable job.yaml >taken 2>err
	[ ! -s taken ] || { echo "job $(cat taken) was acknowledged"; return 1; }
}

fresh() {
	rm -rf state gpuqd.log && start_gpuqd && submit job.yaml >/dev/null
}

test_expect_success 'removed: it ends by itself, though nothing is asked of it' '
	fresh && rm -rf state && ended
'

test_expect_success 'removed: what comes next is not acknowledged' '
	fresh && rm -rf state && not_taken && ended
'

test_expect_success 'renamed: not acknowledged, and what is there is served from there' '
	fresh && rm -rf moved && mv state moved && not_taken && ended && mv moved state && start_gpuqd &&
	gpuq queue -h >jobs && grep -q . jobs && stop_gpuqd
'

test_expect_success 'replaced by another directory, with a database or without' '
	fresh && rm -rf moved && cp -a state other && mv state moved && mv other state && not_taken && ended &&
	fresh && rm -rf moved && mv state moved && mkdir state && not_taken && ended
'

test_expect_success 'the database alone is replaced' '
	fresh && cp state/data.mdb other && mv other state/data.mdb && not_taken && ended
'

test_expect_success MOUNT 'mounted over, and unmounted' '
	fresh && mount -t tmpfs -o size=16m,mode=700 gpuq-test "$PWD/state" && not_taken && ended &&
	start_gpuqd && submit job.yaml >/dev/null && umount -l "$PWD/state" && not_taken && ended
'

test_done
