#!/bin/sh
test_description='copies that are put in parts into an object store; kill -9 in the middle of one'
. "$(dirname "$0")/lib.sh"

command -v openssl >/dev/null || {
	skip_all='the Debian package openssl is not installed'
	test_done
}
. "$test_source/tests/sharness/s3.sh"

# Scripts that fill more than one part of 16 MiB; the database compresses them.
fill() {
	for i in $(seq 130); do
		{ echo "#!/bin/sh"; head -c 140000 /dev/urandom | base64 -w 100 | sed "s/^/# /"; } | gpuq submit --parsable --hold --cpus 0 - >fill.id || return 1
	done
}

test_expect_success 'a copy of several parts; one of which is refused; put together in spite of an error' '
	start_store && printf "aws_access_key_id = key\naws_secret_access_key = secret\n" >credentials && chmod 600 credentials && config "every: 1h" "log_every: 0" && start_gpuqd && fill && stop_gpuqd && : >store/log && echo 503 503 error >store/fault && start_gpuqd --config backup.yaml &&
	wait_for 60 backup_is copies 1 && exits 0 gpuq backup verify && says out "whole" && says store/log "^PUT .*partNumber=2&uploadId=upload%2B0%2F%3D 200" && test "$(grep -c "^POST .*uploadId" store/log)" = 2 &&
	test "$(grep -c "^POST .*uploads= 200" store/log)" = 1
'

is_uploading() {
	grep -q "^POST .*uploads= 200" store/log
}

test_expect_success 'kill -9 in the middle of an upload: no part counts as a copy, and the next start puts it away' '
	stop_gpuqd && rm store/objects/* && : >store/log && echo slow >store/fault && start_gpuqd --config backup.yaml && wait_for 60 is_uploading && kill_gpuqd && test -z "$(objects mdb)" &&
	exits 78 gpuqd --state "$PWD/empty" --cluster local --config backup.yaml --restore "$url" && says err "has no copy" && ! grep -q "^DELETE" store/log && : >store/fault && start_gpuqd --config backup.yaml &&
	wait_for 60 backup_is copies 1 && says store/log "^DELETE .*uploadId=.* 204" && exits 0 gpuq backup verify && says out "whole" && stop_gpuqd
'

test_done
