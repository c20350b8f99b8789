#!/bin/sh
test_description='a CI job in another network namespace: submits with an OIDC token through TLS, gets its exit code over kill -9'
. "$(dirname "$0")/lib.sh"

# The runner: a network namespace whose one way to here is a pair of interfaces. It goes with its first process.
reason=
if ! test_have_prereq ROOT; then
	reason='a network namespace takes root'
elif ! command -v openssl >/dev/null || ! command -v nsenter >/dev/null || ! command -v ip >/dev/null; then
	reason='one of the Debian packages openssl, util-linux, iproute2 is not installed'
elif ! unshare -n true 2>/dev/null || ! ip link add "gqt$$" type veth peer name "gqp$$" 2>/dev/null; then
	reason='network namespaces and pairs of interfaces are not permitted here'
else
	ip link del "gqt$$"
fi
if [ -n "$reason" ]; then
	skip_all=$reason
	test_done
fi

issuer_py=$test_source/tests/sharness/oidc_issuer.py
# Of a net that is for tests, RFC 2544, by our number.
net=198.18.$(($$ / 64 % 256)).$(($$ % 64 * 4))
here=${net%.*}.$((${net##*.} + 1))
there=${net%.*}.$((${net##*.} + 2))
# elsewhere command...: in the runner's namespace
elsewhere() {
	nsenter -t "$runner_pid" -n "$@"
}
runner_is_up() {
	[ "$(readlink "/proc/$runner_pid/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

test_expect_success 'a runner elsewhere, an issuer, a daemon with TLS' '
	{ unshare -n sleep 600 3>&- 4>&- 5>&- & runner_pid=$!; } && wait_for 30 runner_is_up &&
	ip link add "gqt$$" type veth peer name far netns "$runner_pid" && ip addr add "$here/30" dev "gqt$$" && ip link set "gqt$$" up &&
	elsewhere ip addr add "$there/30" dev far && elsewhere ip link set far up && mkdir issuer && echo ok >issuer/mode && openssl genrsa -out one.key 2048 2>/dev/null &&
	/usr/bin/python3 "$issuer_py" keys one.key >issuer/keys &&
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tls.key -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -days 10 -out tls.pem 2>/dev/null &&
	{ /usr/bin/python3 "$issuer_py" serve issuer tls.pem tls.key >issuer.log 2>&1 3>&- 4>&- 5>&- & } && wait_for 30 test -s issuer/port &&
	ISSUER=https://127.0.0.1:$(cat issuer/port) && export ISSUER && address=tls://$here:$(free_port) &&
	printf "auth:\n  oidc:\n  - {name: ci, issuer: %s, audience: gpuq, ca: %s, user: \"{sub}\", trusted_names: true, require: {ref: main}}\n" "$ISSUER" "$PWD/tls.pem" >gpuqd.yaml &&
	exits 0 gpuqd --state "$PWD/state" --make-cert "$here" && pin=$(sed -n "s/^pin //p" out) && start_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address" && chmod a+x "$TMPDIR/.." "$TMPDIR" .
'

test_expect_success 'from there only TLS leads to the daemon, and not without a token' '
	test_must_fail elsewhere curl -sk --max-time 5 "$ISSUER/keys" && exits 255 elsewhere env GPUQ_SERVER="$address?pin=$pin" gpuq queue && says err "no proof of identity"
'

# The runner has its id tokens from a service of its own: here a curl that gives the next one.
test_expect_success 'examples/ci/oidc.sh there: the daemon is killed and started twice, and it ends with the job exit code' '
	mkdir bin && cat >bin/curl <<-END && chmod +x bin/curl && printf "#!/bin/sh\necho begun >\"$TMPDIR/begun\"\nuntil [ -e \"$TMPDIR/go\" ]; do sleep 0.1; done\nexit 7\n" >"$TMPDIR/tests" && chmod 755 "$TMPDIR/tests" &&
	#!/bin/sh
	echo "{\"value\": \"\$(/usr/bin/python3 "$issuer_py" token "$PWD/one.key" "ref=\\"main\\"")\"}"
	END
	chmod a+w "$TMPDIR" && { { elsewhere env -u HOME PATH="$PWD/bin:$PATH" ACTIONS_ID_TOKEN_REQUEST_TOKEN=t ACTIONS_ID_TOKEN_REQUEST_URL="https://runner?x" GPUQ_SERVER="$address?pin=$pin" GPU_TEST_COMMAND="$TMPDIR/tests" \
		"$test_source/examples/ci/oidc.sh" run-1 >ci.out 2>ci.err; echo $? >ci.code; } & } &&
	wait_for 60 test -e "$TMPDIR/begun" && id=$(sed -n "s/^job //p" ci.out) && job_is "$id" user daemon && job_is "$id" state RUNNING && kill_gpuqd && start_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address" &&
	sleep 1 && kill_gpuqd && touch "$TMPDIR/go" && sleep 1 && start_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address" && wait_for 60 test -s ci.code && { test "$(cat ci.code)" = 7 || { cat ci.code ci.out ci.err; return 1; }; } &&
	job_is "$id" exit_code 7
'

test_done
