#!/bin/sh
test_description='no daemon: 255, and what to do'
. "$(dirname "$0")/lib.sh"

echo 'command: ["true"]' >job.yaml

for verb in 'queue' 'nodes' 'queues' 'status' 'status 1' 'submit job.yaml' 'submit --wait job.yaml' \
	'run -- true' 'cancel 1' 'hold 1' 'release 1' 'wait 1' 'logs 1' 'version'; do
	test_expect_success "gpuq $verb" '
		exits 255 gpuq $verb && says err "$gpuqd_socket" && says err "gpuqd"
	'
done

test_expect_success 'version --client, completion and help need none' '
	exits 0 gpuq version --client && exits 0 gpuq completion bash && exits 0 gpuq --help
'

test_expect_success 'a wrong file is told before the server is asked' '
	echo "gpsu: 1" >bad.yaml && exits 1 gpuq submit bad.yaml && says err "bad.yaml:1:1"
'

test_expect_success 'an address that is none' '
	exits 255 gpuq --server nonsense queue && says err "nonsense"
'

test_expect_success 'a socket that nobody listens on' '
	/usr/bin/python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"$TMPDIR/dead\")" &&
	exits 255 gpuq --server "unix:$TMPDIR/dead" queue && says err "dead"
'

test_expect_success 'a server that does not speak our language' '
	cat >odd.py <<-\END &&
	import socket, sys
	l = socket.socket(socket.AF_UNIX)
	l.bind(sys.argv[1])
	l.listen()
	while True:
	    c, _ = l.accept()
	    c.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" * 100)
	    c.close()
	END
	{ /usr/bin/python3 odd.py "$TMPDIR/odd" & odd=$!; } && wait_for 60 test -S "$TMPDIR/odd" &&
	exits 255 gpuq --server "unix:$TMPDIR/odd" queue && test -s err && kill "$odd"
'

test_expect_success 'who waits does not notice that the daemon dies and comes back' '
	start_gpuqd && id=$(sh_job "until [ -e \"$PWD/go\" ]; do sleep 0.05; done; exit 17") && job_becomes "$id" RUNNING &&
	rm -f err && { ( exits 17 gpuq wait --verbose "$id" ) >waited 2>&1 & waiter=$!; } && wait_for 60 test -s err &&
	kill_gpuqd && start_gpuqd && touch go && wait "$waiter" && ended=$id
'

# at_once COMMAND...: it ends by ^C with 0, or 253 where it waits, though the daemon is silent. Else a
# daemon is given up after two minutes.
at_once() {
	rm -f at_once.out
	"$@" >at_once.out 2>&1 &
	at_once_pid=$!
	wait_for 60 test -s at_once.out || return 1
	kill -STOP $gpuqd_pid && sleep 0.5 && kill -INT $at_once_pid && wait_for 60 eval "! kill -0 $at_once_pid"
	at_once_gone=$?
	kill -CONT $gpuqd_pid
	[ $at_once_gone = 0 ] || { kill $at_once_pid; return 1; }
	wait $at_once_pid
	at_once_code=$?
	cat at_once.out
	case $2 in
	wait) test $at_once_code = 253 && says at_once.out "^gpuq-result: .*\"RUNNING\"" ;;
	*) test $at_once_code = 0 ;;
	esac
}

test_expect_success 'a daemon that does not answer keeps nobody from stopping to wait for it' '
	id=$(sh_job "exec sleep 300") && job_becomes "$id" RUNNING &&
	for verb in "queue --watch=0.1" "nodes --json --watch=0.1" "status --watch=0.1" "status $id --watch=0.1" "diag --watch=0.1" "events -f $id" \
		"wait -v $id"; do
		at_once gpuq $verb || return 1
	done && gpuq cancel "$id"
'

test_expect_success 'where it was, it is found again' '
	stop_gpuqd && start_gpuqd && job_is "$ended" exit_code 17 && stop_gpuqd
'

test_done
