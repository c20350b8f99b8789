#!/bin/sh
test_description='clients that send nonsense, too much, or nothing'
. "$(dirname "$0")/lib.sh"

# As another user where that can be: the limits are per user, and ours are to be served meanwhile.
attacker=
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	attacker="setpriv --reuid=65534 --regid=65534 --clear-groups --"
	test_set_prereq OTHER_USER
fi

rss_kib() {
	sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$gpuqd_pid/status"
}

# A sanitizer keeps what was freed for a while: its memory says nothing.
ldd "$test_build/gpuqd/gpuqd" "$test_build/gpuqd/.libs/gpuqd" >libraries 2>/dev/null
if ! grep -q 'lib[at]san' /proc/self/maps && ! grep -q asan libraries; then
	test_set_prereq MEMORY
fi

attack() {
	# shellcheck disable=SC2086
	$attacker /usr/bin/python3 "$TMPDIR/hostile.py" "$gpuqd_socket" "$1" >attack.out 2>&1 &
	attack_pid=$!
	served=0
	while kill -0 $attack_pid 2>/dev/null; do
		[ -n "$attacker" ] || [ "$1" != crowd ] || { wait $attack_pid; break; }
		timeout 20 gpuq queue >served.out 2>&1 || { cat served.out; kill $attack_pid; return 1; }
		served=$((served + 1))
		sleep 0.1
	done
	wait $attack_pid || { cat attack.out; return 1; }
	kill -0 "$gpuqd_pid" && echo "$served times served meanwhile"
}

test_expect_success 'start' '
	start_gpuqd && cp "$test_source/tests/sharness/hostile.py" "$TMPDIR" && chmod a+r "$TMPDIR/hostile.py" &&
	{ test -z "$attacker" || open_to_all; } && id=$(sh_job true --hold) && job_is "$id" state PENDING
'

for what in noise cut bombs flood wrong loris hoard; do
	test_expect_success "it survives and serves others: $what" "
		attack $what
	"
done
test_expect_success OTHER_USER 'it survives and serves others: crowd' 'attack crowd'

test_expect_success MEMORY 'it does not grow' '
	before=$(rss_kib) &&
	for what in noise cut bombs flood wrong noise cut bombs flood wrong; do attack $what || return 1; done &&
	after=$(rss_kib) && echo "$before KiB before, $after KiB after" && test "$after" -lt $((before + 8192))
'

test_expect_success 'no descriptor is left open' '
	ls /proc/$gpuqd_pid/fd | wc -l >fds && cat fds && test "$(cat fds)" -lt 40
'

test_expect_success 'nothing of it was taken for a job' '
	gpuq queue -a -h >all && test "$(wc -l <all)" = 1 && job_is "$id" state PENDING && stop_gpuqd
'

test_done
