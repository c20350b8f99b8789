#!/bin/sh
test_description='gpuq login without a token: the device flow of an issuer, RFC 8628, run by gpuqd'
. "$(dirname "$0")/lib.sh"

if ! test_have_prereq ROOT; then
	skip_all='several users take root'
	test_done
fi
command -v openssl >/dev/null || {
	skip_all='the Debian package openssl is not installed'
	test_done
}

XDG_CONFIG_HOME=$PWD/config
export XDG_CONFIG_HOME
issuer_py=$test_source/tests/sharness/oidc_issuer.py
issuer_pid= login_pid=
jwt() {
	/usr/bin/python3 "$issuer_py" token "$@"
}
# answer STATE: what the issuer says of each login from now on
answer() {
	echo "$1" >issuer/answer.new && mv issuer/answer.new issuer/answer
}
# rule NAME LINE...: one more rule in gpuqd.yaml
rule() {
	printf '  - name: %s\n    issuer: %s\n    audience: gpuq\n    ca: %s\n' "$1" "$ISSUER" "$PWD/tls.pem" >>gpuqd.yaml
	shift
	printf '    %s\n' "user: \"{sub}\"" "trusted_names: true" "$@" >>gpuqd.yaml
}
config() {
	printf 'auth:\n  oidc:\n' >gpuqd.yaml
	rule "$@"
}
# hup: gpuqd reads gpuqd.yaml again
hup() {
	hups=$(grep -c config.reload gpuqd.log)
	kill -HUP "$gpuqd_pid" && wait_for 30 eval "test \$(grep -c config.reload gpuqd.log) -gt $hups"
}
login() {
	# shellcheck disable=SC2120 # options come through exits and refused
	gpuq login "$@" "$address?pin=$pin"
}
# refused REGEX [option...]: a login that ends with one line beside the two that say where to go
refused() {
	refused_line=$1
	shift
	exits 255 login "$@" && says err "$refused_line" && [ ! -e config/gpuq/servers.yaml ]
}
# begin [option...]: a login waits
begin() {
	login "$@" >login.out 2>login.err &
	login_pid=$!
	wait_for 30 grep -q WDJB login.err
}

test_expect_success 'an issuer, and gpuqd without logins' '
	mkdir issuer && echo ok >issuer/mode && answer pending && openssl genrsa -out one.key 2048 2>/dev/null &&
	/usr/bin/python3 "$issuer_py" keys one.key >issuer/keys &&
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tls.key -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -days 10 -out tls.pem 2>/dev/null &&
	{ /usr/bin/python3 "$issuer_py" serve issuer tls.pem tls.key >issuer.log 2>&1 3>&- 4>&- 5>&- & issuer_pid=$!; } &&
	wait_for 30 test -s issuer/port && ISSUER=https://127.0.0.1:$(cat issuer/port) && export ISSUER &&
	port=$(free_port) && address=tls://127.0.0.1:$port && exits 0 gpuqd --state "$PWD/state" --make-cert localhost && pin=$(sed -n "s/^pin //p" out) &&
	config sso && start_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address" &&
	exits 1 login && says err "no token, and the server has no logins in a browser" &&
	exits 1 login --issuer=sso && says err "client_id in auth.oidc"
'

test_expect_success 'keys that are wrong are refused where they stand; a secret that others can read, too' '
	config sso "client_secret: $PWD/secret" && exits 78 gpuqd --config "$PWD/gpuqd.yaml" --check && says err "gpuqd.yaml:9:20: .*client_secret: is of no use without client_id" &&
	config sso "client_id: gpuq" "login_scopes: [\"a b\"]" && exits 78 gpuqd --config "$PWD/gpuqd.yaml" --check && says err "gpuqd.yaml:10:19: .*login_scopes: expected" &&
	config sso "client_id: gpuq" "login_age: 0" && exits 78 gpuqd --config "$PWD/gpuqd.yaml" --check && says err "login_age: expected" &&
	echo s3cret+x >secret && chmod 644 secret && config sso "client_id: gpuq" "client_secret: $PWD/secret" && hup &&
	says gpuqd.log "secret is readable by others .mode 0644.: chmod 600 .*the old settings stay" && exits 1 login
'

test_expect_success 'logins appear at SIGHUP; one waits, is confirmed, and brings a token' '
	chmod 600 secret && config sso "client_id: gpuq cli" "client_secret: $PWD/secret" "login_scopes: [profile]" "groups: teams" "queues: [default, ml]" "scopes: [read, submit, operate]" "login_age: 1h" && hup &&
	begin && says login.err "open $ISSUER/go in a browser and enter the code WDJB-MJHT" && says login.err "go[?]code=WDJB-MJHT" &&
	wait_for 30 grep -q device_code=device-secret issuer/forms && test ! -e config/gpuq/servers.yaml &&
	answer "$(jwt one.key teams="[\"ml\"]")" && wait $login_pid && says login.out "^daemon, user at tls://.*, by token; scopes read,submit; queues default,ml; expires" &&
	says issuer/forms "^/device scope=openid%20profile&client_id=gpuq%20cli Basic $(printf gpuq%%20cli:s3cret%%2Bx | base64)$" &&
	test "$(stat -c %a config/gpuq/servers.yaml)" = 600 && exits 0 env GPUQ_SERVER="$address" gpuq whoami && says out "^daemon, user, by token" &&
	gpuq token list --user=daemon --json >tokens && test "$(json by <tokens)" = oidc:sso && test "$(json groups.0 <tokens)" = ml && gpuq events --audit >audit && says audit "daemon +token.issued"
'

test_expect_success 'its user, groups and queues are those of the rule, also after a restart' '
	printf "version: 1\nqueues:\n- {name: ml, groups: [ml]}\n- {name: other}\n" >site.yaml && gpuq apply -f site.yaml >apply.out && chmod a+x "$TMPDIR/.." "$TMPDIR" . &&
	stop_gpuqd && start_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address" &&
	exits 0 env GPUQ_SERVER="$address" gpuq run --queue=ml --chdir=/ --cpus=0 -- id -un && says out "^daemon" &&
	exits 249 env GPUQ_SERVER="$address" gpuq run --queue=other --chdir=/ --cpus=0 -- true && exits 1 env GPUQ_SERVER="$address" gpuq drain x && says err "operator"
'

test_expect_success 'no secret is in a log, a reply or the database' '
	test_must_fail grep -rqF -e device-secret -e s3cret -e "$(cat issuer/answer)" state gpuqd.log login.err login.out config &&
	test_must_fail grep -rqF "$(sed -n "s/ *token: *//p" config/gpuq/servers.yaml)" state gpuqd.log login.err login.out
'

test_expect_success 'what ends a login is named, and leaves nothing' '
	rm config/gpuq/servers.yaml && answer access_denied && refused "^gpuq: access_denied: the login was refused at sso" &&
	answer "$(ISSUER=https://evil jwt one.key)" && refused "id token of sso is of another issuer" &&
	answer "$(jwt one.key sub="\"root\"")" && refused "cannot connect from another machine" && says gpuqd.log "auth.refused"
'

test_expect_success 'an issuer that is away for a moment only takes longer; an interrupt leaves nothing' '
	answer away && begin && wait_for 30 grep -q "sso: HTTP status 503; still waiting" login.err && answer "$(jwt one.key)" &&
	wait $login_pid && says login.out "^daemon, user" && rm config/gpuq/servers.yaml &&
	answer pending && begin && kill $login_pid && { wait $login_pid; test $? -ge 128; } && test ! -e config/gpuq/servers.yaml
'

# device STATUS TEXT: the whole answer to a request for a code
device() {
	printf '%s\n%s' "$1" "$2" >issuer/device
}
test_expect_success 'answers to the request for a code that are wrong' '
	device 401 "{\"error\": \"invalid_client\"}" && refused "sso begins no login: HTTP status 401, invalid_client: compare client_id" &&
	device 200 "{\"device_code\": \"x\", \"user_code\": \"\\u001b[2J\", \"verification_uri\": \"https://x\", \"expires_in\": 9}" && refused "its answer lacks" &&
	device 302 "" && refused "HTTP status 302" && device 200 "$(printf "%070000d" 0)" && refused "larger than 65536 bytes" &&
	device 200 "{\"device_code\": \"x\", \"user_code\": \"a\", \"verification_uri\": \"https://x\", \"expires_in\": 2, \"interval\": 1}" && answer pending && refused "expired_token" && rm issuer/device
'

test_expect_success 'a few logins of one address; those that no gpuq asks for do not count for ever' '
	/usr/bin/python3 "$test_source/tests/sharness/hostile.py" "tls:$port:-" logins >logins.out && says logins.out "^[5-8] begun, then busy; unknown: unauthenticated; job.list: protocol"
'

test_expect_success 'several issuers: one is named' '
	touch issuer/secret-in-form && rule lab "client_id: lab" "client_secret: $PWD/secret" && stop_gpuqd && start_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address" && rm -f issuer/forms &&
	exits 1 login && says err "several issuers have logins, sso, lab: choose one with --issuer" && exits 1 login --issuer=x && says err "no issuer with logins is named x; there is sso, lab" &&
	answer "$(jwt one.key)" && exits 0 login --issuer=lab && says issuer/forms "^/device .*client_id=lab&client_secret=s3cret%2Bx -$" && rm config/gpuq/servers.yaml
'

test_expect_success 'a rule that goes at SIGHUP ends its connections and its logins' '
	answer pending && begin --issuer=lab &&
	{ env GPUQ_SERVER="$address?pin=$pin" GPUQ_TOKEN="$(jwt one.key)" gpuq queue --watch=1 >watch.out 2>watch.err & watch_pid=$!; } && wait_for 30 test -s watch.out &&
	config other "client_id: gpuq" && hup && { wait $watch_pid; test $? = 255; } && says watch.err "was changed" && { wait $login_pid; test $? = 255; } && says login.err "no such login"
'

test_done
