#!/bin/sh
test_description='a restored backup on a cluster: pods that it does not know, and pods that are gone'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

api() {
	api_path=$1
	shift
	/usr/bin/curl -sSf "$@" "http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods$api_path"
}

# What is there: name and uid of each pod that has not ended.
pods() {
	api "" | /usr/bin/python3 -c '
import json, sys
for p in json.load(sys.stdin)["items"]:
    if p["status"].get("phase") in ("Pending", "Running"):
        print(p["metadata"]["name"], p["metadata"]["uid"])' | sort
}

# pod_of JOB: the name of its first pod
pod_of() {
	job "$1" pods.0.name
}

# annotate POD VALUE: its record becomes that, as JSON
annotate() {
	api "/$1" -X PATCH -H "Content-Type: application/merge-patch+json" \
		--data-binary "{\"metadata\":{\"annotations\":{\"gpuq.io/record\":$2}}}" >/dev/null
}

# is_gone POD
is_gone() {
	pods >there && ! grep -q "^$1 " there
}

restored() {
	gpuq status --json | json "recovering.$1"
}

restored_is() {
	test "$(restored "$1")" = "$2"
}

running() {
	gpuq queue -h -t RUNNING -o JOBID | grep -c .
}

running_is() {
	test "$(running)" = "$1"
}

restore() {
	rm -rf state && start_fake_gpuqd --restore "$PWD/$1" && wait_for 60 restored_is listed true
}

few_pods() {
	pods >there && test "$(wc -l <there)" -le 1
}

deletes() {
	grep -c "\"verb\":\"delete\",\"resource\":\"pods\"" audit || test $? = 1
}

creates() {
	grep -c "\"verb\":\"create\",\"resource\":\"pods\"" audit
}

test_expect_success 'a cluster, and a backup' '
	start_fake --nodes 16 --gpus 4 && start_fake_gpuqd &&
	a=$(fake_job hang=true -g 1 --name known) && h=$(fake_job hang=true -g 1 --hold --name waits) &&
	g=$(fake_job hang=true -g 1 --hold --name lost) && l=$(fake_job hang=true -g 1 --name gone) &&
	job_becomes "$a" RUNNING && job_becomes "$l" RUNNING && gone=$(pod_of "$l") && prefix=${gone%-"$l"-0-0} && gpuq backup backup.mdb
'

test_expect_success 'fifty pods later' '
	gpuq release "$h" && first= &&
	for i in $(seq 20); do one=$(fake_job hang=true -g 1 --name "single-$i" --time 2h) && first=${first:-$one} || return 1; done &&
	for i in 1 2 3 4; do gang=$(fake_job hang=true -g 1 --pods 5 --name "gang-$i") || return 1; done &&
	array=$(fake_job hang=true -g 1 --array 0-7 --name many) &&
	wait_for 60 running_is 35 && last=$array && pods >before && test "$(wc -l <before)" = 51 &&
	for j in "$one" "$gang"; do gpuq status "$j" --json >"job-$j" || return 1; done && kill_gpuqd
'

test_expect_success 'the backup is restored: the same pods go on' '
	fault "delete-pod $gone grace=0" && wait_for 60 is_gone "$gone" &&
	pods >before && test "$(wc -l <before)" = 50 && n=$(deletes) && c=$(creates) &&
	restore backup.mdb && wait_for 60 running_is 34 && sleep 3 && pods >after && cmp before after &&
	test "$(deletes)" = "$n" && test "$(creates)" = "$c"
'

test_expect_success 'every job is its own again' '
	for key in id name user queue qos submit_time time_limit_s gpus pod_count pods.0.name pods.0.node pods.0.uid; do
		for j in "$one" "$gang"; do
			was=$(json "$key" <"job-$j") && { job_is "$j" "$key" "$was" || return 1; }
		done
	done && job_is "${array}_3" state RUNNING && job_is "$h" state RUNNING && job_is "$h" attempt 0 && job_is "$a" state RUNNING
'

test_expect_success 'what is taken is not free' '
	test "$(free_gpus)" = 14
'

test_expect_success 'status counts them' '
	restored_is adopted 33 && restored_is unknown 1 && gpuq status >out && says out "^Recovering .*33 adopted, 1 unknown"
'

test_expect_success 'the job whose pod is gone waits for a decision' '
	job_is "$l" state PENDING && wait_for 60 job_is "$l" reason RestoredUnknown && gpuq why "$l" >out && says out RestoredUnknown &&
	test "$(n_pods "$l")" = 1 && gpuq cancel "$l" && job_becomes "$l" CANCELLED
'

test_expect_success 'no number is given twice' '
	x=$(fake_job run=100ms) && test "$x" -gt "$((last + 999999))" && exits 0 gpuq wait "$x"
'

test_expect_success 'recovered jobs can be cancelled, and end' '
	gpuq cancel "$first" "$gang" && job_becomes "$first" CANCELLED && job_becomes "$gang" CANCELLED &&
	wait_for 60 is_gone "$prefix-$gang-0-0"
'

test_expect_success 'a recovered job is never tried again' '
	p=$(pod_of "$one") && fault "delete-pod $p grace=0" && job_becomes "$one" NODE_FAIL && test "$(n_pods "$one")" = 1
'

test_expect_success 'the next restart is one as any' '
	kill_gpuqd && n=$(deletes) && pods >before && start_fake_gpuqd && sleep 2 && pods >after && cmp before after && test "$(deletes)" = "$n"
'

test_expect_success 'pods without a record, or with that of another, are kept' '
	bare=$(pod_of "$((first + 1))") && forged=$(pod_of "$h") && other=$(pod_of "$((first + 2))") && kill_gpuqd &&
	annotate "$bare" null && annotate "$forged" "\"{\\\"v\\\":1,\\\"user\\\":\\\"eve\\\",\\\"queue\\\":\\\"default\\\",\\\"qos\\\":\\\"normal\\\"}\"" &&
	annotate "$other" "\"{\\\"v\\\":1,\\\"user\\\":\\\"ann\\\",\\\"queue\\\":\\\"none-such\\\",\\\"qos\\\":\\\"normal\\\",\\\"gpus\\\":1000}\"" &&
	pods >before && n=$(deletes) && restore backup.mdb && sleep 3 && pods >after && cmp before after && test "$(deletes)" = "$n" &&
	restored_is pods 3 && gpuq doctor >out && says out "3 pods belong to no job of the ledger" &&
	gpuq recover >out && says out "^Pod $bare .*kept; no annotation gpuq.io/record" && says out "^Pod $forged .*another job" &&
	says out "^Pod $other .*queue none-such, which does not exist" && job_is "$h" state PENDING
'

test_expect_success 'their devices are not given to others' '
	free=$(free_gpus) && taken=$(pods | wc -l) && echo "$free free, $taken pods" && test $((free + taken)) = 64
'

test_expect_success 'a pod whose queue comes is a job again' '
	echo "{version: 1, queues: [{name: default}, {name: none-such}]}" >site.yaml && gpuq apply -f site.yaml && wait_for 60 restored_is pods 2 &&
	job_becomes "$((first + 2))" RUNNING && job_is "$((first + 2))" user ann && job_is "$((first + 2))" pods.0.name "$other"
'

test_expect_success 'an orphan of this ledger is removed even so' '
	y=$(fake_job hang=true) && job_becomes "$y" RUNNING && own=$(pod_of "$y") && orphan=$(echo "$own" | sed "s/-0-0\$/-7-0/") &&
	api "/$own" | /usr/bin/python3 -c "
import json, sys
o = json.load(sys.stdin)
m = o[\"metadata\"]
json.dump({\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"spec\": o[\"spec\"], \"metadata\": {
	\"name\": sys.argv[1], \"labels\": dict(m[\"labels\"], **{\"gpuq.io/job\": \"9999\"}), \"annotations\": m[\"annotations\"]}}, sys.stdout)
" "$orphan" >orphan.json && api "" -H "Content-Type: application/json" --data-binary @orphan.json >/dev/null &&
	wait_for 60 is_gone "$orphan" && job_is "$y" state RUNNING && gpuq cancel "$y" && job_becomes "$y" CANCELLED
'

test_expect_success 'finished: they are kept all the same, and shown' '
	gpuq recover --finish && test "$(gpuq status --json | json recovering)" = null && kill_gpuqd && start_fake_gpuqd && sleep 2 &&
	pods | grep -q "^$bare " && pods | grep -q "^$forged " && gpuq doctor >out && says out "2 pods belong to no job of the ledger"
'

test_expect_success 'what a person deletes is gone' '
	fault "delete-pod $bare grace=0" "delete-pod $forged grace=0" && wait_for 60 eval "gpuq recover --json | grep -q \"\\\"n_pods\\\":0\""
'

test_expect_success 'nothing is done while the cluster cannot be listed' '
	kill_gpuqd && pods >before && n=$(deletes) && c=$(creates) && rm -f state/data.mdb state/lock.mdb state/mark && fault "down 20s" &&
	start_gpuqd --kubeconfig "$PWD/kubeconfig" --restore "$PWD/backup.mdb" && restored_is listed false &&
	gpuq status >out && says out "^Recovering .*no job starts until the cluster has been listed" &&
	gpuq release "$g" && wait_for 60 job_is "$g" reason Recovering && job_is "$g" reasons.0.who operator &&
	exits 1 fake_job hang=true && says err "has not listed the cluster" &&
	exits 1 gpuq recover --finish && says err "has not been listed" && restored_is listed false
'

test_expect_success 'then it goes on' '
	wait_for 60 restored_is listed true && job_becomes "$g" RUNNING && pods | grep -v "^$prefix-$g-0-0 " >after && cmp before after &&
	test "$(deletes)" = "$n" && test "$(creates)" = $((c + 1))
'

test_expect_success 'all of it ends' '
	gpuq recover --finish && gpuq queue -h -o JOBID | sort -u >ids && xargs gpuq cancel <ids && wait_for 60 few_pods
'


no_harm_was_done

test_done
