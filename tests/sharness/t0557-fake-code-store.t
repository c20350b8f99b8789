#!/bin/sh
test_description='submit --code on the fake cluster: what no ConfigMap takes goes by an object store'
. "$(dirname "$0")/lib.sh"

command -v openssl >/dev/null || {
	skip_all='the Debian package openssl is not installed'
	test_done
}

. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/code.sh"
. "$test_source/tests/sharness/s3.sh"

# get URL: as a pod would
get() {
	/usr/bin/curl -sS --cacert tls.pem -o got -w "%{http_code}\n" "$1"
}

stored() {
	ls state/code | wc -l
}

puts() {
	grep -c "^PUT .* 200$" store/log
}

test_expect_success 'settings that are none are refused, with their place' '
	refused "  s3: {region: x}" "bad.yaml:2.*to" && refused "  to: https://h" "bad.yaml:2:.*expected a bucket" && refused "  to: dir" "bad.yaml:2:.*expected https://" &&
	refused "  {to: \"https://h/b\", valid: 8d}" "valid" && refused "  {to: \"https://h/b\", valid: 1s}" "valid"
'

test_expect_success 'a store, a directory of two megabytes' '
	start_store && mkdir proj && echo train >proj/train.py && head -c 2000000 /dev/urandom >proj/weights && start_fake &&
	printf "version: 1\ncode: {keep: 1s}\nqueues: [{name: default, quota: 8, image: base}]\n" >site.yaml &&
	printf "[default]\naws_access_key_id = key\naws_secret_access_key = secret\n" >credentials && chmod 600 credentials &&
	printf "code_store: {to: %s, s3: {region: eu-test-1, ca: %s, credentials: %s}, valid: 1h}\n" "$url" "$PWD/tls.pem" "$PWD/credentials" >store.yaml &&
	exits 78 gpuqd --state "$PWD/none" --listen "unix:$PWD/none.sock" --kubeconfig "$PWD/kubeconfig" --config bad.yaml && sed "s/credentials:/credentials: no/" store.yaml >bad.yaml &&
	exits 78 gpuqd --state "$PWD/none" --listen "unix:$PWD/none.sock" --kubeconfig "$PWD/kubeconfig" --config bad.yaml && says err "code_store.s3.credentials" &&
	start_fake_gpuqd --site "$PWD/site.yaml" --config "$PWD/store.yaml"
'

test_expect_success 'a pod gets an address of it, which is signed for a while, and no key' '
	id=$(carried) && job_becomes "$id" RUNNING 60 && test "$(objects "" | wc -l)" = 1 && address=$(init "$id" "env[\"GPUQ_CODE_URL\"]") && test "$(get "$address")" = 200 &&
	test "$(sha256sum <got | cut -d" " -f1)" = "$(init "$id" "env[\"GPUQ_CODE_URL_SHA256\"]")" && tar -xzOf got train.py >out && says out "^train$" &&
	init "$id" "env[\"GPUQ_CODE_URL_CA\"]" >out && says out "BEGIN CERTIFICATE" && init "$id" "s" >out && ! grep -q secret out && ! grep -q secret gpuqd.log &&
	says out "X-Amz-Expires=3600&" && api configmaps >out && ! grep -q binaryData out
'

test_expect_success 'an address that was changed reads nothing' '
	for change in s/Expires=3600/Expires=7200/ s/Date=2/Date=1/ s/code-./code-0/ "s/Signature=./Signature=g/" "s/Credential=key/Credential=other/"; do
		bad=$(echo "$address" | sed "$change") && test "$bad" != "$address" && test "$(get "$bad")" = 403 || return 1
	done
'

test_expect_success 'the same directory is not carried twice, nor put, also after a kill' '
	n=$(puts) && b=$(carried) && kill_gpuqd && start_fake_gpuqd --config "$PWD/store.yaml" && c=$(carried -a 0-1) && job_becomes "${c}_1" RUNNING 60 && job_becomes "$b" RUNNING 60 &&
	test "$(puts)" = "$n" && test "$(init "$b" "env[\"GPUQ_CODE_URL_SHA256\"]")" = "$(init "$id" "env[\"GPUQ_CODE_URL_SHA256\"]")"
'

test_expect_success 'what fits into a ConfigMap goes by one' '
	mkdir small && echo x >small/x && d=$(submit --annotation=gpuq.test/hang=true --code small --wrap true) && job_becomes "$d" RUNNING 60 && test "$(init "$d" "\"GPUQ_CODE_URL\" in env")" = False &&
	test "$(puts)" = "$n" && gpuq cancel "$d" && job_becomes "$d" CANCELLED
'

test_expect_success 'it goes with the last job that names it, from the store and from gpuqd; one that cannot be removed goes later' '
	gpuq cancel "$id" "$b" && job_becomes "$b" CANCELLED && test "$(objects "" | wc -l)" = 1 && echo region >store/fault && gpuq cancel "$c" &&
	wait_for 60 grep -q code.not_removed gpuqd.log && test "$(objects "" | wc -l)" = 1 && rm store/fault && wait_for 60 eval "test \$(stored) = 0" && test -z "$(objects "")"
'

test_expect_success 'a store that does not take it is named, nothing half-carried stays' '
	echo region >store/fault && exits 1 gpuq submit --code proj --wrap true && says err "code of the job: PUT https://.*region us-other-2: set code_store.s3.region" && rm store/fault &&
	wait_for 60 eval "test \$(stored) = 0" && kill "$store_pid" && exits 1 gpuq submit --code proj --wrap true && says err "PUT https://" && wait_for 60 eval "test \$(ls state/code | grep -vc s3) = 0"
'

test_expect_success 'without it such a directory is refused; one that gpuqd has from before is carried again' '
	rm -rf store && start_store && sed "s|to: [^,]*|to: $url|" store.yaml >new.yaml && mv new.yaml store.yaml && stop_gpuqd && start_fake_gpuqd && exits 1 gpuq submit --code proj --wrap true &&
	says err "code_store of gpuqd.yaml" && stop_gpuqd && start_fake_gpuqd --config "$PWD/store.yaml" && e=$(carried) && job_becomes "$e" RUNNING 60 && stop_gpuqd && rm state/code/*.s3 &&
	start_fake_gpuqd --config "$PWD/store.yaml" && n=$(puts) && f=$(carried) && job_becomes "$f" RUNNING 60 && test "$(puts)" = "$((n + 1))"
'

test_expect_success FAILPOINTS 'killed while it is put: nothing stays' '
	gpuq cancel "$e" "$f" && wait_for 60 eval "test \$(stored) = 0" && stop_gpuqd && GPUQ_FAILPOINT=code_store.put=kill start_fake_gpuqd --config "$PWD/store.yaml" &&
	test_must_fail gpuq submit --code proj --wrap true && wait_for 60 gpuqd_is_dead && ls state/code >out && says out "s3$" && start_fake_gpuqd --config "$PWD/store.yaml" &&
	wait_for 60 eval "test \$(stored) = 0" && test -z "$(objects "")"
'

no_harm_was_done

test_done
