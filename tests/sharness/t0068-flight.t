#!/bin/sh
test_description='bytes in flight are bounded, per user and in all, and others are served meanwhile'
. "$(dirname "$0")/lib.sh"

users=$(id -u)
if [ "$(id -u)" = 0 ]; then
	users='65531 65532 65533 65534 65535'
	test_set_prereq OTHER_USERS
fi
# A sanitizer keeps what was freed for a while: its memory says nothing.
if ldd "$test_build/gpuqd/gpuqd" "$test_build/gpuqd/.libs/gpuqd" 2>/dev/null | grep -q asan; then
	echo "no measuring of memory under a sanitizer"
else
	test_set_prereq MEMORY
fi

# anonymous memory: pages of the database's file are not counted
rss_kib() {
	sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$gpuqd_pid/status"
}
# as_uid UID command...
as_uid() {
	as_uid=$1
	shift
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid="$as_uid" --regid="$as_uid" --clear-groups -- "$@"
	else
		"$@"
	fi
}
# hoards UID...: each keeps 250 unfinished messages; meanwhile all are served. Prints how far the memory grew, in KiB
hoards() {
	hoards_before=$(rss_kib) hoards_most=0 hoards_pids=
	for hoards_uid; do
		as_uid "$hoards_uid" /usr/bin/python3 "$TMPDIR/hostile.py" "$gpuqd_socket" hoard >"hoard.$hoards_uid" 2>&1 &
		hoards_pids="$hoards_pids $!"
	done
	hoards_served=0
	# shellcheck disable=SC2086
	while kill -0 $hoards_pids 2>/dev/null; do
		timeout 20 gpuq queue >served.out 2>&1 && timeout 20 as_served "$1" || { cat served.out; return 1; }
		hoards_served=$((hoards_served + 1))
		hoards_now=$(rss_kib)
		[ "$hoards_now" -le $hoards_most ] || hoards_most=$hoards_now
	done
	for hoards_pid in $hoards_pids; do
		wait "$hoards_pid" || { cat hoard.*; return 1; }
	done
	[ $hoards_served -ge 5 ] || { echo "served $hoards_served times"; return 1; }
	echo $((hoards_most - hoards_before)) >grown
}

test_expect_success 'start' '
	start_gpuqd && cp "$test_source/tests/sharness/hostile.py" "$test_build/gpuq/gpuq" "$TMPDIR" && chmod a+rx "$TMPDIR/hostile.py" "$TMPDIR/gpuq" &&
	{ ! test_have_prereq OTHER_USERS || open_to_all; } && cat >"$TMPDIR/as_served" <<-END &&
	#!/bin/sh
	# the same user, on a new connection
	if [ "\$(id -u)" = 0 ]; then
		exec setpriv --reuid="\$1" --regid="\$1" --clear-groups -- "$TMPDIR/gpuq" queue
	fi
	exec "$TMPDIR/gpuq" queue
	END
	chmod a+x "$TMPDIR/as_served" && PATH=$TMPDIR:$PATH
'

test_expect_success MEMORY 'one user: 64 MiB, and what connections need' '
	hoards ${users##* } && cat grown && test "$(cat grown)" -lt $(((64 + 64) * 1024))
'

test_expect_success MEMORY,OTHER_USERS 'five users: 256 MiB, and what connections need' '
	hoards $users && cat grown && test "$(cat grown)" -lt $(((256 + 192) * 1024))
'

test_expect_success 'all of it is given back' '
	none_left() { test "$(gpuq diag --json | json rpc.flight_bytes)" -lt 65536 && test "$(gpuq diag --json | json rpc.waiting)" = 0; } &&
	wait_for 60 none_left
'

test_expect_success 'the largest file of jobs is still taken, and a message that is longer than its method allows is not' '
	/usr/bin/python3 -c "print(\"#!/bin/sh\nexit 0\n#\" + \"x\" * 200000)" >large.sh && large=$(submit --hold large.sh) && job_is "$large" state PENDING &&
	/usr/bin/python3 - "$gpuqd_socket" <<-END
		import sys
		sys.path.insert(0, "$test_source/tests/sharness")
		sys.dont_write_bytecode = True
		import hostile
		s = hostile.greeted()
		hostile.send(s, hostile.pack([0, 2, "status.get", [{"x": "y" * 100000}]]))
		got = hostile.ends(s)
		assert b"too_big" in got, got
	END
'

test_expect_success 'the daemon stops' 'stop_gpuqd'

test_done
