# s3.sh - an object store of the test's own, s3_store.py, and a configuration of copies that uses it
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION AWS_DEFAULT_REGION
# start_store [ADDRESS [COMMAND...]]: in ./store, with the certificate tls.pem and the file credentials, which the command
# runs; $url is where copies go
start_store() {
	store_address=${1:-127.0.0.1}
	[ $# = 0 ] || shift
	[ $# != 0 ] || set -- env
	mkdir store && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tls.key -subj /CN=127.0.0.1 \
		-addext subjectAltName="IP:$store_address,DNS:kept.localhost" -days 10 -out tls.pem 2>/dev/null || return 1
	exec "$@" /usr/bin/python3 "$test_source/tests/sharness/s3_store.py" "$PWD/store" "$PWD/tls.pem" "$PWD/tls.key" "$store_address" >store.log 2>&1 3>&- 4>&- 5>&- &
	store_pid=$!
	wait_for 30 test -s store/port && host=https://$store_address:$(cat store/port) && url=$host/kept/of/gpuq
}
# config LINE...: gpuqd.yaml with these keys of backup
config() {
	printf 'backup:\n  to: %s\n  s3: {region: eu-test-1, ca: %s, credentials: %s}\n' "$url" "$PWD/tls.pem" "$PWD/credentials" >backup.yaml
	[ $# = 0 ] || printf '  %s\n' "$@" >>backup.yaml
}
backup_is() {
	test "$(gpuq status --json | json "backup.$1")" = "$2"
}
# objects END: of the store, by their ends
objects() {
	(cd store/objects && ls | grep "$1\$")
}
n_objects() {
	test "$(objects "$1" | wc -l)" = "$2"
}
