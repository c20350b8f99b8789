#!/bin/sh
test_description='lists of jobs as rows: the same values, and no more of them than are wanted'
. "$(dirname "$0")/lib.sh"

call() {
	/usr/bin/python3 "$test_source/tests/sharness/rpc.py" "$gpuqd_socket" "$@"
}

# A thousand jobs on hold, whose names and labels fill messages.
thousand() {
	for i in $(seq 1000); do
		printf -- '---\n{name: %s-%d, hold: true, gpus: %d, priority: %d, labels: {a: %s}, command: [a]}\n' \
			"$1" "$i" $((i % 3)) $((i % 7 + 1)) "x$(printf '%050d' "$i")"
	done >many.yaml && gpuq submit --parsable many.yaml >out
}

cat >same.py <<'END'
import json, sys
objects, rows, keys = (open(sys.argv[1]), open(sys.argv[2]), sys.argv[3].split(","))
jobs = [json.loads(x) for x in objects]
jobs = [j for j in jobs if j is not None]
got = [r for x in rows for r in json.loads(x)]

def value(j, k):
    return [p["node"] for p in j["pods"]] if k == "pods.node" else j.get(k)

# What still counts up is not the same in two lists.
want = [[value(j, k) for k in keys] for j in jobs]
assert len(got) == len(want) and len(got) >= int(sys.argv[4]), (len(got), len(want))
for g, w in zip(got, want):
    assert g == w, (g, w)
END

# same METHOD FILTER AT_LEAST KEY,...: do rows tell what objects tell?
same() {
	call "$1" "{$2}" >objects && call "$1" "{${2:+$2, }\"keys\": [\"$(echo "$4" | sed "s/,/\",\"/g")\"]}" >rows &&
	/usr/bin/python3 same.py objects rows "$4" "$3"
}

keys=id,array_index,array,name,user,queue,account,qos,labels,state,reason,reasons,submit_time,start_time,end_time
keys=$keys,eligible_time,planned_time,time_limit_s,time_min_s,exit_code,attempt,priority,flavor,pod_count,gpus
keys=$keys,pods,evictions,end_cause,avoids,promise,message,pods.node,no_such_key
keys=$keys,cpus,memory_mib,nice,depends,workdir,stdout,stderr,comment

test_expect_success 'every key of every kind of job' '
	start_gpuqd && ended=$(sh_job "exit 3" -g 1) && job_becomes "$ended" FAILED && run=$(sh_job "sleep 300" -g 2) &&
	job_becomes "$run" RUNNING && array=$(sh_job "sleep 300" -g 1 --array 0-5%1) && job_becomes "${array}_0" RUNNING &&
	sh_job "exit 0" -g 4 -t 10 -J "größe" -c 2 --mem 3G --nice=4 -d "after:$run+5" -o "x%j" -e y --comment "a
	b" >out && same job.list "" 4 "$keys" && same job.list "\"all\": true" 5 "$keys" &&
	same history.list "" 1 "$keys" && same job.list "\"ids\": [\"$run\"]" 1 "$keys" && same job.list "\"users\": [\"nobody\"]" 0 id
'

wide=labels,labels,labels,labels,labels,labels,labels,labels,labels,labels,labels,labels,labels
test_expect_success 'more than one message, and more than the first credit' '
	thousand one && thousand two && thousand three && same job.list "" 3000 id,name,state,$wide &&
	test "$(wc -l <rows)" -gt 64 && same job.list "\"all\": true" 3000 id,name && test "$(wc -l <rows)" -lt 100 &&
	test "$(call job.list "{\"keys\": [\"id\"], \"limit\": 5}")" = "$(call job.list "{\"limit\": 5}" |
		/usr/bin/python3 -c "import json, sys; print([[json.loads(x)[\"id\"]] for x in sys.stdin])")"
'

# heads WANT: the list with --limit is the head of the list
heads() {
	gpuq queue -h -o jobid,name "$@" >all && for n in 1 7 300; do
		gpuq queue -h -o jobid,name "$@" --limit $n >out && head -n $n all | awk "{ print \$1, \$2 }" >want &&
		awk "{ print \$1, \$2 }" out >got && diff want got || return 1
	done
}

test_expect_success 'the first of an order are its first' '
	heads && heads --sort=-JOBID && heads --sort=PRIORITY,-JOBID && heads --sort=-STATE,START_TIME,JOBID &&
	heads --sort=-GPUS,NAME && heads --sort=V,JOBID -t PD && heads --sort=-JOBID -a
'

test_expect_success 'and only they are sent' '
	test "$(call job.list "{\"keys\": [\"id\"], \"order\": [\"-id\"], \"first\": 3}" | tail -n 1)" != "" &&
	call job.list "{\"order\": [\"-priority\", \"id\"], \"first\": 4}" >out && test "$(wc -l <out)" = 4 &&
	call job.list "{\"order\": [\"nothing\"], \"first\": 4}" >out && test "$(wc -l <out)" -gt 3000
'

test_expect_success 'what is too much is refused' '
	test_must_fail call job.list "{\"keys\": [$(seq -s, 200 | sed "s/[0-9]*/\"&\"/g")]}" 2>err && grep "more than 128 keys" err &&
	test_must_fail call job.list "{\"keys\": 5}" && test_must_fail call job.list "{\"first\": -1}"
'

test_expect_success 'a reader who goes away leaves nothing behind' '
	for i in 1 2 3; do gpuq queue | head -n 1 >out && test -s out || return 1; done && gpuq queue -h | wc -l >out && test "$(cat out)" -gt 3000 &&
	gpuq cancel "$run" "$array" && stop_gpuqd
'

test_done
