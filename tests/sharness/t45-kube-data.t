#!/bin/sh
test_description='real control plane: volumes, workdir, env and image of site, queue and flavor; output on a volume'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

# container ID EXPR: a value of the job's only container
container() {
	pods_of "$1" spec >pod.out && /usr/bin/python3 -c '
import ast, json, sys
text = open("pod.out").read()
try: spec = json.loads(text)
except ValueError: spec = ast.literal_eval(text)
v = dict(spec, main=spec["containers"][0])
v["env"] = {e["name"]: e.get("value") for e in v["main"]["env"]}
print(eval(sys.argv[1], {}, v))' "$2"
}

cluster_for_gpuqd --nodes 2 --gpus 2

test_expect_success 'a site that gives volumes, and refuses what is no path' '
	mkdir -p data/ann && cat >site.yaml <<-END &&
		version: 1
		env: {PIP_INDEX: site, DATA: site}
		flavors: [{name: any, match: {product: "*"}, env: {DATA: flavor}}]
		queues:
		- name: train
		  quota: 4
		  image: $kube_image
		  workdir: /tmp
		  env: {DATA: queue, QUEUE_SAYS: yes please}
		  volumes:
		  - {claim: datasets, path: "$PWD/data", sub_path: "home/%u"}
		  - {nfs: {server: files.example.org, path: /export}, path: /nfs, read_only: true}
	END
	bound_claim datasets && start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 60 node_is node1 idle &&
	printf "version: 1\nqueues:\n- {name: train, volumes: [{claim: a, path: /a/../b}]}\n" >bad.yaml &&
	exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:3:.*without .\.\.." &&
	printf "version: 1\nqueues:\n- {name: train, volumes: [{host_path: /a, path: /a}]}\n" >bad.yaml &&
	exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:3:.*privileged"
'

test_expect_success 'a script submitted below a mounted path runs there, with the data, and writes its output there' '
	printf "#!/bin/sh\n#SBATCH -p train --gres=gpu:1 -o out-%%j.txt\necho hello\n" >data/ann/job.sh &&
	id=$(cd data/ann && gpuq submit --parsable --annotation=gpuq.test/hang=true job.sh 2>"$OLDPWD/warned") && ! grep "output files" warned &&
	job_becomes "$id" RUNNING 120 && test "$(container "$id" "main[\"workingDir\"]")" = "$PWD/data/ann" &&
	test "$(container "$id" "[m[\"subPath\"] for m in main[\"volumeMounts\"] if m[\"mountPath\"] == \"$PWD/data\"][0]")" = "home/$(id -un)" &&
	test "$(container "$id" "[v[\"nfs\"][\"server\"] for v in volumes if \"nfs\" in v][0]")" = files.example.org &&
	test "$(container "$id" "main[\"command\"][0]")" = /bin/sh &&
	container "$id" "main[\"command\"][2]" >out && says out "exec .* >.*/data/ann/out-$id.txt. 2>&1$" &&
	test "$(container "$id" "main[\"image\"]")" = "$kube_image" && gpuq cancel "$id"
'

test_expect_success 'the flavor wins over the queue, the queue over the site, the job over all' '
	printf "command: [sleep, \"1\"]\nqueue: train\ngpus: 1\nenv: {QUEUE_SAYS: mine}\n" >job.yaml &&
	id=$(submit --annotation=gpuq.test/hang=true job.yaml) && job_becomes "$id" RUNNING 120 &&
	test "$(container "$id" "env[\"DATA\"] + env[\"PIP_INDEX\"] + env[\"QUEUE_SAYS\"]")" = flavorsitemine &&
	test "$(container "$id" "main[\"workingDir\"]")" = /tmp && gpuq status -o yaml "$id" >job && ! grep datasets job && gpuq cancel "$id"
'

test_expect_success 'output that is on no volume is told; a claim of the queue that is missing is waited for' '
	gpuq submit --dry-run -p train -o /elsewhere/out job.yaml >out 2>err && says err "output files that are not on a volume" &&
	printf "version: 1\nqueues:\n- {name: train, volumes: [{claim: nowhere, path: /x}]}\n" >more.yaml && gpuq apply -f more.yaml &&
	id=$(submit job.yaml) && wait_for 60 job_is "$id" reason VolumeNotFound && gpuq cancel "$id" && job_becomes "$id" CANCELLED
'

test_expect_success 'nothing was overcommitted' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
