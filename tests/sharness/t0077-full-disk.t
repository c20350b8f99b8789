#!/bin/sh
test_description='a job that fills the disk with its output can be ended; a full disk heals, also by what is forgotten'
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" = 0 ] && mkdir state && mount -t tmpfs -o size=24m,mode=700 gpuq-test "$PWD/state" 2>/dev/null; then
	test_set_prereq SMALL_DISK
	small_disk=$PWD/state
	trap 'end_code=$?; end_all; umount "$small_disk"; (exit $end_code); die' EXIT
fi
grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

# free_mib: of the small disk, rounded down
free_mib() { echo $(($(df --output=avail -k "$small_disk" | tail -n 1) / 1024)); }
# is MEMBER VALUE: of the cluster in gpuq status
is() { gpuq status --json | json "cluster.$1" >is && test "$(cat is)" = "$2"; }

test_expect_success SMALL_DISK 'output leaves what the database needs: jobs are accepted and ended beside it' '
	start_gpuqd && other=$(sh_job "sleep 1000") && job_becomes "$other" RUNNING && yes=$(sh_job yes) &&
	wait_for 60 eval "test \$(free_mib) -le 12" && sleep 1 && test "$(free_mib)" -ge 11 && is no_new_jobs false &&
	test "$(stat -c %s "$small_disk/ballast")" = 8388608 && third=$(sh_job "exit 3") && exits 3 gpuq wait "$third" &&
	gpuq cancel "$other" && job_becomes "$other" CANCELLED && gpuq cancel "$yes" && job_becomes "$yes" CANCELLED
'

test_expect_success SMALL_DISK 'what was kept of it is shown' '
	gpuq logs "$yes" >out && test "$(wc -c <out)" -gt 1000000 && head -n 1 out >first && echo y >want && test_cmp want first
'

# Somebody else takes all that is left, what was kept for a full disk as well.
use_up() {
	n=0
	while test -s "$small_disk/ballast" && test $((n += 1)) -lt 100; do
		dd if=/dev/zero of="$small_disk/fill$n" bs=4k
		gpuq hold "$held"; gpuq release "$held"; gpuq hold "$held"
	done
	dd if=/dev/zero of="$small_disk/fill" bs=4k
	df --output=avail -k "$small_disk" | tail -n 1 >avail
}
test_expect_success SMALL_DISK 'with no byte left a job is made to leave all the same' '
	held=$(sh_job "sleep 1000" --hold --begin 2999-01-01T00:00:00Z) && id=$(sh_job "echo \$\$ >pid.new; mv pid.new pid; exec sleep 1000") &&
	wait_for 60 test -s pid && job_becomes "$id" RUNNING && use_up >used 2>&1 && says avail "^ *0$" && is no_new_jobs true &&
	gpuq cancel "$id" && wait_for 60 eval "! kill -0 $(cat pid)" && says gpuqd.log "local.leave_failed.*No space left" &&
	rm "$small_disk"/fill* && job_becomes "$id" CANCELLED && is no_new_jobs false && gpuq cancel "$held" && stop_gpuqd
'

# grow: jobs that end at once and are kept, until none is accepted
grow() {
	n=0
	while { printf "#!/bin/sh\n#"; head -c 140000 /dev/urandom | base64 -w0; } >large.sh &&
		ended=$(submit --hold --export=NONE large.sh 2>err) && [ $((n += 1)) -lt 500 ]; do
		gpuq cancel "$ended" >/dev/null || return 1
	done
	says err "no space left"
}
# forgets: of jobs that have ended one is kept
forgets() {
	echo "history_max: 1" >keep.yaml && kill -HUP "$gpuqd_pid" && wait_for 60 says gpuqd.log "history.keep forgotten=[0-9]* kept=1"
}

test_expect_success SMALL_DISK 'space that comes back inside the database counts: whole ballast' '
	rm -rf "$small_disk"/* && echo "history_max: 0" >keep.yaml && start_gpuqd --config keep.yaml && grow && is no_new_jobs true &&
	test "$(stat -c %s "$small_disk/ballast")" = 8388608 && forgets && wait_for 60 is no_new_jobs false &&
	for i in 1 2 3; do id=$(sh_job "exit $i") && exits "$i" gpuq wait "$id" || return 1; done && kill_gpuqd
'

test_expect_success SMALL_DISK 'and where the ballast was given up: of what there is a smaller one' '
	mount -o remount,size=32m "$small_disk" && rm -rf "$small_disk"/* && echo "history_max: 0" >keep.yaml && start_gpuqd --config keep.yaml &&
	held=$(sh_job true --hold --begin 2999-01-01T00:00:00Z) && grow && use_up >used 2>&1 && rm "$small_disk/fill" && test ! -s "$small_disk/ballast" &&
	{ is no_new_jobs true || is read_only true; } && forgets && wait_for 60 is no_new_jobs false && size=$(stat -c %s "$small_disk/ballast") &&
	test "$size" -ge 1048576 && test "$size" -lt 8388608 && id=$(sh_job "exit 3") && exits 3 gpuq wait "$id" &&
	kill_gpuqd && start_gpuqd && is no_new_jobs false && test -s "$small_disk/ballast" &&
	mount -o remount,size=64m "$small_disk" && is no_new_jobs false && test "$(stat -c %s "$small_disk/ballast")" = 8388608 && stop_gpuqd
'

test_expect_success FAILPOINTS 'nor does a disk that fails keep it' '
	{ [ -z "$gpuqd_pid" ] || stop_gpuqd; } && GPUQ_FAILPOINT="local.leave.write:*=eio" && export GPUQ_FAILPOINT && start_gpuqd && unset GPUQ_FAILPOINT &&
	id=$(sh_job "sleep 1000") && job_becomes "$id" RUNNING && gpuq cancel "$id" && job_becomes "$id" CANCELLED &&
	test "$(grep -c "warn local.leave_failed" gpuqd.log)" -le 2 && stop_gpuqd
'

test_done
