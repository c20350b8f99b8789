#!/bin/sh
test_description='without flavors in the site a job names a kind of device by its product or short name'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# product NODE NAME MEMORY_MIB
product() {
	offers "$1" '"nvidia.com/gpu": "4"' "\"nvidia.com/gpu.product\": \"$2\", \"nvidia.com/gpu.memory\": \"$3\"" &&
		wait_for 60 node_is "$1" devices.0.product "$2"
}

# on ID NODE: its pod is there
on() {
	wait_for 60 eval "[ \"\$(job $1 pods.0.node)\" = $2 ]"
}

test_expect_success 'nodes of several kinds' '
	start_fake --nodes 5 && start_fake_gpuqd && wait_for 60 node_is node-0004 gpus 4 &&
	product node-0000 NVIDIA-A100-SXM4-40GB 40960 && product node-0001 NVIDIA-A100-SXM4-80GB 81920 &&
	product node-0002 Tesla-T4 15360 && offers node-0003 "\"nvidia.com/gpu\": \"4\"" "\"nvidia.com/gpu.product\": null,
		\"nvidia.com/gpu.memory\": null, \"cloud.google.com/gke-accelerator\": \"nvidia-l4\"" &&
	wait_for 60 eval "gpuq nodes --json | grep -q gke-accelerator"
'

test_expect_success 'only nodes of the kind are used, by short name, product and label of a cloud, without case' '
	for want in t4=node-0002 T4=node-0002 a100-80g=node-0001 A100-40GB=node-0000 l4=node-0003 NVIDIA-H100-80GB-HBM3=node-0004 h100=node-0004; do
		id=$(fake_job hang=true -g 1 --flavor "${want%=*}" 2>err) && test ! -s err && on "$id" "${want#*=}" || { echo "$want"; return 1; }
	done &&
	printf "#!/bin/sh\n#SBATCH --gres=gpu:a100-80gb:2\ntrue\n" >typed.sh && id=$(gpuq submit --parsable --image test typed.sh) && on "$id" node-0001 && all_gone
'

test_expect_success 'a kind that is full is waited for' '
	a=$(fake_job hang=true -g 4 --flavor t4) && on "$a" node-0002 && b=$(fake_job hang=true -g 1 --flavor t4) &&
	c=$(fake_job hang=true -g 1 --flavor "t4,l4") && on "$c" node-0003 && job_is "$b" state PENDING && gpuq cancel "$a" && on "$b" node-0002 && all_gone
'

test_expect_success 'earlier names are preferred' '
	for order in "l4,h100=node-0003" "h100,l4=node-0004"; do
		id=$(fake_job hang=true -g 1 --flavor "${order%=*}") && on "$id" "${order#*=}" || return 1
	done && all_gone
'

test_expect_success 'a name that means several kinds is told, and any of them serves' '
	id=$(fake_job hang=true -g 4 --flavor a100 2>err) &&
	says err "a100 is a100-40g .1 node. or a100-80g .1 node.: the job gets any of them; name one" &&
	other=$(fake_job hang=true -g 4 --flavor a100) && job_becomes "$id" RUNNING && job_becomes "$other" RUNNING &&
	gpuq cancel "$id" "$other"
'

test_expect_success 'a kind that no node has is told, with those that are there' '
	id=$(fake_job hang=true -g 1 --flavor mi300x 2>err) && says err "no node has devices of flavor mi300x .there are: .*a100-40g.*t4" &&
	fake_job hang=true -g 1 --flavor a100-8g 2>err && says err "did you mean a100-80g" &&
	job_is "$id" state PENDING && fake_job hang=true -g 1 2>err && test ! -s err && all_gone
'

test_expect_success 'what no node of the kind can hold is told, also where nodes of other kinds could' '
	offers node-0004 '\''"nvidia.com/gpu": "8"'\'' '\''"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"'\'' && wait_for 60 node_is node-0004 gpus 8 &&
	id=$(fake_job hang=true -g 5 --flavor t4 2>err) && says err "no node can hold a pod of this job .5 GPUs requested, 4 on the largest node of t4.: it is pending" &&
	fake_job hang=true -g 5 --flavor t4,a100-40g 2>err && says err "4 on the largest node of t4 or a100-40g" &&
	fake_job hang=true -g 5 --flavor t4,h100 2>err && test_must_be_empty err && fake_job hang=true -g 5 2>err && test_must_be_empty err && gpuq cancel --me
'

test_expect_success 'whole devices are none to share: a request for memory is told, and why' '
	id=$(fake_job hang=true -g 1 --flavor t4 --gpu-memory 3Gi 2>err) && says err "requested by gpu_memory, and no node serves such parts of t4.: it is pending" &&
	job_is "$id" reason Unsatisfiable && fake_job hang=true -g 1 --gpu-memory 3Gi 2>err && says err "no node serves such parts.: it is pending" && gpuq cancel --me
'

test_expect_success 'flavors of the site mean what the site has them match' '
	printf "version: 1\nflavors: [{name: big, match: {product: \"*A100*80GB\"}}]\n" >f.yaml && gpuq apply -f f.yaml &&
	id=$(fake_job hang=true -g 1 --flavor big) && on "$id" node-0001 && fake_job hang=true -g 1 --flavor t4 2>err && says err "no node has devices of flavor t4" && all_gone
'

test_expect_success 'a pool without a flavor says nothing of kinds' '
	printf "version: 1\npools: [{name: any, selector: {x: y}}]\n" | gpuq apply -f - &&
	fake_job hang=true -g 1 --flavor t4 2>err && says err "no node has devices of flavor t4" &&
	id=$(fake_job hang=true -g 9 --flavor big --time 1h 2>err) && says err "9 GPUs requested, 4 on the largest node of big" &&
	job_is "$id" state PENDING && gpuq cancel --me && id=$(fake_job hang=true -g 1 --flavor big --time 1h) && on "$id" node-0001 && all_gone
'

test_expect_success 'on this machine the driver or the inventory has the product' '
	stop_gpuqd && stop_fake && rm -rf state && start_gpuqd &&
	printf "version: 1\ninventory: [{selector: {}, product: \"NVIDIA A100-SXM4-40GB\", memory: 40Gi}]\n" >i.yaml && gpuq apply -f i.yaml &&
	id=$(sh_job "true" -g 1 --flavor a100) && gpuq wait "$id" && job_is "$id" state COMPLETED &&
	id=$(sh_job "true" -g 1 --flavor a100-80g 2>err) && says err "did you mean a100-40g" && job_is "$id" state PENDING && gpuq cancel "$id" && stop_gpuqd
'

test_done
