#!/bin/sh
test_description='backup of gpuqd.yaml: copies by themselves, which of them stay, and what a fault leaves'
. "$(dirname "$0")/lib.sh"

# copies: the names of the copies, the oldest first
copies() {
	(cd copies && ls gpuq-*Z.mdb 2>/dev/null)
}

has_a_copy() {
	test -n "$(copies)"
}

# Again, because a newer copy may replace it meanwhile.
keeps_one() {
	name=$(copies | tail -n 1) && cp -p "copies/$name" one.mdb
}

test_expect_success 'what is no such setting is refused' '
	printf "backup: {to: copies}\n" >bad.yaml && test_must_fail gpuqd --config bad.yaml --check 2>err && says err "absolute path" &&
	printf "backup: {to: /x, every: 0s}\n" >bad.yaml && test_must_fail gpuqd --config bad.yaml --check 2>err && says err "1s or more"
'

test_expect_success 'no folder: it is said, the daemon works, and the copy is made once there is one' '
	printf "backup: {to: %s, every: 1s, keep: {hourly: 2, daily: 3}}\n" "$PWD/copies" >backup.yaml &&
	start_gpuqd --config backup.yaml && wait_for 60 grep -q "backup.failed.*copies" gpuqd.log &&
	run=$(sh_job "sleep 300") && job_becomes "$run" RUNNING && mkdir copies && wait_for 60 has_a_copy
'

test_expect_success 'a copy has a name of its time, is for gpuqd alone, and is intact' '
	wait_for 60 keeps_one && echo "$name" >out && says out "^gpuq-[0-9a-f]+-$(date -u +%Y)[0-9]{4}T[0-9]{6}Z.mdb\$" &&
	test "$(stat -c %a one.mdb)" = 600 && gpuqd --audit --state one.mdb >out && says out "a copy\$"
'

test_expect_success 'the next one replaces it within the hour; hours and days before keep their last' '
	id=$(copies | tail -n 1 | sed "s/^gpuq-//; s/-[^-]*\$//") && stop_gpuqd &&
	for t in 20200105T100000Z 20200105T105959Z 20200105T090000Z 20200104T230000Z 20200103T000000Z 20200102T000000Z; do
		>"copies/gpuq-$id-$t.mdb" || return 1
	done &&
	>copies/gpuq-0-20200101T000000Z.mdb && >"copies/gpuq-$id-20200101T00000xZ.mdb" && >"copies/.gpuq-$id-20200101T000000Z.mdb.0.part" &&
	start_gpuqd --config backup.yaml &&
	wait_for 60 eval "! test -e copies/gpuq-$id-20200102T000000Z.mdb" && stop_gpuqd && ls -A copies >left &&
	! grep -q part left && grep -q "^gpuq-0-" left && grep -q 00000xZ left &&
	test "$(grep -c "^gpuq-$id-2020.*[0-9]Z.mdb" left)" = 2 && grep -q 20200105T105959Z left && grep -q 20200104T230000Z left
'

test_expect_success 'a copy that is not due is not made at a start' '
	sed "s/1s/1h/" backup.yaml >hourly.yaml && ls copies >before && start_gpuqd --config hourly.yaml && gpuq status &&
	stop_gpuqd && ls copies >after && cmp before after
'

test_expect_success 'restored from it: the same job goes on, no number is used twice' '
	name=$(ls copies | grep "gpuq-$id-2[0-9]*T.*mdb\$" | tail -n 1) && mv state/data.mdb lost.mdb && start_gpuqd --restore "$PWD/copies/$name" &&
	job_becomes "$run" RUNNING && next=$(sh_job "exit 0") && test "$next" -gt 1000000 && exits 0 gpuq wait "$next" && gpuq cancel "$run" && stop_gpuqd
'

test_done
