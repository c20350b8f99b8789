#!/bin/sh
test_description='exec, attach, port-forward and signals on an apiserver that refuses, breaks off and says odd things'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# refused CODE REGEX COMMAND...: as something that gpuqd may not do, with what would allow it
refused() {
	refused_code=$1 refused_what=$2
	shift 2
	exits "$refused_code" "$@" && says err "lacks the right" && says err "create $refused_what " &&
	says err "etc/kubernetes/optional/exec.yaml"
}

# signalled ID JSONPATH: of the last word on a signal in its log
signalled() {
	gpuq events "$1" --json | grep "\"event\":\"pod.signalled\"" | tail -n 1 | json "$2"
}

# connect PORT: a line there and back
connect() {
	/usr/bin/python3 - "$1" <<-\END
	import socket, sys
	s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20)
	s.settimeout(20)
	s.sendall(b"hello\n")
	print(s.makefile().readline(), end="")
	END
}

test_expect_success 'a daemon and a job that runs' '
	start_fake && start_fake_gpuqd && id=$(fake_job "hang=true") && job_becomes "$id" RUNNING
'

test_expect_success 'a program: its output, its input, its exit code; one that is not there' '
	exits 7 gpuq exec "$id" -- exit 7 && echo text | gpuq exec -i "$id" -- cat >out && test "$(cat out)" = text &&
	exits 127 gpuq exec "$id" -- no-such && says err "not found"
'

test_expect_success 'a ping of the server is answered' '
	exits 0 gpuq exec "$id" -- ping
'

test_expect_success 'a handshake that is refused names the right that is missing, and what gives it' '
	fault "on GET pods/exec status=403" "on GET pods/attach status=403" "on GET pods/portforward status=403" &&
	refused 249 pods/exec gpuq exec "$id" -- true && refused 1 pods/attach gpuq attach "$id" &&
	rm -f forward && { gpuq port-forward "$id" :80 >forward 2>forward.err & forward=$!; } && wait_for 60 test -s forward &&
	here=$(sed -n "s/^Forwarding 127.0.0.1:\([0-9]*\) -> .*/\1/p" forward) && { connect "$here" || :; } &&
	wait_for 60 says forward.err "create pods/portforward .*etc/kubernetes/optional/exec.yaml" &&
	kill "$forward" && { wait "$forward" || :; }
'

for odd in status=500 html garbage drop-before-commit; do
	test_expect_success "a handshake that comes to nothing: $odd" "
		fault clear 'on GET pods/exec $odd' && exits 249 gpuq exec $id -- true && test -s err &&
		fault clear && exits 0 gpuq exec $id -- ping
	"
done

for end in "close after=1" "close after=1 reset" "close"; do
	test_expect_success "a session that breaks off: $end" "
		fault clear 'on GET pods/exec $end' && echo text >in && code=0 &&
		{ gpuq exec -i $id -- cat <in >out 2>err || code=\$?; } && cat err && test \$code -ge 249 && test -s err &&
		fault clear && exits 0 gpuq exec $id -- ping
	"
done

test_expect_success 'a port whose connection breaks off: the next one is another' '
	rm -f forward && { gpuq port-forward "$id" :80 >forward 2>forward.err & forward=$!; } && wait_for 60 test -s forward &&
	here=$(sed -n "s/^Forwarding 127.0.0.1:\([0-9]*\) -> .*/\1/p" forward) && test "$(connect "$here")" = hello &&
	fault "on GET pods/portforward close after=2 reset" && test -z "$(connect "$here")" &&
	fault clear && test "$(connect "$here")" = hello && kill "$forward" && wait "$forward"
'

test_expect_success 'a session that falls silent is left by its client' '
	fault "on GET pods/exec half-open after=1" && { timeout -s INT 2 gpuq exec -i "$id" -- cat <in >out 2>err || :; } &&
	fault clear && exits 0 gpuq exec "$id" -- ping && job_is "$id" state RUNNING
'

test_expect_success 'a signal: the answer waits for it, and it stands in the events' '
	exits 0 gpuq cancel --signal USR1 "$id" && says out "^Signalled 1 job" && grep -q signal-10 audit &&
	test "$(signalled "$id" signal)" = USR1 && test "$(signalled "$id" sent)" = true && test "$(signalled "$id" pod)" = 0
'

test_expect_success 'two at once, and both arrive' '
	fault "on GET pods/exec delay=1s" && { gpuq cancel --signal HUP "$id" >hup.out & hup=$!; } &&
	exits 0 gpuq cancel --signal USR2 "$id" && wait $hup && fault clear && grep -q "signal-1\"" audit && grep -q signal-12 audit
'

test_expect_success 'no right to send it: said, not counted, and in the events' '
	fault "on GET pods/exec status=403" && exits 1 gpuq cancel --signal USR2 "$id" && says out "^Signalled 0 jobs" &&
	says err "lacks the right.*create pods/exec .*etc/kubernetes/optional/exec.yaml" &&
	test "$(signalled "$id" sent)" = false && signalled "$id" message >said && says said "pods/exec" &&
	exits 1 gpuq cancel --signal USR2 "$id" && says err "etc/kubernetes/optional/exec.yaml" && job_is "$id" state RUNNING
'

test_expect_success 'that holds for its namespace, not for others' '
	cat >site.yaml <<-\END &&
	version: 1
	queues: [{name: other, namespace: team-b}, {name: owner, quota: 8}, {name: guest}]
	END
	/usr/bin/curl -sSf -H "Content-Type: application/json" -d "{\"metadata\":{\"name\":\"team-b\"}}" \
		"http://127.0.0.1:$fake_port/api/v1/namespaces" >/dev/null && gpuq apply -f site.yaml &&
	fault clear "on GET pods/exec ns=default status=403" &&
	other=$(fake_job "hang=true" --queue=other) && job_becomes "$other" RUNNING && exits 0 gpuq cancel --signal USR1 "$other"
'

test_expect_success 'KILL does not reach the first process of a container' '
	exits 1 gpuq cancel --signal KILL "$other" && says err "gpuq cancel" && job_is "$other" state RUNNING
'

test_expect_success 'what was to save itself and could not be told gets TERM, and its events say so' '
	gpuq cancel "$id" "$other" && job_becomes "$id" CANCELLED && job_becomes "$other" CANCELLED &&
	saves=$(fake_job "hang=true" --queue=guest --gpus-per-node=4 --pods=2 --checkpoint=USR1@60s) && job_becomes "$saves" RUNNING &&
	owner=$(fake_job "hang=true" --queue=owner --gpus=4) && job_becomes "$owner" RUNNING &&
	test "$(signalled "$saves" instead)" = TERM && test "$(signalled "$saves" sent)" = false
'

no_harm_was_done
test_done
