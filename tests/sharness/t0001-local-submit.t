#!/bin/sh
test_description='a job on this machine, from the file to its end'
. "$(dirname "$0")/lib.sh"

test_expect_success 'the daemon needs no configuration' '
	start_gpuqd
'

test_expect_success 'client and server tell their versions' '
	gpuq version >out &&
	test "$(grep -c "[0-9]\.[0-9]" out)" -ge 2
'

test_expect_success 'submit prints the number' '
	cat >hello.yaml <<-\END &&
	name: hello
	command: [sh, -c, "echo hello; exit 0"]
	gpus: 1
	END
	gpuq submit hello.yaml >out &&
	says out "^Submitted job [0-9]+$"
'

test_expect_success '--parsable prints nothing else' '
	gpuq submit --parsable hello.yaml >out &&
	says out "^[0-9]+$" && test_must_fail grep -vE "^[0-9]+$" out
'

test_expect_success 'numbers grow and are not reused' '
	a=$(submit hello.yaml) && b=$(submit hello.yaml) && test "$b" -gt "$a"
'

test_expect_success 'a job runs to its end and wait tells' '
	id=$(submit hello.yaml) &&
	exits 0 gpuq wait "$id" &&
	last_result COMPLETED 0 &&
	test "$(json id <result.json)" = "$id"
'

test_expect_success 'the object has the fields of the contract' '
	gpuq status "$id" --json >job.json &&
	/usr/bin/python3 - job.json <<-\END
	import json, re, sys
	text = open(sys.argv[1]).read()
	assert text.count("\n") == 1, "one object, one line"
	j = json.loads(text)
	for k in """id array_index array name user queue account state reason reasons submit_time start_time
	    end_time eligible_time time_limit_s exit_code attempt priority flavor pod_count gpus pods gpu_seconds
	    evictions""".split():
	    assert k in j, "no " + k
	assert j["state"] == "COMPLETED" and j["exit_code"] == 0 and j["name"] == "hello", j
	assert j["array"] is None and j["array_index"] is None and j["evictions"] == [], j
	assert j["pod_count"] == 1 and j["gpus"] == 1 and j["queue"] == "default", j
	for k in ["submit_time", "start_time", "end_time"]:
	    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", j[k]), (k, j[k])
	assert j["submit_time"] <= j["start_time"] <= j["end_time"], j
	(pod,) = j["pods"]
	for k in "name index group node devices state".split():
	    assert k in pod, "pods have no " + k
	assert re.fullmatch(r"gpuq-[0-9a-f]{8}-%d-0-0" % j["id"], pod["name"]), pod["name"]
	(dev,) = pod["devices"]
	for k in "index uuid milli memory_mib".split():
	    assert k in dev, "devices have no " + k
	assert dev["milli"] == 1000 and 0 <= dev["index"] < 4, dev
	END
'

test_expect_success 'submit --wait ends with the code of the job' '
	exits 0 gpuq submit --wait hello.yaml && last_result COMPLETED 0
'

test_expect_success 'run shows the output and ends with the code' '
	exits 3 gpuq run -g 1 -- sh -c "echo one; echo two >&2; exit 3" &&
	says out "^one$" && cat out err | grep -q "^two$" && last_result FAILED 3
'

test_expect_success 'a job runs where it was submitted, with the environment of who did' '
	mkdir "a place" &&
	( cd "a place" && COLOUR="dark blue" gpuq run -- sh -c "pwd; echo \$COLOUR" >../out 2>../err ) &&
	says out "/a place$" && says out "^dark blue$"
'

test_expect_success 'jobs see their own devices only' '
	one=$(sh_job "echo devices=\$CUDA_VISIBLE_DEVICES; sleep 100" -g 2) &&
	two=$(sh_job "echo devices=\$CUDA_VISIBLE_DEVICES; sleep 100" -g 2) &&
	job_becomes "$one" RUNNING && job_becomes "$two" RUNNING &&
	wait_for 60 eval "gpuq logs $one | grep devices=" && wait_for 60 eval "gpuq logs $two | grep devices=" &&
	{ gpuq logs "$one"; gpuq logs "$two"; } | sed -n "s/^devices=//p" | tr , "\n" | sort >got &&
	printf "0\n1\n2\n3\n" >want && test_cmp want got
'

test_expect_success 'a third has to wait and says for what' '
	three=$(sh_job "exit 0" -g 1) &&
	wait_for 60 job_is "$three" reason Resources &&
	job_is "$three" state PENDING &&
	gpuq queue "$three" | tail -n 1 >out && says out "Resources"
'

test_expect_success 'devices add up while they are in use' '
	test "$(free_gpus)" = 0 &&
	gpuq status --json >status.json &&
	/usr/bin/python3 - status.json <<-\END
	import json, sys
	s = json.load(open(sys.argv[1]))
	d = s["devices"]
	assert s["gpus"] == 4 and sum(d.values()) == 4 and d["allocated"] == 4, s
	assert s["jobs"].get("RUNNING") == 2 and s["jobs"].get("PENDING") == 1, s
	assert s["cluster"]["kind"] == "local" and s["cluster"]["stale_since"] is None, s
	END
'

test_expect_success 'what is cancelled frees them' '
	gpuq cancel "$one" "$two" &&
	job_becomes "$one" CANCELLED && job_becomes "$two" CANCELLED && job_becomes "$three" COMPLETED &&
	wait_for 60 eval "test \$(free_gpus) = 4"
'

test_expect_success 'a node has the fields of the contract' '
	gpuq nodes --json >nodes.json && test "$(wc -l <nodes.json)" = 1 &&
	/usr/bin/python3 - nodes.json <<-\END
	import json, sys
	n = json.load(open(sys.argv[1]))
	for k in "name pool flavor state gpus free_gpus devices".split():
	    assert k in n, "no " + k
	assert n["pool"] == "default" and n["state"] == "idle" and n["gpus"] == 4, n
	for d in n["devices"]:
	    for k in "index uuid product memory_mib free_milli free_memory_mib jobs state".split():
	        assert k in d, "devices have no " + k
	    assert d["free_milli"] == 1000 and d["jobs"] == [], d
	END
'

test_expect_success 'queues have the fields of the contract' '
	gpuq queues --json >queues.json &&
	/usr/bin/python3 - queues.json <<-\END
	import json, sys
	(q,) = map(json.loads, open(sys.argv[1]))
	for k in """name parent quota limit weight fair_share allocated held pending_jobs running_jobs
	    budget_gpu_minutes used_gpu_minutes""".split():
	    assert k in q, "no " + k
	assert q["name"] == "default" and q["pending_jobs"] == 0 and q["running_jobs"] == 0, q
	END
'

test_expect_success 'a script with directives' '
	cat >train.sh <<-\END &&
	#!/bin/sh
	#SBATCH --job-name=train --gres=gpu:2
	#SBATCH --time=10
	echo "args: $*"
	echo "gpus: $CUDA_VISIBLE_DEVICES"
	END
	exits 0 gpuq run train.sh --epochs 10 &&
	says out "^args: --epochs 10$" && says out "^gpus: [0-3],[0-3]$" &&
	last_result COMPLETED 0 && id=$(json id <result.json) && job_is "$id" name train && job_is "$id" time_limit_s 600 &&
	job_is "$id" gpus 2
'

test_expect_success 'a file from standard input, as JSON' '
	id=$(echo "{\"name\": \"j\", \"command\": [\"true\"]}" | submit -) && job_becomes "$id" COMPLETED
'

test_expect_success 'several documents are several jobs' '
	printf "name: a\ncommand: [\"true\"]\n---\nname: b\ncommand: [\"true\"]\n" >two.yaml &&
	submit two.yaml >ids && test "$(wc -l <ids)" = 2 &&
	gpuq wait $(cat ids)
'

test_expect_success 'a dry run prints the job and stores nothing' '
	last=$(submit hello.yaml) &&
	gpuq submit --dry-run --json hello.yaml >dry.json &&
	test "$(json id <dry.json)" = null && test "$(json state <dry.json)" = null &&
	json spec.command <dry.json >/dev/null &&
	next=$(submit hello.yaml) && test "$next" = $((last + 1))
'

test_expect_success 'and what it prints is a job file that means the same' '
	gpuq submit --dry-run -o yaml train.sh >spec.yaml &&
	gpuq submit --dry-run -o yaml spec.yaml >again.yaml &&
	test_cmp spec.yaml again.yaml
'

test_expect_success 'what fits no node is taken with a warning and waits' '
	printf "command: [\"true\"]\ngpus: 5\n" >big.yaml &&
	gpuq submit --parsable big.yaml >ids 2>err && id=$(cat ids) && test -s err &&
	wait_for 60 job_is "$id" reason Unsatisfiable && job_is "$id" state PENDING &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED
'

test_expect_success 'an image means nothing here, which is said once' '
	printf "command: [\"true\"]\nimage: registry.example/a:1\n" >image.yaml &&
	gpuq submit --parsable image.yaml >ids 2>err &&
	test "$(grep -ci image err)" = 1 && job_becomes "$(cat ids)" COMPLETED
'

test_expect_success 'lists have a header that can be left out, and no colour in a pipe' '
	sleeper=$(sh_job "sleep 100") && job_becomes "$sleeper" RUNNING &&
	gpuq queue >with && gpuq queue -h >without &&
	test "$(wc -l <with)" = 2 && test "$(wc -l <without)" = 1 &&
	head -n 1 with | grep -Eq "^ *JOBID|^ *ID|^JOB" &&
	test_must_fail grep -q "$(printf "\033")" with &&
	gpuq queue --json >q.json && test "$(json id <q.json)" = "$sleeper" &&
	gpuq cancel "$sleeper" && job_becomes "$sleeper" CANCELLED
'

test_expect_success 'the daemon ends when asked' '
	stop_gpuqd
'

test_done
