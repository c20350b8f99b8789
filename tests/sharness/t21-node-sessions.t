#!/bin/sh
test_description='a real node: exec, attach, port-forward, run -it, signals'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/exec.yaml" --no-kwok --real-node --real-gpus 4

on_term() {
	/usr/bin/python3 "$test_source/tests/sharness/onterm.py" "$@"
}

# container 'COMMANDS' ['LINES']: a job of these shell commands
container() {
	/usr/bin/python3 - "$1" "${2:-gpus: 1}" <<-\END >real.yaml
	import json, sys
	print('image: docker.io/local/busybox:1\ncommand: %s\n%s' % (json.dumps(["/bin/sh", "-c", sys.argv[1]]), sys.argv[2]))
	END
	submit real.yaml
}

# fetch PORT: a line from there
fetch() {
	/usr/bin/python3 - "$1" <<-\END
	import socket, sys
	s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
	s.settimeout(60)
	print(s.makefile().readline(), end="")
	END
}

test_expect_success 'a daemon, a node with four GPUs, a job' '
	start_kube_gpuqd && wait_for 120 node_frees real1 4 &&
	id=$(container "while :; do echo from the pod | nc -l -p 8080; done & while :; do sleep 0.2; done") && job_becomes "$id" RUNNING 180
'

test_expect_success 'exec: output, error and exit code, each its own' '
	exits 7 gpuq exec "$id" -- sh -c "echo out; echo err >&2; exit 7" && test "$(cat out)" = out &&
	says err "^err$" && gpuq exec "$id" -- sh -c "echo \$GPUQ_JOB_ID" >out && test "$(cat out)" = "$id"
'

test_expect_success 'bytes as they are, both ways, and the end of input' '
	head -c 1000000 /dev/urandom >noise && gpuq exec -i "$id" -- cat <noise >back && test_cmp noise back
'

test_expect_success 'a reader that is slow loses nothing' '
	gpuq exec -i "$id" -- cat <noise | { sleep 2; cat; } >back && test_cmp noise back
'

test_expect_success 'a program that is not there, a container that is not there' '
	exits 127 gpuq exec "$id" -- /no/such/program && says err "no/such/program" &&
	exits 249 gpuq exec -c other "$id" -- true && says err "other"
'

test_expect_success 'a terminal: its size and its changes, and ours as it was' '
	on_term "[[\"# \", \"tty; stty size\\r\"], [\"24 80\", {\"size\": [101, 31]}],
		[\"\", \"sleep 1; stty size; exit 5\\r\"]]" gpuq exec -it "$id" -- sh >out &&
	says out "^/dev/pts/" && says out "^31 101$" && says out "^\[exit 5, restored\]$"
'

test_expect_success 'a client that is killed: its shell ends' '
	on_term "[[\"# \", \"echo a\$((1+1))b; exec sleep 12345\\r\"], [\"a2b\", {\"hangup\": true}]]" \
		gpuq exec -it "$id" -- sh >out && says out "exit -9" &&
	wait_for 60 eval "gpuq exec $id -- ps >ps.out && ! grep -q \"sleep 12345\" ps.out"
'

test_expect_success 'port-forward, again and again; a port where nobody listens' '
	rm -f forward && { gpuq port-forward "$id" :8080 :9 >forward 2>forward.err & forward=$!; } && wait_for 60 test -s forward &&
	here=$(sed -n "s/^Forwarding 127.0.0.1:\([0-9]*\) -> 8080$/\1/p" forward) && test -n "$here" &&
	nobody=$(sed -n "s/^Forwarding 127.0.0.1:\([0-9]*\) -> 9$/\1/p" forward) &&
	for n in 1 2 3; do wait_for 60 eval "fetch $here | grep -x \"from the pod\"" || return 1; done &&
	{ fetch "$nobody" >said || :; } && test ! -s said && wait_for 60 says forward.err "refused" &&
	kill "$forward" && wait "$forward"
'

test_expect_success 'cancel --signal reaches the first process' '
	gpuq events "$id" >/dev/null &&
	sig=$(container "trap \"echo got it\" USR1; echo ready; while :; do sleep 0.2; done") && job_becomes "$sig" RUNNING 180 &&
	wait_for 60 eval "gpuq logs $sig | grep -x ready" && gpuq cancel --signal USR1 "$sig" &&
	wait_for 60 eval "gpuq logs $sig | grep -x \"got it\"" && job_is "$sig" state RUNNING && gpuq cancel "$sig"
'

test_expect_success 'run -it: a shell, its exit code' '
	on_term "[[\"# \", \"tty; echo a\$((1+1))b\\r\"], [\"a2b\", \"exit 6\\r\"]]" \
		gpuq run -it --image "$kube_image" --gpus 1 -- sh >out &&
	says out "^/dev/pts/" && says out "^\[exit 6, restored\]$" && says out "gpuq-result:.*\"exit_code\":6"
'

test_expect_success 'leave it by ctrl-p ctrl-q, come back' '
	on_term "[[\"# \", \"echo a\$((1+1))b\\r\"], [\"a2b\", \"\\u0010\\u0011\"]]" gpuq run -it --image "$kube_image" -- sh >out &&
	says out "^\[exit 253, restored\]$" && shell=$(sed -n "s/.*submitted job \([0-9]*\).*/\1/p" out) &&
	job_is "$shell" state RUNNING &&
	on_term "[[\"a2b\", \"echo c\$((2+2))d\\r\"], [\"c4d\", \"exit 3\\r\"]]" gpuq attach -it "$shell" >out &&
	says out "^\[exit 0, restored\]$" && exits 3 gpuq wait "$shell"
'

test_expect_success 'without a terminal: input to its end, nothing of the output lost' '
	seq 1 2000 >in && gpuq run --stdin --image "$kube_image" -- cat <in >out 2>err && test_cmp in out && last_result COMPLETED 0
'

test_expect_success 'the end of the job is the end of what runs beside it' '
	{ { gpuq exec "$id" -- sleep 300 2>beside.err; echo $? >beside; } & } &&
	sleep 2 && gpuq cancel "$id" && job_becomes "$id" CANCELLED 120 && wait_for 60 test -s beside && test "$(cat beside)" != 0
'

test_expect_success 'nothing was over-committed' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
