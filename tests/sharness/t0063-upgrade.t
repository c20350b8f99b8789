#!/bin/sh
test_description='a database of schema 1 with running jobs becomes one of schema 2'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

fixture=$test_source/tests/sharness/schema-1
same() { python3 "$fixture/compare.py" "$@"; }
start_cluster() { start_fake --nodes 3 --state "$PWD/cluster"; }
start_upgraded() { start_fake_gpuqd --config "$PWD/gpuqd.yaml"; }
# The daemon sees the clock of the day on which the database was made: what is kept for a time is still there.
clock_shim=$test_build/tests/sharness/.libs/clock_shim.so
[ -r "$clock_shim" ] || { echo "$clock_shim: not there; make check builds it" >&2; exit 99; }
mkdir aged && cat >aged/gpuqd <<END && chmod +x aged/gpuqd && PATH=$PWD/aged:$PATH
#!/bin/sh
CLOCK_SHIM="$PWD/clock" LD_PRELOAD=$clock_shim ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS:-} exec "$test_build/gpuqd/gpuqd" "\$@"
END
if [ "$(id -u)" = 0 ] && mkdir -p small/state && mount -t tmpfs -o size=6m,mode=700 gpuq-test "$PWD/small/state" 2>/dev/null; then
	test_set_prereq SMALL_DISK
	small_disk=$PWD/small/state
	trap 'end_code=$?; end_all; umount "$small_disk"; (exit $end_code); die' EXIT
fi
list_all() { gpuq queue --json >queue.now && gpuq history --json >history.now; }
# Changes with each cycle, or while a job runs.
cycle='reason reasons priority priority_terms planned_time use gpu_seconds'

test_expect_success SMALL_DISK 'without room for the new database it says how much is needed and changes nothing' '
	tar -C small -xf "$fixture/state.tar.xz" state/data.mdb && ls -A small/state >before &&
	cksum <small/state/data.mdb >sum && exits 74 gpuqd --state "$PWD/small/state" --cluster local --gpus 1 \
		--listen "unix:$PWD/small/sock" && says err "the new database takes up to" && says err "free space" &&
	test "$(cksum <small/state/data.mdb)" = "$(cat sum)" && exits 74 gpuqd --state "$PWD/small/state" --cluster local --gpus 1 \
		--listen "unix:$PWD/small/sock" && says err "free space" && ls -A small/state | grep -v "^gpuqd.lock$" >after &&
	cmp before after
'

test_expect_success 'it starts on it, and its jobs are those there were' '
	tar -xf "$fixture/state.tar.xz" && chmod 700 state && cp state/data.mdb before.mdb &&
	echo $(($(date -d "$(json until <until.json)" +%s) + 5 - $(date +%s))) >clock &&
	start_cluster && : >audit && start_upgraded && grep -q "store.upgraded from=1 to=2" gpuqd.log &&
	list_all && same queue.json queue.now $cycle && same history.json history.now priority
'

test_expect_success 'pods go on, and no other is made' '
	sleep 2 && list_all && same queue.json queue.now $cycle && test $(gpuq queue --json | grep -c "\"state\":\"RUNNING\"") = 6 &&
	! grep "\"resource\":\"pods\"" audit
'

test_expect_success 'reports are the same to the thousandth' '
	until=$(json until <until.json) && gpuq report --json --since=2020-01-01T00:00:00Z --until="$until" >report.now &&
	same report.json report.now
'

test_expect_success 'the copy that is kept is the old database' '
	cmp before.mdb state/data.mdb.schema-1
'

test_expect_success 'scripts that are alike are stored once' '
	gpuq diag --json >diag && test "$(json store.records.spec <diag)" = 12 && test "$(json store.records.text <diag)" = 6
'

test_expect_success 'all goes on as if nothing had been: cancel, release, update, depends, logs of jobs' '
	gpuq update 8 comment=changed && gpuq events 4 >out && says out "state=COMPLETED" &&
	gpuq release 6 && exits 0 gpuq wait 6 --timeout=60s && gpuq history 6 --json >elements && test $(grep -c COMPLETED elements) = 11 &&
	gpuq cancel 1 2 3 && job_becomes 1 CANCELLED && job_becomes 3 CANCELLED &&
	wait_for 60 eval "gpuq queue 9 --json | json reason | grep -q Dependency" && gpuq resume node-0002 &&
	new=$(fake_job run=200ms -p train -g 1) && test "$new" -gt 12 && exits 0 gpuq wait "$new" &&
	gpuq cancel 7 && wait_for 60 eval "test \$(gpuq history 7 --json | grep -c CANCELLED) = 3"
'

test_expect_success 'a second start upgrades nothing, and finds the same' '
	list_all && stop_gpuqd && cp queue.now queue.1 && cp history.now history.1 && start_upgraded && list_all &&
	same queue.1 queue.now $cycle && same history.1 history.now priority &&
	test $(grep -c store.upgraded gpuqd.log) = 1 && cmp before.mdb state/data.mdb.schema-1 &&
	stop_gpuqd && gpuqd --audit --state "$PWD/state"
'

test_done
