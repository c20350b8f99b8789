#!/bin/sh
test_description='pods of a job of any name; a container of which a process was killed for memory'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

name=$(printf ' a/b: größe-名前 $(HOME) $$1\n\342\200\256\033')

# pods: all of them, as the apiserver has them
pods() {
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/pods"
}

test_expect_success 'its name is in the environment, not to be expanded, and in no name or label' '
	start_fake && start_fake_gpuqd && id=$(fake_job hang=true -J "$name" --slurm-env) && job_becomes "$id" RUNNING && pods >pods.json &&
	/usr/bin/python3 - "$name" "$id" <<-\END
	import json, sys
	name, id = sys.argv[1], sys.argv[2]
	pod = next(p for p in json.load(open("pods.json"))["items"] if p["metadata"]["labels"].get("gpuq.io/job") == id)
	env = {e["name"]: e.get("value") for e in pod["spec"]["containers"][0]["env"]}
	want = name.replace("$", "$$")
	assert env["GPUQ_JOB_NAME"] == want and env["SLURM_JOB_NAME"] == want, env
	assert pod["metadata"]["name"].startswith("gpuq-") and pod["metadata"]["name"].endswith("-%s-0-0" % id), pod["metadata"]["name"]
	assert not any("gr" in v or "HOME" in v for v in pod["metadata"]["labels"].values()), pod["metadata"]["labels"]
	END
'

test_expect_success 'it survives a restart, and the record on the pod has it without what acts on a terminal' '
	stop_gpuqd && start_fake_gpuqd && gpuq queue --json "$id" >out && /usr/bin/python3 -c "import json, sys; sys.exit(json.loads(open(\"out\").readline())[\"name\"] != sys.argv[1])" "$name" &&
	pods >pods.json && /usr/bin/python3 -c "
import json
for p in json.load(open(\"pods.json\"))[\"items\"]:
    r = json.loads(p[\"metadata\"][\"annotations\"][\"gpuq.io/record\"])
    assert r[\"name\"].startswith(\" a/b: größe-名前 \$(HOME)\") and chr(27) not in r[\"name\"], r
" && gpuq cancel "$id" && job_becomes "$id" CANCELLED
'

test_expect_success 'OOMKilled with exit code 0 is OUT_OF_MEMORY' '
	id=$(fake_job "run=10ms oom-child=true") && job_becomes "$id" OUT_OF_MEMORY && job_is "$id" exit_code 137 && exits 137 gpuq wait "$id"
'

no_harm_was_done

test_done
