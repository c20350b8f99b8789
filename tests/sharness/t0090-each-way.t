#!/bin/sh
test_description='the commands over a unix socket, TLS and ssh; what a killed daemon does to each of them'
. "$(dirname "$0")/lib.sh"

ways=unix
[ -n "$(no_sshd)" ] || ways="$ways ssh"
# A remote user of the local cluster is an account of this machine, not root.
if [ "$(id -u)" = 0 ]; then
	remote_user=daemon
else
	remote_user=$(id -un)
fi
ways="$ways tls"

# over WAY command...: with that way to the daemon
over() {
	over_way=$1
	shift
	eval "over_server=\$${over_way}_server"
	if [ "$over_way" = tls ]; then
		set -- env GPUQ_TOKEN_FILE="$PWD/token" "$@"
	fi
	env GPUQ_SERVER="$over_server" "$@"
}
echo word >word
# a_job WAY COMMANDS [line of the job...]: prints the id
a_job() {
	a_job_way=$1
	a_job_text=$2
	shift 2
	{ printf 'command: [sh, -c, "%s"]\nchdir: /\ncpus: 0\n' "$a_job_text"; printf '%s\n' "$@"; } | over "$a_job_way" gpuq submit --parsable -
}
# later NAME command...: in the background, its input a word; its output, errors and exit code go to NAME.out, .err, .code
later() {
	later_name=$1
	shift
	{ "$@" >"$later_name.out" 2>"$later_name.err" <word; echo $? >"$later_name.code.new"; mv "$later_name.code.new" "$later_name.code"; } &
}
# ends NAME CODE [REGEX]: it does, by itself, and says so on standard error
ends() {
	wait_for 60 test -s "$1.code" || return 1
	[ "$(cat "$1.code")" = "$2" ] || { echo "$1 ended with $(cat "$1.code"), not $2"; cat "$1.out" "$1.err"; return 1; }
	[ $# -lt 3 ] || says "$1.err" "$3"
}
start() {
	start_gpuqd --listen "$tls"
}

test_expect_success 'a daemon on a unix socket and on TLS, and a sshd' '
	tls=tls://127.0.0.1:$(free_port) && unix_server=$GPUQ_SERVER && exits 0 gpuqd --state "$PWD/state" --make-cert localhost && tls_server=$tls?pin=$(sed -n "s/^pin //p" out) &&
	start && chmod a+x "$TMPDIR/.." "$TMPDIR" . && gpuq token create --for="$remote_user" --scope=read,submit,control,session >token &&
	case "$ways" in *ssh*) start_sshd ;; esac
'

for way in $ways; do
	test_expect_success "$way: jobs from submission to their exit code, and what is asked about them" '
		id=$(a_job "$way" "echo hello; exit 3" "name: first") && exits 3 over "$way" gpuq wait "$id" && last_result FAILED 3 && exits 0 over "$way" gpuq logs "$id" && says out "^hello$" &&
		exits 0 over "$way" gpuq status "$id" --json && says out "\"exit_code\":3" && exits 0 over "$way" gpuq history -h && says out first &&
		exits 7 over "$way" gpuq run --chdir=/ --cpus=0 -- sh -c "echo run; exit 7" && says out "^run$" && last_result FAILED 7 &&
		id=$(a_job "$way" true "hold: true") && exits 0 over "$way" gpuq queue && says out " $id |^ *$id " && exits 0 over "$way" gpuq why "$id" && exits 0 over "$way" gpuq update "$id" comment=x &&
		exits 0 over "$way" gpuq release "$id" && exits 0 over "$way" gpuq wait "$id" && id=$(a_job "$way" "sleep 1000") && exits 0 over "$way" gpuq cancel "$id" && exits 252 over "$way" gpuq wait "$id" &&
		exits 0 over "$way" gpuq nodes && exits 0 over "$way" gpuq queues && exits 0 over "$way" gpuq whoami && exits 0 over "$way" gpuq events "$id" && says out CANCELLED &&
		exits 254 over "$way" gpuq status 999
	'
	test_expect_success "$way: exec and attach: bytes, exit codes, input to its end" '
		id=$(a_job "$way" "echo begun; read line; echo got \$line; sleep 1000" "stdin: true") && job_becomes "$id" RUNNING && exits 3 over "$way" gpuq exec "$id" -- sh -c "exit 3" &&
		head -c 1048576 /dev/urandom >sent && over "$way" gpuq exec --stdin "$id" -- cat <sent >back && cmp sent back &&
		later "attach-$way" over "$way" gpuq attach -i "$id" && wait_for 60 grep -q "got word" "attach-$way.out" && exits 0 over "$way" gpuq cancel "$id" && ends "attach-$way" 0
	'
done

cat >echo.py <<-\END
import os, socket, sys, threading
if sys.argv[1] != "serve":  # say: until the other side closes; ask: one answer
    s = socket.create_connection(("127.0.0.1", int(sys.argv[2])), 60)
    s.sendall(b"hello\n")
    while chunk := s.recv(4096):
        os.write(1, chunk)
        if sys.argv[1] == "ask":
            break
    sys.exit()
s = socket.create_server(("127.0.0.1", 0))
with open("echo/new", "w") as f:
    f.write(str(s.getsockname()[1]))
os.rename("echo/new", "echo/port")
def serve(c):
    while chunk := c.recv(4096):
        c.sendall(chunk.upper())
    c.close()
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
END
# port_here WAY: the port of its forwarding
port_here() {
	sed -n "s/.*:\([0-9]*\) ->.*/\1/p" "forward-$1.out"
}
# again WAY: a new connection through the forwarding gets an answer
again() {
	/usr/bin/python3 echo.py ask "$(port_here "$1")" | grep -q HELLO
}
# What is under way on each way while the daemon is killed, twice.
begin() {
	begin_way=$1
	id=$(a_job "$begin_way" "read line; echo got \$line; until [ -e '$PWD/go' ]; do sleep 0.1; done; echo last; exit 5" "stdin: true") && job_becomes "$id" RUNNING || return 1
	eval "id_$begin_way=$id"
	later "exec-$begin_way" over "$begin_way" gpuq exec "$id" -- sh -c 'echo $$; exec sleep 300'
	later "forward-$begin_way" over "$begin_way" gpuq port-forward "$id" ":$(cat echo/port)"
	later "logs-$begin_way" over "$begin_way" gpuq logs -f "$id"
	later "wait-$begin_way" over "$begin_way" gpuq wait "$id"
	later "held-$begin_way" over "$begin_way" gpuq attach -i "$id"
	later "run-$begin_way" over "$begin_way" gpuq run --lease 60s --chdir=/ --cpus=0 -- sh -c "echo first; until [ -e '$PWD/go' ]; do sleep 0.1; done; echo last; exit 6"
	wait_for 60 grep -q "^got word" "held-$begin_way.out" && wait_for 60 grep -q "^got word" "logs-$begin_way.out" && wait_for 60 grep -q "^first" "run-$begin_way.out" &&
	wait_for 60 grep -q Forwarding "forward-$begin_way.out" &&
	later "guest-$begin_way" /usr/bin/python3 echo.py say "$(port_here "$begin_way")" && wait_for 60 grep -q HELLO "guest-$begin_way.out" && wait_for 60 test -s "exec-$begin_way.out"
}

test_expect_success 'sessions and followers on each way; the daemon is killed and started, twice' '
	mkdir echo && { /usr/bin/python3 echo.py serve >echo/log 2>&1 3>&- 4>&- 5>&- & } && wait_for 30 test -s echo/port && for way in $ways; do begin "$way" || return 1; done &&
	kill_gpuqd && start && sleep 1 && kill_gpuqd && start &&
	for way in $ways; do wait_for 30 again "$way" || return 1; done && touch go
'

for way in $ways; do
	test_expect_success "$way: logs -f, wait, run with a lease and port-forward went on; attach and exec say why not" '
		ends "wait-$way" 5 && ends "logs-$way" 0 && printf "got word\nlast\n" >want && test_cmp want "logs-$way.out" && ends "run-$way" 6 && printf "first\nlast\n" >want && test_cmp want "run-$way.out" &&
		ends "held-$way" 255 "^gpuq: the connection to the server broke; job [0-9]* keeps running: gpuq attach [0-9]* connects again$" && ends "exec-$way" 250 "broke: the program in job [0-9]* is ended$" &&
		ends "guest-$way" 0 && says "forward-$way.err" "port [0-9]*: the connection to the server broke: this one is closed" && test ! -e "forward-$way.code" && test_must_fail kill -0 "$(cat "exec-$way.out")"
	'
done

test_done
