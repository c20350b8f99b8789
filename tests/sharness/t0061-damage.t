#!/bin/sh
test_description='a damaged, shortened or missing database is refused, never served; gpuqd --audit'
. "$(dirname "$0")/lib.sh"

# damage FILE KIND [ARGUMENT]: see the cases
cat >damage.py <<'END'
import os, sys
path, kind = sys.argv[1:3]
data = bytearray(open(path, "rb").read())
P = 4096
if kind == "stale":  # the nth page that differs from an older file, as it was there
    old = open(sys.argv[3], "rb").read()
    pages = [i for i in range(2, min(len(old), len(data)) // P) if old[i*P:i*P+P] != data[i*P:i*P+P]]
    i = pages[int(sys.argv[4]) % len(pages)]
    data[i*P:i*P+P] = old[i*P:i*P+P]
elif kind == "zero":  # the last page that begins with a head of its own
    i = max(i for i in range(2, len(data) // P) if int.from_bytes(data[i*P:i*P+8], "little") == i)
    data[i*P:i*P+P] = bytes(P)
elif kind == "cut":
    del data[len(data) // 2:]
elif kind == "bytes":  # every place where the one text is
    data = data.replace(sys.argv[3].encode(), sys.argv[4].encode())
open(path, "wb").write(data)
END

daemon() {
	timeout -s KILL 60 gpuqd --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster local --gpus 4 "$@" </dev/null
}

# back: the state as it was before it was damaged
back() {
	rm -rf state && cp -a whole state
}

# served_whole: the daemon starts and has all jobs, or ends with 74
served_whole() {
	gpuqd --state "$PWD/state" --listen "$GPUQ_SERVER" --cluster local --gpus 4 </dev/null >>gpuqd.log 2>err 3>&- 4>&- 5>&- &
	gpuqd_pid=$!
	served_until=$(($(date +%s) + 60))
	until gpuq queue -h >jobs.now 2>/dev/null; do
		if ! kill -0 "$gpuqd_pid" 2>/dev/null; then
			wait "$gpuqd_pid"
			served_code=$?
			gpuqd_pid=
			[ $served_code = 74 ] && says err damaged && return 0
			echo "exit status $served_code"
			cat err
			return 1
		fi
		[ "$(date +%s)" -lt $served_until ] || return 1
		sleep 0.05
	done
	cut -c1-20 jobs.now | sort >jobs.now.sorted
	kill_gpuqd
	cmp jobs.before jobs.now.sorted
}

held_jobs() {
	seq 1 150 | sed 's/.*/--- {name: early-&, hold: true, command: [sleep, "&"]}/'
}

# ended_with CODE: what the daemon, which is no more, exited with
ended_with() {
	wait "$gpuqd_pid"
	ended_code=$?
	gpuqd_pid=
	test $ended_code = "$1"
}

test_expect_success 'a database with some hundred jobs, and how it was before half of them came' '
	start_gpuqd &&
	held_jobs >early.yaml && submit early.yaml >/dev/null && kill_gpuqd && cp state/data.mdb older.mdb && start_gpuqd &&
	sed s/early/late/ early.yaml >late.yaml && submit late.yaml >/dev/null &&
	gpuq queue -h | cut -c1-20 | sort >jobs.before && test "$(grep -c . jobs.before)" = 300 &&
	kill_gpuqd && cp -a state whole
'

test_expect_success 'whole, it is found whole' '
	exits 0 gpuqd --audit --state "$PWD/state" && says out "^whole: [0-9]+ records, schema 2" &&
	exits 0 gpuqd --audit --state "$PWD/state/data.mdb" && cmp whole/data.mdb state/data.mdb &&
	ls whole >a && ls state >b && cmp a b && served_whole
'

test_expect_success 'pages of an earlier time are not served' '
	for n in 0 3 7 11 17 23 31 41 53 67; do
		back && python3 damage.py state/data.mdb stale older.mdb $n && served_whole || return 1
	done
'

test_expect_success 'a page of zeros is not served' '
	back && python3 damage.py state/data.mdb zero && served_whole &&
	back && python3 damage.py state/data.mdb zero && exits 74 gpuqd --audit --state "$PWD/state" && says err damaged
'

test_expect_success 'a name that was changed in a record is not served' '
	submitted=late-77 && back && python3 damage.py state/data.mdb bytes $submitted late-78 && served_whole
'

test_expect_success 'a file that was cut ends with 74, not by a signal' '
	back && python3 damage.py state/data.mdb cut && exits 74 daemon && says err "damaged|pages" &&
	exits 74 gpuqd --audit --state "$PWD/state"
'

test_expect_success 'an empty database beside jobs or logs is refused, and the way out is told' '
	back && : >state/data.mdb && exits 74 daemon && says err "missing or empty" && says err "new-state" &&
	back && rm state/data.mdb && exits 74 daemon && says err "new-state" && ! test -e state/data.mdb &&
	rm state/mark && mkdir -p state/logs && : >state/logs/1 && exits 74 daemon && says err "logs"
'

test_expect_success '--new-state is the word that begins anew' '
	start_gpuqd --new-state && test "$(in_queue)" = 0 && submit early.yaml >/dev/null && kill_gpuqd &&
	start_gpuqd && test "$(in_queue)" = 150 && stop_gpuqd
'

test_expect_success 'damage under a running daemon: exit 74, no answer' '
	back && start_gpuqd && : >state/data.mdb && test_must_fail gpuq submit early.yaml >out 2>&1 &&
	wait_for 60 gpuqd_is_dead && ended_with 74
'

test_expect_success 'a backup is audited as a file, and a running state is not touched' '
	back && start_gpuqd && exits 75 gpuqd --audit --state "$PWD/state" && gpuq backup copy.mdb && stop_gpuqd &&
	exits 0 gpuqd --audit --state "$PWD/copy.mdb" && says out "a copy" &&
	python3 damage.py copy.mdb zero && exits 74 gpuqd --audit --state "$PWD/copy.mdb" && says err damaged
'

test_done
