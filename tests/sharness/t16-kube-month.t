#!/bin/sh
test_description='real control plane: a month of three teams in a minute; the reports balance with the pods to the second'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

month() {
	/usr/bin/python3 "$test_source/tests/sharness/month.py" "$@"
}

# What every pod says of itself goes to pods.json when the recorder is told to end.
record_pods() {
	KUBECONFIG=$TMPDIR/k/admin.kubeconfig /usr/bin/python3 "$test_source/tests/sharness/month.py" record gpuq-jobs \
		"$PWD/pods.json" </dev/null >recorder.log 2>&1 3>&- 4>&- 5>&- &
	recorder=$!
}

cat >site.yaml <<'END'
version: 1
currency: EUR
flavors:
- {name: a100, match: {product: "*"}, price: 2.50}
qos:
- {name: urgent, priority: 100}
- {name: cheap, usage_factor: 0.5}
queues:
- {name: science, quota: 24, budget: {gpu_minutes: 100000, period: month}}
- {name: product, quota: 8}
- {name: vision, parent: science, quota: 16, qos: [normal, urgent, cheap]}
- {name: nlp, parent: science, quota: 8, qos: [normal, cheap], budget: {gpu_minutes: 2, period: month}}
- {name: build, parent: product, quota: 8, qos: [normal, cheap]}
END

cluster_for_gpuqd --nodes 4 --gpus 8

# day N: submits it, notes which job went where
day() {
	month day "$1" >day.yaml && gpuq submit --json day.yaml >day.json &&
		/usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    j = json.loads(line)
    print(j["id"], j["queue"])' <day.json >>queues
}

# days FIRST LAST
days() {
	days_n=$1
	while [ "$days_n" -le "$2" ]; do
		day "$days_n" || return 1
		sleep 0.3
		days_n=$((days_n + 1))
	done
}

all_done() {
	gpuq queue && test "$(in_queue)" = 0
}

# outage SECONDS: the daemon is killed, and is there again after so long; the file has its beginning and end
outage() {
	date +%s.%N >outage.from && kill_gpuqd && sleep "$1" && start_kube_gpuqd && sleep 1 &&
	echo "$(cat outage.from) $(date +%s.%N)" >>outages
}
: >outages

test_expect_success 'three teams under two departments; somebody writes down what the pods say' '
	start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 60 node_is node4 idle &&
	record_pods && wait_for 60 test -e pods.json
'

test_expect_success 'the first half of the month' 'days 1 15 && noon=$(date -u +%Y-%m-%dT%H:%M:%SZ)'

test_expect_success 'the daemon is killed with pods in every state, and comes back' '
	outage 1.5
'

test_expect_success 'the second half, with another kill' '
	days 16 22 && outage 0 && days 23 30 && wait_for 150 all_done
'

test_expect_success 'the reports balance with the pods to the second, as a whole and in parts' '
	sleep 1 && end=$(date -u +%Y-%m-%dT%H:%M:%SZ) && kill "$recorder" && wait_for 60 eval "! kill -0 $recorder" &&
	month check pods.json queues && month check pods.json queues 2026-01-01T00:00:00Z "$noon" &&
	month check pods.json queues "$noon" "$end" && gpuq report && gpuq usage
'

test_expect_success 'and still do after one more kill' '
	gpuq report --json >before && outage 0 && gpuq report --json >after && test_cmp before after &&
	month check pods.json queues "$noon" "$end"
'

test_expect_success 'the daemon stops; nothing was overcommitted' 'stop_gpuqd && nothing_was_overcommitted'

test_done
