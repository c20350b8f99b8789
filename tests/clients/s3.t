#!/bin/sh
test_description='moto as an object store: copies, parts, segments, deletion, restore'
. "$(dirname "$0")/lib.sh"

objects() {
	"$client" list.py "$url" | grep "$1\$"
}
backup_is() {
	test "$(gpuq status --json | json "backup.$1")" = "$2"
}

test_expect_success 'moto, with a bucket' '
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tls.key -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -days 10 -out tls.pem 2>/dev/null &&
	port=$(free_port) && host=https://127.0.0.1:$port && url=$host/kept && AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret AWS_REGION=eu-west-1 && export AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION &&
	{ "$GPUQ_CLIENTS/bin/moto_server" -H 127.0.0.1 -p "$port" -s -c tls.pem -k tls.key >moto.log 2>&1 3>&- 4>&- 5>&- & } &&
	cat >list.py <<-\END &&
	import sys, boto3
	host, bucket = sys.argv[1].rsplit("/", 1)
	s3 = boto3.client("s3", endpoint_url=host, verify="tls.pem", region_name="eu-west-1")
	if len(sys.argv) > 2:
	    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
	for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
	    for o in page.get("Contents", []):
	        print(o["Key"])
	END
	wait_for 60 curl -sf --cacert tls.pem "$host/moto-api/" && "$client" list.py "$url" make
'

test_expect_success 'a copy of several parts, its audit, a segment' '
	printf "backup: {to: %s/of/gpuq, s3: {ca: %s}, every: 1h, log_every: 1s}\n" "$url" "$PWD/tls.pem" >backup.yaml && start_gpuqd &&
	for i in $(seq 130); do
		{ echo "#!/bin/sh"; head -c 140000 /dev/urandom | base64 -w 100 | sed "s/^/# /"; } | gpuq submit --parsable --hold --cpus 0 - >fill.id || return 1
	done && stop_gpuqd && start_gpuqd --config backup.yaml && wait_for 60 backup_is copies 1 && exits 0 gpuq backup verify && says out "whole: " && says moto.log "PUT .*partNumber=2" &&
	a=$(sh_job true --hold --name name-a) && wait_for 60 objects seg && objects mdb.sha256
'

test_expect_success 'restored from it, to the newest batch' '
	stop_gpuqd && rm -r state && start_gpuqd --config backup.yaml --restore "$url/of/gpuq" && job_is "$a" name name-a && stop_gpuqd
'

test_expect_success 'old copies are deleted, of more than a thousand names' '
	cat >old.py <<-\END &&
	import sys, boto3
	host, bucket = sys.argv[1].rsplit("/", 1)
	s3 = boto3.client("s3", endpoint_url=host, verify="tls.pem", region_name="eu-west-1")
	for i in range(1100):
	    s3.put_object(Bucket=bucket, Key="of/gpuq/gpuq-%s-20200101T00%02d%02dZ.mdb" % (sys.argv[2], i // 60, i % 60), Body=b"")
	END
	id=$(objects Z.mdb | head -n 1 | sed "s/.*gpuq-//; s/-[^-]*\$//") && "$client" old.py "$url" "$id" && printf "backup: {to: %s/of/gpuq, s3: {ca: %s}, every: 1s, log_every: 0, keep: {hourly: 1, daily: 0}}\n" "$url" "$PWD/tls.pem" >backup.yaml &&
	start_gpuqd --config backup.yaml && wait_for 240 eval "! objects 20200101T.*mdb" && objects Z.mdb && stop_gpuqd
'

test_done
