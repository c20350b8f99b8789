#!/bin/sh
test_description='a real kubelet and real containers: devices, output, exit codes, memory, grace'
. "$(dirname "$0")/lib.sh"
kube_cluster="--no-kwok --real-node"
. "$test_source/tests/sharness/kube-shared.sh"

test_expect_success 'start' '
	make_namespace && start_kube_gpuqd &&
	wait_for 60 eval "test \$(gpuq nodes --json | grep \"\\\"$KUBE_REAL_NODE\\\"\" | json free_gpus) = 4"
'

# container COMMANDS: a job of this shell text on the real node
container() {
	/usr/bin/python3 -c '
import json, sys
print(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}, "spec": {
  "restartPolicy": "Never",
  "terminationGracePeriodSeconds": 20, "containers": [{"name": "main", "image": "docker.io/local/busybox:1",
  "imagePullPolicy": "Never", "command": ["/bin/sh", "-c", sys.argv[1]],
  "resources": {"limits": json.loads(sys.argv[2]) or {}}}]}}))' "$1" "${2:-null}"
}

test_expect_success 'a container sees its devices, and its log and code come back' '
	container "echo devices=\$NVIDIA_VISIBLE_DEVICES; exit 7" "{\"nvidia.com/gpu\": 3}" >pod.json &&
	exits 7 gpuq submit --wait pod.json && last_result FAILED 7 &&
	gpuq logs "$(json id <result.json)" >out &&
	sed -n "s/^devices=//p" out | tr , "\n" | sort -u >got && test "$(grep -c gpu got)" = 3
'

test_expect_success 'run shows the output while it comes' '
	container "echo one; sleep 1; echo two" >pod.json && exits 0 gpuq run pod.json &&
	printf "one\ntwo\n" >want && test_cmp want out
'

test_expect_success 'out of memory is told from failure' '
	container "exec tail /dev/zero" "{\"memory\": \"32Mi\"}" >pod.json &&
	exits 137 gpuq submit --wait pod.json && says err "OUT_OF_MEMORY"
'

test_expect_success 'cancel lets it leave with grace' '
	container "trap \"echo leaving; exit 0\" TERM; echo waiting; while :; do sleep 0.1; done" >pod.json &&
	id=$(submit pod.json) && { gpuq logs -f "$id" >followed & follower=$!; } && wait_for 60 grep -q waiting followed &&
	gpuq cancel "$id" && job_becomes "$id" CANCELLED && wait "$follower" && says followed "^leaving$"
'

test_expect_success 'a script runs in a container' '
	printf "#!/bin/sh\n#GPUQ --image=docker.io/local/busybox:1 --gpus=1\necho args: \"\$@\"\n" >job.sh &&
	exits 0 gpuq run job.sh a "b c" && says out "^args: a b c$"
'

test_expect_success 'devices come back' '
	wait_for 30 eval "test \$(gpuq nodes --json | grep \"\\\"$KUBE_REAL_NODE\\\"\" | json free_gpus) = 4" && stop_gpuqd
'

test_done
