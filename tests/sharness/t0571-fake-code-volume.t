#!/bin/sh
test_description='submit --code on the fake cluster: what no ConfigMap takes goes to a directory that pods see as a volume'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/code.sh"

SQ="'"

# archives N: so many are on the volume
archives() {
	test "$(find volume -type f | wc -l)" = "$1"
}

test_expect_success 'settings that are none are refused, with their place' '
	refused "  to: /dir" "bad.yaml:2:.*a directory needs volume" && refused "  {to: \"https://h/b\", volume: {claim: c}}" "no volume beside an address" &&
	refused "  {to: /dir, volume: {claim: c}, s3: {region: x}}" "no s3 beside a directory" && refused "  {to: /dir, volume: {}}" "one of claim and nfs" &&
	refused "  {to: /dir, volume: {claim: c, sub_path: ../x}}" "without .\.\.." && refused "  {to: /dir, volume: {nfs: {server: s, path: x}}}" "begin with ./." &&
	refused "  {to: /dir, volume: {claim: c, nfs: {server: s, path: /x}}}" "one of claim and nfs"
'

test_expect_success 'a directory that is not there is named at the start' '
	start_fake && printf "code_store: {to: %s, volume: {claim: code, sub_path: of/gpuq}}\n" "$PWD/volume" >store.yaml &&
	exits 78 gpuqd --state "$PWD/none" --listen "unix:$PWD/none.sock" --kubeconfig "$PWD/kubeconfig" --config store.yaml && says err "code_store.to: $PWD/volume: No such file" &&
	mkdir volume proj && echo train >proj/train.py && head -c 2000000 /dev/urandom >proj/weights && printf "version: 1\ncode: {keep: 1s}\nqueues: [{name: default, quota: 8, image: base}]\n" >site.yaml &&
	start_fake_gpuqd --site "$PWD/site.yaml" --config "$PWD/store.yaml"
'

test_expect_success 'a pod sees its archive, and of the volume nothing else' '
	id=$(carried) && job_becomes "$id" RUNNING 60 && archives 1 && name=$(ls volume) && tar -xzOf "volume/$name/archive.tgz" train.py >out && says out "^train$" &&
	test "$(init "$id" "mount[\"subPath\"], mount[\"readOnly\"]")" = "(${SQ}of/gpuq/$name${SQ}, True)" && test "$(stat -c %a "volume/$name/archive.tgz")" = 444 && test "$(stat -c %a "volume/$name")" = 755 &&
	test "$(sha256sum <"volume/$name/archive.tgz" | cut -d" " -f1)" = "$(init "$id" "init[\"env\"][0][\"value\"]")" && init "$id" "s[\"volumes\"]" >out && says out "claimName.: .code.*readOnly.: True" &&
	test "$(init "$id" "[m[\"name\"] for m in s[\"containers\"][0][\"volumeMounts\"]].count(\"gpuq-code-store\")")" = 0 && api configmaps >out && ! grep -q binaryData out
'

test_expect_success 'the same directory is not put twice, also after a kill; what fits into a ConfigMap goes by one' '
	touch -d 2001-01-01 "volume/$name/archive.tgz" && b=$(carried) && kill_gpuqd && start_fake_gpuqd --config "$PWD/store.yaml" && c=$(carried -a 0-1) && job_becomes "${c}_1" RUNNING 60 && job_becomes "$b" RUNNING 60 &&
	test "$(stat -c %y "volume/$name/archive.tgz" | cut -c1-4)" = 2001 && mkdir small && echo x >small/x && d=$(submit --annotation=gpuq.test/hang=true --code small --wrap true) &&
	job_becomes "$d" RUNNING 60 && test "$(init "$d" mount)" = None && archives 1 && gpuq cancel "$d" && job_becomes "$d" CANCELLED
'

test_expect_success 'a file server: the export and the part of it' '
	sed "s/claim: code/nfs: {server: files, path: \/export}/" store.yaml >nfs.yaml && stop_gpuqd && start_fake_gpuqd --config "$PWD/nfs.yaml" && e=$(carried) && job_becomes "$e" RUNNING 60 &&
	init "$e" "s[\"volumes\"]" >out && says out "nfs.: {.*server.: .files" && test "$(init "$e" "mount[\"subPath\"]")" = "of/gpuq/$name" && gpuq cancel "$e" && job_becomes "$e" CANCELLED
'

test_expect_success 'it goes with the last job that names it, from the volume and from gpuqd' '
	gpuq cancel "$id" "$b" && job_becomes "$b" CANCELLED && archives 1 && gpuq cancel "$c" && wait_for 60 eval "test -z \"\$(ls volume)\"" && wait_for 60 eval "test -z \"\$(ls state/code)\""
'

test_expect_success 'a volume that does not take it is named, nothing half-carried stays' '
	mv volume away && exits 1 gpuq submit --code proj --wrap true && says err "code of the job: $PWD/volume: No such file" && mv away volume && wait_for 60 eval "test -z \"\$(ls state/code)\"" &&
	f=$(carried) && job_becomes "$f" RUNNING 60 && gpuq cancel "$f" && wait_for 60 eval "test -z \"\$(ls volume)\""
'

test_expect_success FAILPOINTS 'killed while it is put: nothing stays' '
	stop_gpuqd && GPUQ_FAILPOINT=code_store.put=kill start_fake_gpuqd --config "$PWD/store.yaml" && test_must_fail gpuq submit --code proj --wrap true && wait_for 60 gpuqd_is_dead &&
	ls state/code >out && says out "dir$" && mkdir "volume/code-$(sed -n "s/.dir$//p" out)" && start_fake_gpuqd --config "$PWD/store.yaml" && wait_for 60 eval "test -z \"\$(ls state/code)\"" && test -z "$(ls volume)"
'

no_harm_was_done

test_done
