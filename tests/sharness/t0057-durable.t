#!/bin/sh
test_description='nothing is answered or started before what it rests on is on the disk: every sync of the daemon is seen'
. "$(dirname "$0")/lib.sh"

sync_log=$test_build/tests/unit/.libs/sync_log.so
if ! [ -r "$sync_log" ]; then
	skip_all="$sync_log is not there; run make check-build first"
	test_done
fi
ldd "$test_build/gpuqd/gpuqd" "$test_build/gpuqd/.libs/gpuqd" >libraries 2>/dev/null
if grep -q asan libraries; then
	skip_all='a sanitizer has to be the first library that is loaded'
	test_done
fi
log=$PWD/syncs

start_noted() {
	LD_PRELOAD=$sync_log SYNC_LOG=$log start_gpuqd "$@"
}

# syncs PATTERN: how often such a file was made durable
syncs() {
	grep -cE "^sync .*$1\$" "$log"
}

# durable COMMAND...: before it is answered, the database is made durable once more
durable() {
	durable_before=$(syncs /data.mdb)
	"$@" && [ "$(syncs /data.mdb)" -gt "$durable_before" ] && return 0
	echo "not made durable before the answer: $*"
	return 1
}

# nth WHAT: the line of the log where it comes first
nth() {
	grep -nE -m 1 "$1\$" "$log" | cut -d: -f1
}

# in_order PATTERN...: all are in the log, each behind the one before it
in_order() {
	order_last=0
	for order_what; do
		order_at=$(nth "$order_what") && [ -n "$order_at" ] && [ "$order_at" -gt $order_last ] && order_last=$order_at && continue
		echo "$order_what: not in its place"
		cat "$log"
		return 1
	done
}

test_expect_success 'a new database: the file, then its name, then the mark beside it' '
	: >"$log" && start_noted && in_order "^sync .*/state/data.mdb" "^sync .*/state" "^sync .*/state/mark.new"
'

test_expect_success 'each answer comes behind the disk' '
	durable sh_job "exit 0" --hold >id && id=$(cat id) && durable gpuq hold "$id" && durable gpuq update "$id" nice=3 && durable gpuq release "$id" &&
	exits 0 gpuq wait "$id" && durable sh_job "sleep 300" --hold >id && durable gpuq cancel "$(cat id)" &&
	printf "version: 1\nqueues: [{name: more}]\n" >site.yaml && durable gpuq apply -f site.yaml && durable gpuq queues stop more &&
	durable gpuq drain "*" && durable gpuq resume "*"
'

test_expect_success 'a process starts behind the files that say what it is' '
	: >"$log" && id=$(sh_job "echo run >>$(printf %s "$log" | sed "s/ /\\\\ /g"); exit 3") && exits 3 gpuq wait "$id" &&
	pod=$(job "$id" pods.0.name) && in_order "^sync .*/data.mdb" "^sync .*/local/$pod/order" "^run" && in_order "^sync .*/local/$pod/script" "^run" &&
	in_order "^sync .*/local/$pod" "^run" && in_order "^sync .*/local" "^run" && in_order "^sync .*/local/$pod/state" "^run" &&
	test "$(syncs "/local/$pod/state")" -ge 3
'

test_expect_success 'a backup has its name once its bytes are on the disk, and the name is, too' '
	mkdir there && : >"$log" && gpuq backup --server-path "$PWD/there/copy.mdb" && in_order "^sync .*/there/.*" "^link copy.mdb" "^sync .*/there"
'

test_expect_success 'the daemon stops' 'stop_gpuqd'

test_done
