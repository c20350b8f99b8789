#!/bin/sh
test_description='copies and segments in an object store: signed, listed in pages, deleted; faults; restored from there'
. "$(dirname "$0")/lib.sh"

command -v openssl >/dev/null || {
	skip_all='the Debian package openssl is not installed'
	test_done
}

. "$test_source/tests/sharness/s3.sh"

# refused WORDS: gpuqd does not start with backup.yaml
refused() {
	exits 78 gpuqd --state "$PWD/none" --listen "unix:$PWD/none.sock" --cluster local --gpus 4 --config backup.yaml && says err "$1"
}
# asks COMMAND WORDS...: it prints WORDS
asks() {
	asks_command=$1
	shift
	gpuq $asks_command >asks.out 2>&1
	grep -Eq -e "$*" asks.out
}
is_shipped() {
	grep -lq "$1" store/objects/*.seg
}
# restore SOURCE [option...]: into an empty state, as a daemon that is up
restore() {
	rm -rf state/data.mdb state/lock.mdb state/mark state/data.mdb.new && start_gpuqd --config backup.yaml --restore "$@"
}

test_expect_success 'addresses and settings that are none are refused, with their place' '
	printf "backup: {to: \"https://b.h\", s3: {style: host}}\n" >good.yaml && gpuqd --config good.yaml --check &&
	while IFS="|" read -r bad words; do
		printf "backup:\n  %s\n" "$bad" >bad.yaml && test_must_fail gpuqd --config bad.yaml --check 2>err && says err "^gpuqd: bad.yaml:2:.*$words" || return 1
	done <<-\END
	to: "https://h"|expected a bucket
	to: "https://"|expected the name of a host
	to: "https://k:s@h/b"|no credentials in the address
	to: "https://h/b/"|without a trailing one
	to: "https://h/b//c"|single slashes
	to: "https://h/b/../c"|single slashes
	to: "https://h/b?x=1"|letters, digits
	to: "http://h/b"|expected the absolute path of a directory.*or https:
	{to: /copies, s3: {region: x}}|with s3
	END
'

test_expect_success 'a store, with a key that only we may read' '
	start_store && config "every: 1h" "log_every: 1s" &&
	refused "credentials: .*No such file" && printf "[other]\naws_access_key_id = x\n[default]\naws_access_key_id = key\n" >credentials && refused "accessible to others" &&
	chmod 600 credentials && refused "expected aws_access_key_id and aws_secret_access_key" && echo secret >>credentials && refused "credentials:5: expected NAME" &&
	sed -i "s/^secret/aws_secret_access_key=secret/" credentials && sed "s/, credentials[^}]*//" backup.yaml >env.yaml && mv backup.yaml kept.yaml && mv env.yaml backup.yaml &&
	refused "no credentials for S3" && mv kept.yaml backup.yaml
'

test_expect_success 'a copy, a segment, an audit through it; no secret is in a log' '
	start_gpuqd --config backup.yaml && wait_for 60 backup_is copies 1 && a=$(sh_job true --hold --name name-a) && wait_for 60 is_shipped name-a &&
	exits 0 gpuq backup verify && says out "whole: " && gpuq backup list >out && says out "gpuq-.*Z.mdb .*iB.*whole" && objects mdb.sha256 | grep -q "^of%2Fgpuq%2Fgpuq-" &&
	asks doctor "^ok +backup" && ! grep -rq secret gpuqd.log
'

test_expect_success 'refusals for a moment and an answer that is lost are tried again' '
	echo 503 503 lost >store/fault && b=$(sh_job true --hold --name name-b) && wait_for 60 is_shipped name-b && wait_for 60 grep -q "^PUT .*seg lost" store/log &&
	says store/log " 503\$" && test ! -s store/fault && ! grep -q backup.segment gpuqd.log
'

test_expect_success 'a download that is cut short is tried again' '
	echo cut >store/fault && exits 0 gpuq backup verify && says store/log "mdb cut\$" && test ! -s store/fault
'

test_expect_success 'a key that is not accepted, another region, a clock that is wrong: named by doctor' '
	sed "s/secret\$/wrong/" credentials >wrong && chmod 600 wrong && cp -p credentials right && mv wrong credentials && c=$(sh_job true --hold --name name-c) &&
	wait_for 60 asks doctor "^warning +backup .*status 403, SignatureDoesNotMatch: check the access key" && mv right credentials && wait_for 60 is_shipped name-c &&
	echo region >store/fault && d=$(sh_job true --hold --name name-d) && wait_for 60 asks doctor "backup .*is in region us-other-2: set backup.s3.region" &&
	echo skew >store/fault && wait_for 60 asks doctor "backup .*the clock here is 36[0-9][0-9] s behind that of the server" && : >store/fault &&
	wait_for 60 is_shipped name-d && wait_for 60 backup_is log_failed 0
'

test_expect_success 'a store that is away, as the daemon stops: it ends at once, and what was left is put at the next start' '
	kill -STOP "$store_pid" && e=$(sh_job true --hold --name name-e) && sleep 1 && exits 0 stop_gpuqd && kill -CONT "$store_pid" &&
	! grep -q backup.abandoned gpuqd.log && start_gpuqd --config backup.yaml && wait_for 60 is_shipped name-e
'

test_expect_success 'restored from its address: the newest, a time, a copy by its name; nothing is there' '
	kill_gpuqd && restore "$url" && job_is "$e" name name-e && kill_gpuqd && one=$(objects Z.mdb | head -n 1 | sed "s/.*%2F//") &&
	restore "$url/$one" && exits 254 gpuq status "$a" && kill_gpuqd && restore "$url/$one" --at now && job_is "$a" name name-a && kill_gpuqd &&
	rm -f state/data.mdb state/lock.mdb state/mark && exits 78 gpuqd --state "$PWD/state" --cluster local --config backup.yaml --restore "$url/none" && says err "has no copy" &&
	exits 78 gpuqd --state "$PWD/state" --cluster local --config backup.yaml --restore "$host/other/x" && says err "404, NoSuchBucket" && test ! -e state/data.mdb &&
	sed "s/{region/{style: host, region/; s|//127.0.0.1|//kept.localhost|; s|/kept/|/|" backup.yaml >host.yaml && says host.yaml "//kept.localhost:[0-9]*/of/gpuq" &&
	start_gpuqd --config host.yaml --restore target && job_is "$a" name name-a && kill_gpuqd
'

test_expect_success 'credentials of the environment; lists of many pages; old copies go' '
	rm -rf state store/objects/* && config "every: 1s" "log_every: 0" "keep: {hourly: 1, daily: 0}" && sed -i "s/, credentials[^}]*//" backup.yaml && echo pages >store/fault &&
	AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret start_gpuqd --config backup.yaml && wait_for 60 n_objects mdb 1 &&
	id=$(objects Z.mdb | head -n 1 | sed "s/.*gpuq-//; s/-[^-]*\$//") && for h in 01 02 03 04 05 06 07; do : >"store/objects/of%2Fgpuq%2Fgpuq-$id-20200101T${h}0000Z.mdb" || return 1; done &&
	: >"store/objects/of%2Fgpuq%2Fdeeper%2Fgpuq-$id-20200101T010000Z.mdb" && : >store/objects/of%2Fgpuq%2Fother.mdb &&
	wait_for 60 eval "! objects gpuq%2Fgpuq-.*20200101T0.0000Z.mdb" && says store/log "continuation-token=" && objects other.mdb && objects deeper.* && exits 0 stop_gpuqd
'

test_done
