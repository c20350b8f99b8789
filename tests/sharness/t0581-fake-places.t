#!/bin/sh
test_description='places in pods: SLURM_SUBMIT_DIR is a directory that they have, volumes do not hide scripts and code'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# variable ID NAME: of its first pod
variable() {
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods" | /usr/bin/python3 -c '
import json, sys
s = [p for p in json.load(sys.stdin)["items"] if p["metadata"]["labels"].get("gpuq.io/job") == sys.argv[1]][0]["spec"]
print([e.get("value") for e in s["containers"][0]["env"] if e["name"] == sys.argv[2]][0])' "$1" "$2"
}

# there ID DIRECTORY: where its script changes to
there() {
	job_becomes "$1" RUNNING && test "$(variable "$1" SLURM_SUBMIT_DIR)" = "$2" && test "$(variable "$1" GPUQ_SUBMIT_DIR)" = "$2"
}

script() {
	printf "#!/bin/sh\n#SBATCH --cpus-per-task=1\ncd \$SLURM_SUBMIT_DIR\n" | submit --annotation=gpuq.test/hang=true "$@" -
}

test_expect_success 'queues with a working directory, with a volume, with neither' '
	cat >site.yaml <<-END &&
	version: 1
	image: base
	queues:
	- {name: placed, workdir: /jobs/%u}
	- {name: home, workdir: /jobs, volumes: [{claim: home, path: "$PWD"}]}
	- {name: none}
	END
	start_fake && start_fake_gpuqd --site "$PWD/site.yaml"
'

test_expect_success 'a script changes to a directory that its pod has' '
	a=$(script -p placed) && there "$a" "/jobs/$(id -un)" && b=$(script -p placed --chdir /elsewhere) && there "$b" "/jobs/$(id -un)" &&
	c=$(script -p home) && there "$c" "$PWD" && d=$(script -p home --chdir "$PWD/sub") && there "$d" "$PWD" &&
	e=$(script -p none) && there "$e" "$PWD" && gpuq cancel "$a" "$b" "$c" "$d" "$e"
'

# runs_in ID DIRECTORY: where its pod starts
runs_in() {
	job_becomes "$1" RUNNING && /usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods" | /usr/bin/python3 -c '
import json, sys
s = [p for p in json.load(sys.stdin)["items"] if p["metadata"]["labels"].get("gpuq.io/job") == sys.argv[1]][0]["spec"]
print(s["containers"][0].get("workingDir"))' "$1" >runs && echo "$2" | test_cmp - runs
}

test_expect_success 'a relative --chdir counts from the directory of submission, and so does a relative output file' '
	id=$(script -p home -D logs -o here.out 2>err) && runs_in "$id" "$PWD/logs" && test ! -s err && job_is "$id" workdir "$PWD/logs" &&
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods" >pods && says pods "exec .*>.*logs/here.out" && gpuq cancel "$id" &&
	mkdir -p deep/er && id=$(cd deep/er && script -p home -D ../x/.) && runs_in "$id" "$PWD/deep/x" && gpuq cancel "$id"
'

test_expect_success 'a --chdir that no volume has is told, with where the job runs' '
	id=$(script -p home -D /nowhere 2>err) && says err "warning: --chdir /nowhere is ignored: .* runs in $PWD; workdir of a job file" && runs_in "$id" "$PWD" && gpuq cancel "$id" &&
	id=$(script -p placed -D logs 2>err) && says err "warning: --chdir $PWD/logs is ignored: .* runs in /jobs/" && gpuq cancel "$id" &&
	id=$(script -p none -D logs 2>err) && says err "runs in the directory of its image;" && gpuq cancel "$id"
'

test_expect_success 'volumes where pods have scripts and code are refused, by job and by site' '
	for path in /gpuq /gpuq/ /gpuq/x /gpuq-code /gpuq-code/x; do
		printf "image: a\ncommand: [b]\nvolumes: [{claim: c, path: $path}]\n" >job.yaml && exits 1 gpuq submit -p none job.yaml &&
		says err "job.yaml:3:11: volumes\[0\]: expected another path than .${path%/}." && exits 1 gpuq submit -p none --volume "c:$path" --wrap true &&
		printf "version: 1\nvolumes: [{claim: c, path: $path}]\n" >bad.yaml && test_must_fail gpuq apply -f bad.yaml --dry-run 2>err &&
		says err "bad.yaml:2:11: volumes\[\]: expected another path" || { echo "$path"; return 1; }
	done && printf "image: a\ncommand: [b]\nvolumes: [{claim: c, path: /gpuqs}]\n" >job.yaml && submit -p none job.yaml
'

no_harm_was_done

test_done
