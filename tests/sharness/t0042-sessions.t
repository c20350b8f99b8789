#!/bin/sh
test_description='exec, attach, port-forward, run -it on the local cluster'
. "$(dirname "$0")/lib.sh"

# on_term STEPS COMMAND...: on a terminal of its own, see onterm.py
on_term() {
	/usr/bin/python3 "$test_source/tests/sharness/onterm.py" "$@"
}

gone() {
	! grep -qsx "$1" /proc/[0-9]*/comm
}

forward_says() {
	/usr/bin/python3 - "$@" <<-\END
	import socket, sys
	s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20)
	s.settimeout(20)
	s.sendall(sys.argv[2].encode())
	s.shutdown(socket.SHUT_WR)
	got = b""
	while chunk := s.recv(65536):
	    got += chunk
	sys.stdout.write(got.decode())
	END
}

cat >echo.py <<-\END
import socket, sys, threading
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 0))
s.listen(64)
open("port.new", "w").write(str(s.getsockname()[1]))
import os
os.rename("port.new", "port")
def serve(c):
    got = b""
    while chunk := c.recv(65536):
        got += chunk
    c.sendall(got.upper())
    c.close()
while True:
    threading.Thread(target=serve, args=(s.accept()[0],)).start()
END

test_expect_success 'a daemon and a job with a device' '
	start_gpuqd && id=$(sh_job "exec python3 echo.py" --gpus=1) && wait_for 60 test -e port
'

test_expect_success 'exec: output, error and exit code, each its own' '
	exits 7 gpuq exec "$id" -- sh -c "echo out; echo err >&2; exit 7" && test "$(cat out)" = out &&
	test "$(cat err)" = err
'

test_expect_success 'in the job: its number, directory, devices, as its user' '
	gpuq exec "$id" -- sh -c "echo \$GPUQ_JOB_ID \$CUDA_VISIBLE_DEVICES; pwd; id -u" >out &&
	printf "%s 0\n%s\n%s\n" "$id" "$PWD" "$(id -u)" >want && test_cmp want out
'

test_expect_success 'bytes as they are, both ways' '
	head -c 3000000 /dev/urandom >noise && gpuq exec -i "$id" -- cat <noise >back && test_cmp noise back
'

test_expect_success 'a reader that is slow loses nothing' '
	gpuq exec "$id" -- cat "$PWD/noise" | { sleep 1; cat; } >back && test_cmp noise back
'

test_expect_success 'without -i there is no input' '
	echo text | gpuq exec "$id" -- cat >out && test ! -s out
'

test_expect_success 'options stand on either side of the job' '
	echo text | gpuq exec "$id" -i -- cat >out && says out "^text$"
'

test_expect_success 'the exit codes above the program own' '
	exits 127 gpuq exec "$id" -- /no/such/program && says err "/no/such/program" &&
	exits 137 gpuq exec "$id" -- sh -c "kill -9 \$\$" &&
	exits 254 gpuq exec 999 -- true && exits 255 gpuq exec "$id" &&
	exits 255 gpuq exec -t "$id" -- true </dev/null && says err "not a terminal" &&
	exits 249 gpuq exec --pod 5 "$id" -- true && says err "no pod 5"
'

test_expect_success 'a job that waits, and one that has ended, are told as that' '
	held=$(sh_job "exit 0" --hold) && exits 249 gpuq exec "$held" -- true && says err "is not running yet" &&
	gpuq release "$held" && exits 0 gpuq wait "$held" && exits 249 gpuq exec "$held" -- true && says err "has ended"
'

test_expect_success 'a terminal: its size and its changes, and ours as it was' '
	on_term "[[\"# \", \"tty; stty size; echo a\$((1+1))b\\n\"], [\"a2b\", {\"size\": [101, 31]}],
		[\"\", \"stty size; exit 5\\n\"]]" gpuq exec -it "$id" -- env PS1="# " sh -i >out &&
	says out "^/dev/pts/" && says out "^24 80$" && says out "^31 101$" && says out "^\[exit 5, restored\]$"
'

test_expect_success 'a signal to the client: the terminal is restored, the program ends' '
	cp "$(command -v sleep)" here-$$ &&
	on_term "[[\"ready\", {\"signal\": \"TERM\"}]]" gpuq exec -it "$id" -- sh -c "echo ready; ./here-$$ 300" >out &&
	says out "^\[exit 143, restored\]$" && wait_for 60 gone "here-$$"
'

test_expect_success 'a client that is killed: the program ends, even one that ignores it' '
	on_term "[[\"ready\", {\"hangup\": true}]]" gpuq exec -i "$id" -- \
		sh -c "trap \"\" HUP TERM; ./here-$$ 300 & echo ready; ./here-$$ 301" >out &&
	says out "exit -9" && wait_for 60 gone "here-$$" && job_is "$id" state RUNNING
'

test_expect_success 'port-forward: several connections, closed by halves' '
	rm -f forward && { gpuq port-forward "$id" ":$(cat port)" >forward 2>forward.err & forward=$!; } && wait_for 60 test -s forward &&
	here=$(sed -n "s/^Forwarding 127.0.0.1:\([0-9]*\) -> [0-9]*$/\1/p" forward) && test -n "$here" &&
	said= && for n in 1 2 3; do { forward_says "$here" "hello $n" >said.$n & said="$said $!"; } || return 1; done &&
	for n in $said; do wait "$n" || return 1; done &&
	test "$(cat said.1 said.2 said.3)" = "HELLO 1HELLO 2HELLO 3" &&
	kill "$forward" && wait "$forward"
'

test_expect_success 'a port where nobody listens; ports that are none' '
	rm -f forward && { gpuq port-forward "$id" :1 >forward 2>forward.err & forward=$!; } && wait_for 60 test -s forward &&
	here=$(sed -n "s/.*:\([0-9]*\) ->.*/\1/p" forward) && { forward_says "$here" x >said || :; } && test ! -s said &&
	wait_for 60 says forward.err "[Rr]efused" && kill "$forward" && wait "$forward" &&
	exits 2 gpuq port-forward "$id" 70000 && exits 254 gpuq port-forward 999 80
'

test_expect_success 'who was there is in the audit, without their arguments' '
	gpuq events --audit --json >out && says out "\"action\":\"job.exec\"" && says out "\"action\":\"job.forward\"" &&
	test_must_fail grep -q "kill -9" out
'

test_expect_success 'the end of the job is the end of what runs beside it' '
	{ { gpuq exec "$id" -- "./here-$$" 300 2>beside.err; echo $? >beside; } & } &&
	wait_for 60 eval "! gone here-$$" && gpuq cancel "$id" && job_becomes "$id" CANCELLED 60 && wait_for 60 test -s beside &&
	{ test "$(cat beside)" = 250 || { cat beside beside.err; return 1; }; } && wait_for 60 gone "here-$$"
'

test_expect_success 'attach shows a job without a terminal, and its end ends it' '
	id=$(sh_job "echo begun; until [ -e \"$PWD/go\" ]; do sleep 0.05; done; echo last") && job_becomes "$id" RUNNING 60 &&
	{ gpuq attach "$id" >attached & watcher=$!; } && wait_for 60 says attached "^begun$" && touch go && wait "$watcher" &&
	printf "begun\nlast\n" >want && test_cmp want attached
'

test_expect_success 'run -it: a shell, its exit code' '
	on_term "[[\"# \", \"tty; echo a\$((1+1))b\\n\"], [\"a2b\", \"exit 6\\n\"]]" gpuq run -it -- env PS1="# " sh -i >out &&
	says out "^/dev/pts/" && says out "^\[exit 6, restored\]$" && says out "gpuq-result:.*\"exit_code\":6"
'

test_expect_success 'leave it by ctrl-p ctrl-q, come back, and see what was said before' '
	on_term "[[\"# \", \"echo a\$((1+1))b\\n\"], [\"a2b\", \"\\u0010\\u0011\"]]" gpuq run -it -- env PS1="# " sh -i >out &&
	says out "^\[exit 253, restored\]$" && id=$(sed -n "s/.*submitted job \([0-9]*\).*/\1/p" out) &&
	job_is "$id" state RUNNING &&
	on_term "[[\"a2b\", \"exit 3\\n\"]]" gpuq attach -it "$id" >out && says out "^\[exit 0, restored\]$" &&
	exits 3 gpuq wait "$id"
'

test_expect_success 'a command that is over at once is still seen' '
	on_term "[]" gpuq run -it -- echo fast >out && says out "^fast$" && says out "^\[exit 0, restored\]$"
'

test_expect_success 'without a terminal: input to its end, nothing of the output lost' '
	seq 1 20000 >in && gpuq run --stdin -- cat <in >out 2>err && test_cmp in out && last_result COMPLETED 0
'

test_expect_success 'what cannot be: -it without a terminal, of an array' '
	exits 255 gpuq run -it -- true </dev/null && says err "not a terminal" &&
	echo | exits 255 gpuq run --stdin --array 0-1 -- true && says err "array"
'

test_expect_success 'a shell outlives the daemon; run -it comes back to it' '
	rm -f back && before=$(grep -c kind=attach gpuqd.log) && { on_term "[[\"# \", \"echo a\$((1+1))b; until [ -e back ]; do sleep 0.1; done; echo c\$((2+2))d\n\"],
		[\"c4d\", \"exit 9\n\"]]" gpuq run -it -- env PS1="# " sh -i >out & shell=$!; } &&
	wait_for 60 eval "test \$(grep -c kind=attach gpuqd.log) -gt $before" && sleep 1 && stop_gpuqd &&
	start_gpuqd && wait_for 60 eval "test \$(grep -c kind=attach gpuqd.log) -gt $((before + 1))" && touch back &&
	wait "$shell" && says out "^c4d$" && says out "^\[exit 9, restored\]$"
'

test_expect_success ROOT 'somebody else may not come in' '
	id=$(sh_job "sleep 300") && job_becomes "$id" RUNNING 60 && open_to_all &&
	exits 249 as nobody env HOME=/ gpuq exec "$id" -- true && says err "another user" &&
	exits 1 as nobody env HOME=/ gpuq attach "$id" && says err "another user" &&
	exits 1 as nobody env HOME=/ gpuq port-forward "$id" :80 && says err "another user"
'

test_expect_success 'run -it takes the first qos of its queue that is interactive, and no other job does' '
	cat >qos.yaml <<-\END &&
	version: 1
	qos: [{name: shell, interactive: true, max_time: 8h}, {name: desk, interactive: true}]
	queues: [{name: people, qos: [normal, shell, desk]}, {name: batch, qos: [normal]}]
	END
	gpuq apply -f qos.yaml &&
	for where in "people:shell" "people:desk:--qos=desk" "batch:normal"; do
		queue=${where%%:*} rest=${where#*:} && want=${rest%%:*} && extra=${rest#"$want"} &&
		on_term "[]" gpuq run -it --queue="$queue" ${extra:+"${extra#:}"} -- true >out &&
		n=$(sed -n "s/.*gpuq-result:.*\"id\":\([0-9]*\).*/\1/p" out) && test "$(job "$n" qos)" = "$want" || return 1
	done &&
	n=$(sh_job true --queue=people) && test "$(job "$n" qos)" = normal
'

test_expect_success 'the daemon ends with sessions open' '
	id=$(sh_job "sleep 300") && job_becomes "$id" RUNNING 60 &&
	{ { gpuq exec "$id" -- "./here-$$" 300 2>open.err; echo $? >open; } & } &&
	wait_for 60 eval "! gone here-$$" && stop_gpuqd && wait_for 60 test -s open && test "$(cat open)" = 250 &&
	wait_for 60 gone "here-$$"
'

test_done
