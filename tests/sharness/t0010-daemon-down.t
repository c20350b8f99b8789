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
	exits 255 gpuq --server nonsense queue && says err "nonsense" || exits 2 gpuq --server nonsense queue
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
	{ /usr/bin/python3 odd.py "$TMPDIR/odd" & odd=$!; } && wait_for 20 test -S "$TMPDIR/odd" &&
	exits 255 gpuq --server "unix:$TMPDIR/odd" queue && test -s err && kill "$odd"
'

test_expect_success 'who waits does not notice that the daemon dies and comes back' '
	start_gpuqd && id=$(sh_job "until [ -e \"$PWD/go\" ]; do sleep 0.05; done; exit 17") && job_becomes "$id" RUNNING &&
	rm -f err && { ( exits 17 gpuq wait --verbose "$id" ) >waited 2>&1 & waiter=$!; } && wait_for 30 test -s err &&
	kill_gpuqd && start_gpuqd && touch go && wait "$waiter"
'

test_expect_success 'where it was, it is found again' '
	stop_gpuqd && start_gpuqd && job_is "$id" exit_code 17 && stop_gpuqd
'

test_done
