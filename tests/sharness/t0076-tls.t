#!/bin/sh
test_description='tls://: certificates, pins, tokens, scopes, client certificates, bounds'
. "$(dirname "$0")/lib.sh"

if ! test_have_prereq ROOT; then
	skip_all='several users take root'
	test_done
fi
command -v openssl >/dev/null || {
	skip_all='the Debian package openssl is not installed'
	test_done
}

# User daemon is remote; its tokens are issued by root over the socket.
XDG_CONFIG_HOME=$PWD/config
export XDG_CONFIG_HOME
away() {
	env GPUQ_SERVER="$address" "$@"
}
# token OPTION...: prints a new one of user daemon
token() {
	gpuq token create --for=daemon "$@"
}
# refused REGEX command...: exit 255, one line of standard error, which matches
refused() {
	refused_line=$1
	shift
	exits 255 "$@" && [ "$(wc -l <err)" = 1 ] && says err "$refused_line"
}
# issue NAME SUBJECT EXTENSIONS...: a certificate of the test's CA, and its key
issue() {
	issue_name=$1
	printf '%s\n' "$2" >"$issue_name.ext"
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$issue_name.key" -subj "/CN=$issue_name" -out "$issue_name.csr" 2>/dev/null &&
	openssl x509 -req -in "$issue_name.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days "${3:-10}" -extfile "$issue_name.ext" -out "$issue_name.pem" 2>/dev/null
}

test_expect_success 'without a certificate gpuqd does not start; --make-cert makes one, once' '
	port=$(free_port) && address=tls://127.0.0.1:$port &&
	exits 78 gpuqd --state "$PWD/state" --cluster local --gpus 4 --listen "$address" &&
	exits 0 gpuqd --state "$PWD/state" --make-cert localhost 127.0.0.1 && pin=$(sed -n "s/^pin //p" out) &&
	test ${#pin} = 50 && exits 78 gpuqd --state "$PWD/state" --make-cert localhost && says err "move them away" &&
	exits 78 gpuqd --state "$PWD/other" --make-cert "no name" && says err "neither a host name nor an address"
'

test_expect_success 'a key that others can read is refused' '
	chmod 644 state/tls/key.pem && exits 78 gpuqd --state "$PWD/state" --cluster local --gpus 4 --listen "$address" &&
	says err "readable by others" && chmod 600 state/tls/key.pem
'

test_expect_success 'it listens; a CA, and a client CA' '
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -subj /CN=ca -days 10 -out ca.pem 2>/dev/null &&
	printf "tls: {client_ca: %s}\nauth: {trusted_names: true}\n" "$PWD/ca.pem" >gpuqd.yaml &&
	start_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address" && chmod a+x "$TMPDIR/.." "$TMPDIR" .
'

test_expect_success 'the server is known by its pin only, and login keeps it' '
	token >token && refused "not trusted: self-signed certificate" away gpuq --token-file=token whoami &&
	refused "the pin of its key is $pin" gpuq login --token-file=token "$address" &&
	wrong=sha256:$(printf %043d 0) &&
	refused "its pin is $pin, expected $wrong" gpuq login --token-file=token "$address?pin=$wrong" &&
	exits 0 gpuq login --token-file=token "$address?pin=$pin" && says out "^daemon, user at .*by token; scopes read,submit,control; expires" &&
	test "$(stat -c %a config/gpuq/servers.yaml)" = 600 && exits 0 away gpuq whoami && says out "^daemon, user"
'

test_expect_success 'a job of the remote user runs as its account, and its environment has no token' '
	exits 5 away env GPUQ_TOKEN="$(cat token)" GPUQ_TOKEN_X=1 gpuq run --chdir=/ --cpus=0 -- sh -c "id -un; env; exit 5" &&
	mv out run.out && grep -qx daemon run.out && test_must_fail grep GPUQ_TOKEN run.out &&
	test_must_fail grep -r "$(cat token)" state gpuqd.log
'

test_expect_success 'sessions, output and lists over TLS' '
	id=$(printf "command: [sh, -c, \"seq 20000; sleep 1000\"]\nchdir: /\ncpus: 0\n" | away gpuq submit --parsable -) &&
	job_becomes "$id" RUNNING && token --scope=read,session >session && seq 20000 >want &&
	wait_for 60 eval "away gpuq logs $id | cmp - want" && exits 249 away gpuq exec "$id" -- true && says err "scope session" &&
	head -c 1048576 /dev/urandom >sent && away gpuq --token-file=session exec --stdin "$id" -- cat <sent >back && cmp sent back &&
	exits 1 away gpuq --token-file=session cancel "$id" && says err "needs scope control" && away gpuq cancel "$id"
'

# forge: the token on standard input with another secret, and the check that belongs to it
forge() {
	/usr/bin/python3 -c '
import base64, sys, zlib
t = sys.stdin.read().strip()[:61]
t = t[:30] + ("A" if t[30] != "A" else "B") + t[31:]
print(t + base64.urlsafe_b64encode(zlib.crc32(t.encode()).to_bytes(4, "big")).decode()[:6])'
}

test_expect_success 'no token, a cut one, a foreign one, one of another user' '
	refused "no proof of identity: gpuq login" away env XDG_CONFIG_HOME="$PWD/none" gpuq --server="$address?pin=$pin" whoami &&
	cut -c 1-60 token >cut && refused "expected a token as" away gpuq --token-file=cut whoami &&
	sed "s/\(.*\)[^A]\(A*\)\$/\1A\2/" token >typo && refused "incomplete or mistyped" away gpuq --token-file=typo whoami &&
	forge <token >forged && refused "did not issue the token" away gpuq --token-file=forged whoami &&
	exits 1 gpuq token create && says err "cannot connect from another machine" &&
	exits 1 gpuq token create --for=no-such-user && says err "no account" &&
	exits 1 away gpuq token create --for=bin && says err "only operators" && says gpuqd.log auth.refused &&
	gpuq token list --json | /usr/bin/python3 "$test_source/tests/sharness/check_json.py" "$test_source/man/gpuq-json.5" Token &&
	gpuq token create --for=daemon --json | /usr/bin/python3 "$test_source/tests/sharness/check_json.py" "$test_source/man/gpuq-json.5" Token &&
	away gpuq whoami --json | /usr/bin/python3 "$test_source/tests/sharness/check_json.py" "$test_source/man/gpuq-json.5" Whoami &&
	gpuq events --audit --json >audit && says audit auth.refused && says audit token.issued
'

test_expect_success 'a token issues none with more than itself' '
	token --scope=read,control --expires=1h >small && exits 1 away gpuq --token-file=small token create --scope=submit && says err "that it lacks" &&
	exits 1 away gpuq --token-file=small token create --expires=2h && says err "later than itself" &&
	exits 0 away gpuq --token-file=small token create && exits 1 away gpuq --token-file=small token create --scope=operate &&
	exits 1 gpuq token create --for=daemon --scope=operate --expires=25h && says err "at most 24 hours" &&
	exits 1 gpuq token create --for=daemon --expires=400d && says err "at most 366 days" &&
	exits 1 gpuq token create --for=daemon --scope=all && says err "is no scope"
'

test_expect_success 'a token that is restricted to a queue' '
	printf "version: 1\nqueues:\n- {name: ci}\n- {name: prod}\n" >site.yaml && gpuq apply -f site.yaml >apply.out &&
	token --queues=ci >ci && printf "command: [sleep, 1000]\nchdir: /\ncpus: 0\nqueue: prod\n" >prod.yaml &&
	sed s/prod/ci/ prod.yaml >ci.yaml && exits 1 away gpuq --token-file=ci submit prod.yaml && says err "may not use queue prod" &&
	own=$(away gpuq --token-file=ci submit --parsable ci.yaml) && other=$(away gpuq submit --parsable prod.yaml) &&
	exits 1 away gpuq --token-file=ci cancel "$other" && exits 1 away gpuq --token-file=ci update "$own" queue=prod &&
	exits 0 away gpuq --token-file=ci cancel "$own" && exits 0 away gpuq cancel "$other" &&
	exits 1 away gpuq --token-file=ci token create --queues=prod && says err "restricted to ci"
'

test_expect_success 'a revoked token ends its connections; an expired one is named; both survive a restart' '
	token >gone && gone_id=$(cut -c 6-17 gone) && token --expires=2s >short &&
	{ away gpuq --token-file=gone queue --watch=1 >watch.out 2>watch.err & watch_pid=$!; } &&
	wait_for 30 test -s watch.out && exits 0 gpuq token revoke "$gone_id" && says out "Revoked 1 token" &&
	{ wait "$watch_pid"; watch_code=$?; cat watch.err; echo "it ended with $watch_code"; test $watch_code = 255; } && says watch.err "was revoked" && stop_gpuqd &&
	start_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address" &&
	refused "token $gone_id was revoked" away gpuq --token-file=gone whoami &&
	wait_for 30 eval "! away gpuq --token-file=short whoami" && refused "has expired" away gpuq --token-file=short whoami &&
	gpuq token list --all --json >list && says list revoked && test_must_fail grep -F "$(cut -c 19-40 gone)" list
'

test_expect_success 'client certificates: of the CA, with one name; others are refused' '
	rm config/gpuq/servers.yaml && issue good "subjectAltName=URI:daemon
extendedKeyUsage=clientAuth" && issue two "subjectAltName=URI:daemon,URI:bin" && issue mail "subjectAltName=email:daemon@x" &&
	issue server "subjectAltName=URI:daemon
extendedKeyUsage=serverAuth" && issue odd "subjectAltName=URI:dae mon" &&
	exits 0 gpuq login --cert=good.pem --key=good.key "$address?pin=$pin" && says out "^daemon, user at .* by certificate" &&
	refused "exactly one is expected" gpuq login --cert=two.pem --key=two.key "$address?pin=$pin" &&
	refused "exactly one is expected" gpuq login --cert=mail.pem --key=mail.key "$address?pin=$pin" &&
	refused "." gpuq login --cert=server.pem --key=server.key "$address?pin=$pin" &&
	refused "other characters" gpuq login --cert=odd.pem --key=odd.key "$address?pin=$pin" &&
	issue nul "subjectAltName=DER:30:0c:86:0a:64:61:65:6d:6f:6e:00:78:79:7a" && refused "." gpuq login --cert=nul.pem --key=nul.key "$address?pin=$pin" &&
	issue old "subjectAltName=URI:daemon
extendedKeyUsage=clientAuth" -1 && refused "." gpuq login --cert=old.pem --key=old.key "$address?pin=$pin" &&
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout alien.key -subj /CN=daemon -addext subjectAltName=URI:daemon -days 10 -out alien.pem 2>/dev/null &&
	refused "." gpuq login --cert=alien.pem --key=alien.key "$address?pin=$pin" && test ! -e config/gpuq/servers.yaml.new
'

# serves NAME: gpuqd has this certificate from now on
serves() {
	serves_n=$(grep -c "tls.reload cert" gpuqd.log)
	cp "$1.pem" state/tls/cert.pem && cp "$1.key" state/tls/key.pem && kill -HUP "$gpuqd_pid" &&
	wait_for 30 eval "test \$(grep -c 'tls.reload cert' gpuqd.log) -gt $serves_n"
}

test_expect_success 'a server certificate of another name, or an expired one, is refused' '
	issue elsewhere "subjectAltName=DNS:elsewhere" && serves elsewhere && refused "localhost|name" gpuq --ca=ca.pem --token-file=token --server="tls://localhost:$port" whoami &&
	issue over "subjectAltName=DNS:localhost" -1 && serves over && refused "expired" gpuq --ca=ca.pem --token-file=token --server="tls://localhost:$port" whoami
'

test_expect_success 'a new certificate is taken at SIGHUP; a broken one leaves the old' '
	issue srv "subjectAltName=DNS:localhost,IP:127.0.0.1" && serves srv && rm config/gpuq/servers.yaml &&
	exits 0 away gpuq --ca=ca.pem --token-file=token whoami && refused "not trusted" away gpuq --token-file=token whoami &&
	exits 0 away gpuq --ca=ca.pem --token-file=token --server="unix:/nonexistent,tls://localhost:$port" whoami &&
	echo broken >state/tls/cert.pem && kill -HUP "$gpuqd_pid" && wait_for 30 grep -q "the old certificate stays" gpuqd.log &&
	exits 0 away gpuq --ca=ca.pem --token-file=token whoami
'

# asks OPTION...: what s_client, with a ca and these options, is told
asks() {
	openssl s_client -connect "127.0.0.1:$port" -CAfile ca.pem "$@" </dev/null >s_client.out 2>&1
}

test_expect_success 'only TLS 1.3 and its own protocol are spoken' '
	asks -alpn gpuq-rpc/1 && says s_client.out "TLSv1.3" && says s_client.out "ALPN protocol: gpuq-rpc/1" &&
	test_must_fail asks -alpn gpuq-rpc/1 -tls1_2 && test_must_fail asks -alpn h2 && test_must_fail asks &&
	test_must_fail grep -q "New Session Ticket" s_client.out
'

test_expect_success 'a handshake that stalls, a hello that is too long or does not come: each ends' '
	/usr/bin/python3 - "$port" "$test_source/tests/sharness" <<-\END
	import socket, sys
	sys.argv[1:] = ["tls:" + sys.argv[1] + ":-"] + sys.argv[2:]
	sys.path.insert(0, sys.argv[2])
	import hostile
	stalls = socket.create_connection(("127.0.0.1", int(sys.argv[1].split(":")[1])), timeout=60)
	stalls.sendall(b"\x16\x03\x01\x02\x00\x01")
	silent, long = hostile.connect(), hostile.connect()
	hostile.send(long, hostile.pack([0, 1, "hello", [{"proto": [1, 0], "client": "x" * 20000}]]))
	if b"too_big" not in hostile.ends(long) or b"no hello came in time" not in hostile.ends(silent):
	    sys.exit("the reason is not said")
	hostile.ends(stalls)
	END
'

test_expect_success 'strangers are bounded, and others still come in' '
	/usr/bin/python3 - "$port" <<-\END &&
	import resource, socket, sys, time
	resource.setrlimit(resource.RLIMIT_NOFILE, (2000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
	# crowd(ADDRESSES, EACH): how many of these connections are closed at once
	def crowd(addresses, each):
	    held, closed = [], 0
	    for i in range(addresses * each):
	        held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), source_address=("127.0.0.%d" % (i // each + 1), 0)))
	    time.sleep(0.5)
	    for s in held:
	        s.setblocking(False)
	        try:
	            closed += s.recv(1) == b""
	        except BlockingIOError:
	            pass
	        except ConnectionError:
	            closed += 1
	    return closed
	one, many = crowd(1, 60), crowd(40, 30)
	sys.exit(0 if one >= 60 - 32 and many >= 1200 - 1024 else "%d of 60, %d of 1200 were closed" % (one, many))
	END
	wait_for 60 away gpuq --ca=ca.pem --token-file=token whoami
'

test_done
