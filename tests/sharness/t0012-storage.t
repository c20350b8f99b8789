#!/bin/sh
test_description='a full disk, a damaged record, a second daemon'
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" = 0 ] && mkdir state && mount -t tmpfs -o size=16m,mode=700 gpuq-test "$PWD/state" 2>/dev/null; then
	test_set_prereq SMALL_DISK
	small_disk=$PWD/state
	trap 'end_code=$?; end_all; umount "$small_disk"; (exit $end_code); die' EXIT
fi
echo '{command: [sleep, "1000"], hold: true}' >job.yaml
echo '{command: [sleep, "1000"], hold: true, begin: "2999-01-01T00:00:00Z"}' >later.yaml

fill() { dd if=/dev/zero of="$small_disk/fill" bs=64k count=512 2>/dev/null; ! test -s "$small_disk/ballast" || df --output=avail "$small_disk" | grep -q "^ *0$"; }
is() { gpuq status --json | json "cluster.$1" >is && test "$(cat is)" = "$2"; }

test_expect_success SMALL_DISK 'a submission that finds no space is refused and leaves nothing' '
	start_gpuqd && first=$(submit job.yaml) && held=$(submit job.yaml) && is no_new_jobs false && fill &&
	exits 1 gpuq submit job.yaml && says err "no space left in $small_disk: 8 MiB must be free" &&
	exits 1 gpuq submit job.yaml && says err "no space" &&
	exits 1 gpuq update "$held" name=other && says err "no space" &&
	test "$(in_queue)" = 2 && job_is "$first" state PENDING
'

test_expect_success SMALL_DISK 'reading goes on, and the daemon says that it accepts no jobs' '
	is no_new_jobs true && is read_only false && gpuq nodes >/dev/null && gpuq status >out && says out "no new jobs" &&
	gpuq submit --dry-run job.yaml >/dev/null
'

test_expect_success SMALL_DISK 'what ends jobs goes on from what is kept for it, and stays after a kill' '
	gpuq release "$held" && job_becomes "$held" RUNNING && gpuq hold "$first" && gpuq cancel "$held" &&
	job_becomes "$held" CANCELLED && is read_only false && exits 1 gpuq submit job.yaml &&
	kill_gpuqd && start_gpuqd && job_is "$held" state CANCELLED && job_is "$first" state PENDING &&
	exits 1 gpuq submit job.yaml && says err "no space" && gpuq cancel "$first" && job_becomes "$first" CANCELLED &&
	kill_gpuqd && start_gpuqd && job_is "$first" state CANCELLED && test "$(in_queue)" = 0
'

test_expect_success SMALL_DISK 'it takes jobs as soon as there is space, in the same process' '
	before=$gpuqd_pid && rm "$small_disk/fill" && first=$(submit job.yaml) && is no_new_jobs false &&
	kill -0 "$before" && gpuq release "$first" && job_becomes "$first" RUNNING &&
	test "$(stat -c %s "$small_disk/ballast")" = 8388608
'

# What is kept is used up as well: it goes on reading, and begins anew when there is space.
use_up() {
	i=0
	while is read_only false && test $((i += 1)) -lt 4000; do
		gpuq hold "$first"; gpuq release "$first"; gpuq hold "$first"; fill
	done >/dev/null 2>&1
}

test_expect_success SMALL_DISK 'when nothing is left nothing is changed, and no number is used twice' '
	gpuq cancel "$first" && job_becomes "$first" CANCELLED && first=$(submit later.yaml) && fill &&
	use_up && is read_only true && job_is "$first" state PENDING &&
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
