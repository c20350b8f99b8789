#!/bin/sh
test_description='a full disk, a damaged record, a second daemon'
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" = 0 ] && mkdir state && mount -t tmpfs -o size=16m gpuq-test "$PWD/state" 2>/dev/null; then
	test_set_prereq SMALL_DISK
	small_disk=$PWD/state
	trap 'end_code=$?; end_all; umount "$small_disk"; (exit $end_code); die' EXIT
fi
echo '{command: [sleep, "1000"], hold: true}' >job.yaml

test_expect_success SMALL_DISK 'a submission that finds no space is refused and leaves nothing' '
	start_gpuqd && first=$(submit job.yaml) &&
	dd if=/dev/zero of="$small_disk/fill" bs=1M count=32 2>/dev/null;
	exits 1 gpuq submit job.yaml && says err "no space" &&
	exits 1 gpuq submit job.yaml && says err "no space" &&
	test "$(in_queue)" = 1 && job_is "$first" state PENDING
'

test_expect_success SMALL_DISK 'reading goes on, and the daemon says that it is read-only' '
	gpuq status --json | json cluster.read_only >ro && test "$(cat ro)" = true && gpuq nodes >/dev/null
'

test_expect_success SMALL_DISK 'with space again it takes jobs, and no number is used twice' '
	rm "$small_disk/fill" && wait_for 60 eval "submit job.yaml >second" &&
	test "$(cat second)" = $((first + 1)) && test "$(in_queue)" = 2 &&
	gpuq release "$(cat second)" && job_becomes "$(cat second)" RUNNING &&
	gpuq cancel "$first" "$(cat second)" && job_becomes "$(cat second)" CANCELLED
'

test_expect_success SMALL_DISK 'what was taken is there after a kill' '
	kept=$(submit job.yaml) && kill_gpuqd && start_gpuqd && job_is "$kept" state PENDING && stop_gpuqd
'

test_expect_success 'a second daemon on the same state is told who has it' '
	start_gpuqd && exits 75 gpuqd --state "$PWD/state" --listen "unix:$TMPDIR/other" --cluster local &&
	says err "$gpuqd_pid" && stop_gpuqd
'

test_expect_success 'a damaged record stops the start and is named; the files stay' '
	start_gpuqd && name=needle-$$ && echo "{name: $name, command: [a], hold: true}" >n.yaml &&
	submit n.yaml && kill_gpuqd && cp state/data.mdb before &&
	python3 - "$PWD/state/data.mdb" "$name" <<-\EOF &&
	import sys
	d = open(sys.argv[1], "rb").read().replace(sys.argv[2].encode(), sys.argv[2].upper().encode())
	open(sys.argv[1], "r+b").write(d)
	EOF
	! cmp -s before state/data.mdb && exits 74 gpuqd --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster local &&
	says err "damaged" && test -s state/data.mdb
'

test_done
