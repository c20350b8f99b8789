#!/bin/sh
test_description='auth.oidc: web tokens of an issuer; its keys change, are huge, slow, away'
. "$(dirname "$0")/lib.sh"

if ! test_have_prereq ROOT; then
	skip_all='several users take root'
	test_done
fi
command -v openssl >/dev/null || {
	skip_all='the Debian package openssl is not installed'
	test_done
}

# The users are accounts of this machine: the issuer is trusted with that (trusted_names).
XDG_CONFIG_HOME=$PWD/config
export XDG_CONFIG_HOME
issuer_py=$test_source/tests/sharness/oidc_issuer.py
issuer_pid=
# jwt KEY [CLAIM=JSON...]: prints a token
jwt() {
	/usr/bin/python3 "$issuer_py" token "$@"
}
# away TOKEN command...: with that token, over TLS
away() {
	away_token=$1
	shift
	env GPUQ_SERVER="$address?pin=$pin" GPUQ_TOKEN="$away_token" "$@"
}
refused() {
	refused_line=$1
	shift
	exits 255 away "$@" && [ "$(wc -l <err)" = 1 ] && says err "$refused_line"
}
mode() {
	echo "$1" >issuer/mode
}
n_keys() {
	grep -c "/keys" issuer/log
}
# config LINE...: gpuqd.yaml with these lines as the one rule
config() {
	printf 'auth:\n  oidc:\n' >gpuqd.yaml
	printf '  - name: ci\n    issuer: %s\n    audience: gpuq\n    ca: %s\n' "$ISSUER" "$PWD/tls.pem" >>gpuqd.yaml
	printf '    %s\n' "$@" >>gpuqd.yaml
}
restart() {
	stop_gpuqd && rm -rf issuer/log && start_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address"
}

test_expect_success 'an issuer' '
	mkdir issuer && mode ok && openssl genrsa -out one.key 2048 2>/dev/null && openssl genrsa -out two.key 2048 2>/dev/null &&
	openssl genrsa -out three.key 2048 2>/dev/null && cp two.key evil.key && /usr/bin/python3 "$issuer_py" keys one.key >issuer/keys &&
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tls.key -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -days 10 -out tls.pem 2>/dev/null &&
	{ /usr/bin/python3 "$issuer_py" serve issuer tls.pem tls.key >issuer.log 2>&1 3>&- 4>&- 5>&- & issuer_pid=$!; } &&
	wait_for 30 test -s issuer/port && ISSUER=https://127.0.0.1:$(cat issuer/port) && export ISSUER
'

# wrong REGEX LINE...: a rule that is refused, with file, line and column
wrong() {
	wrong_line=$1
	shift
	config "$@"
	exits 78 gpuqd --config "$PWD/gpuqd.yaml" --cluster kube --check && says err "gpuqd.yaml:[0-9]*:[0-9]*: .*$wrong_line"
}

test_expect_success 'rules that are none are refused where they stand' '
	wrong "oidc\[0\].user: expected text with a .:. before" "user: \"{sub}\"" && wrong "expected a {claim}" "user: ci:x" &&
	wrong "did you mean .scopes" "user: \"ci:{sub}\"" "scope: [read]" && wrong "is no scope" "user: \"ci:{sub}\"" "scopes: [all]" &&
	config "user: \"ci:{sub}\"" && sed -i "s|issuer: .*|issuer: http://127.0.0.1|" gpuqd.yaml &&
	exits 78 gpuqd --config "$PWD/gpuqd.yaml" --cluster kube --check && says err "gpuqd.yaml:4:13: .*expected https://" &&
	config "user: \"ci:{sub}\"" && sed -i "s|issuer: .*|issuer: https://gitlab.com|" gpuqd.yaml &&
	exits 78 gpuqd --config "$PWD/gpuqd.yaml" --cluster kube --check && says err "expected require" &&
	config "user: \"ci:{sub}\"" "trusted_names: false" "require: {a: b}" && exits 0 gpuqd --config "$PWD/gpuqd.yaml" --cluster kube --check &&
	exits 78 gpuqd --config "$PWD/gpuqd.yaml" --cluster local --check && says err "trusted_names: true" &&
	printf "  - {name: other, issuer: \"https://other\", audience: a, user: \"ci:{x}\"}\n" >>gpuqd.yaml &&
	exits 78 gpuqd --config "$PWD/gpuqd.yaml" --cluster kube --check && says err "oidc\[1\].user: expected another text"
'

test_expect_success 'a token is a user; its jobs run as that account' '
	port=$(free_port) && address=tls://127.0.0.1:$port && exits 0 gpuqd --state "$PWD/state" --make-cert localhost && pin=$(sed -n "s/^pin //p" out) &&
	config "user: \"{sub}\"" "trusted_names: true" "require: {ref: main}" "groups: teams" "scopes: [read, submit]" &&
	start_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address" && chmod a+x "$TMPDIR/.." "$TMPDIR" . &&
	good=$(jwt one.key ref="\"main\"" teams="[\"ml\"]") && wait_for 30 away "$good" gpuq whoami &&
	exits 0 away "$good" gpuq whoami && says out "^daemon, user, by jwt; scopes read,submit; expires" &&
	away "$good" gpuq whoami --json >whoami.json && says whoami.json "oidc:ci" &&
	exits 5 away "$good" gpuq run --chdir=/ --cpus=0 -- sh -c "id -un; exit 5" && says out "^daemon" &&
	test_must_fail grep -rF "$good" state gpuqd.log && exits 1 away "$good" gpuq cancel 1 && says err "needs scope control"
'

test_expect_success 'what is no proof' '
	refused "claim ref is not what" "$(jwt one.key)" gpuq whoami &&
	refused "another audience" "$(jwt one.key ref="\"main\"" aud="\"x\"")" gpuq whoami &&
	refused "has expired" "$(jwt one.key ref="\"main\"" exp="\"-61\"")" gpuq whoami &&
	refused "of the future" "$(jwt one.key ref="\"main\"" iat="\"+90\"")" gpuq whoami &&
	refused "none that auth.oidc names" "$(ISSUER=https://evil jwt one.key)" gpuq whoami &&
	cp evil.key one.key.evil && mkdir evil && mv one.key.evil evil/one.key &&
	refused "not of the key" "$(jwt evil/one.key ref="\"main\"")" gpuq whoami &&
	refused "neither gpuq_... nor a web token" nonsense gpuq whoami &&
	refused "cannot connect from another machine" "$(jwt one.key ref="\"main\"" sub="\"root\"")" gpuq whoami &&
	refused "no account" "$(jwt one.key ref="\"main\"" sub="\"nobody:x\"")" gpuq whoami && says gpuqd.log auth.refused
'

test_expect_success 'a group of the claims opens a queue' '
	printf "version: 1\nqueues:\n- {name: ml, groups: [ml]}\n- {name: other, groups: [mlx]}\n" >site.yaml && gpuq apply -f site.yaml >apply.out &&
	exits 0 away "$good" gpuq run --queue=ml --chdir=/ --cpus=0 -- true &&
	exits 249 away "$good" gpuq run --queue=other --chdir=/ --cpus=0 -- true &&
	exits 249 away "$(jwt one.key ref="\"main\"")" gpuq run --queue=ml --chdir=/ --cpus=0 -- true
'

test_expect_success 'a stream ends when its token expires' '
	short=$(jwt one.key ref="\"main\"" exp="\"-54\"" iat="\"-100\"") &&
	exits 255 away "$short" gpuq queue --watch=1 && says err "has expired"
'

test_expect_success 'examples/ci/oidc.sh: a runner whose tokens hold for less than the job' '
	mkdir bin && printf "#!/bin/sh\nsleep 9\nexit 7\n" >"$TMPDIR/slow" && chmod 755 "$TMPDIR/slow" && cat >bin/curl <<-END && chmod +x bin/curl && PATH=$PWD/bin:$PATH && export ACTIONS_ID_TOKEN_REQUEST_TOKEN=t ACTIONS_ID_TOKEN_REQUEST_URL=https://runner?x &&
	#!/bin/sh
	echo "\$*" >>"$PWD/curl.log"
	echo "{\"value\": \"\$(/usr/bin/python3 "$issuer_py" token "$PWD/one.key" "ref=\\"main\\"" "iat=\\"-100\\"" "exp=\\"-53\\"")\"}"
	END
	exits 7 env GPUQ_SERVER="$address?pin=$pin" GPU_TEST_COMMAND="$TMPDIR/slow" "$test_source/examples/ci/oidc.sh" run-1 &&
	says curl.log "audience=gpuq" && test "$(wc -l <curl.log)" -ge 2
'

test_expect_success 'a new key is got at once; a key that is none, not more than once a minute' '
	before=$(n_keys) && /usr/bin/python3 "$issuer_py" keys one.key two.key >issuer/keys &&
	exits 0 away "$(jwt two.key ref="\"main\"")" gpuq whoami && refused "not among those" "$(jwt three.key ref="\"main\"")" gpuq whoami &&
	refused "not among those" "$(jwt three.key ref="\"main\"")" gpuq whoami && test "$(n_keys)" = $((before + 1))
'

test_expect_success 'keys that are huge, or of another issuer' '
	mode huge && restart && refused "larger than 262144 bytes" "$good" gpuq whoami &&
	mode odd && restart && refused "does not name this issuer" "$good" gpuq whoami &&
	mode ok && wait_for 30 away "$good" gpuq whoami
'

test_expect_success 'a slow issuer holds nobody up' '
	mode slow && restart && refused "it has not answered yet" "$good" gpuq whoami && exits 0 gpuq version &&
	mode ok && wait_for 30 away "$good" gpuq whoami
'

test_expect_success 'while the issuer is away its keys hold' '
	kill "$issuer_pid" && { wait "$issuer_pid"; issuer_pid=; true; } && exits 0 away "$good" gpuq whoami &&
	refused "not among those" "$(jwt three.key ref="\"main\"")" gpuq whoami && exits 0 away "$good" gpuq whoami &&
	restart && refused "keys of $ISSUER are not known: .*" "$good" gpuq whoami && says gpuqd.log "auth.keys issuer"
'

test_done
