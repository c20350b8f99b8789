#!/bin/sh
test_description='--gres of names that the site maps to devices and sizes; requests that the named nodes cannot hold are told at submit'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# takes KEYS: a job that hangs
takes() { echo "{command: [a], image: test, annotations: {gpuq.test/hang: \"true\"}, $1}" >t.yaml && gpuq submit --parsable t.yaml; }

# runs ID NODE LIMITS
runs() {
	job_becomes "$1" RUNNING && job_is "$1" pods.0.node "$2" && { test "$(limits "$1")" = "$3" || { limits "$1"; return 1; }; }
}

refused() { # TEXT OPTIONS
	text=$1 && shift && test_must_fail gpuq submit --image test "$@" job.sh 2>why && grep "$text" why
}

test_expect_success 'a node of FPGAs, one of GPUs, one of renamed replicas' '
	printf "#!/bin/sh\n#GPUQ --code none\nsleep 1\n" >job.sh && start_fake --nodes 3 --gpus 0 && offers node-0000 "\"acme.io/fpga\": \"4\"" &&
	offers node-0001 "\"nvidia.com/gpu\": \"4\", \"rdma/hca\": \"1\", \"hugepages-2Mi\": \"8Mi\"" && offers node-0002 "\"nvidia.com/gpu.shared\": \"8\"" \
		"\"nvidia.com/gpu.replicas\": \"4\", \"nvidia.com/gpu.sharing-strategy\": \"mps\"" && start_fake_gpuqd && cat >site.yaml <<-\END &&
	version: 1
	flavors: [{name: foo, resource: acme.io/fpga}]
	gres: {fpga: acme.io/fpga, huge: hugepages-2Mi, sh: nvidia.com/gpu.shared, nic: rdma/hca}
	END
	gpuq apply -f site.yaml && wait_for 60 node_is node-0000 flavor foo && wait_for 60 node_is node-0001 gpus 4 && wait_for 60 node_is node-0002 gpus 2
'

test_expect_success 'devices by such a name have no CPUs that nobody asked for; other resources have one, and what is asked is had' '
	a=$(fake_job hang=true --gres=fpga:1) && b=$(takes "resources: {acme.io/fpga: 1}") && c=$(fake_job hang=true --gres=nic:1) && d=$(takes "cpus: 1, resources: {acme.io/fpga: 1}") &&
	runs "$a" node-0000 "{\"acme.io/fpga\": \"1\"}" && runs "$b" node-0000 "{\"acme.io/fpga\": \"1\"}" && runs "$c" node-0001 "{\"cpu\": \"1\", \"rdma/hca\": \"1\"}" &&
	runs "$d" node-0000 "{\"acme.io/fpga\": \"1\", \"cpu\": \"1\"}" && gpuq status "$c" -o yaml | grep "cpus: 1" && gpuq status "$a" -o yaml >spec && ! grep "cpus: 1" spec && all_gone
'

test_expect_success 'a replica is had by such a name' '
	e=$(fake_job hang=true --gres=sh:1) && runs "$e" node-0002 "{\"nvidia.com/gpu.shared\": \"1\"}" && wait_for 60 node_is node-0002 free_gpus 1.75 &&
	refused "several replicas may be the same device" --gres=sh:2 && all_gone
'

test_expect_success 'two kinds of device are refused, also of equal numbers' '
	refused "expected one kind of device in a pod: fpga, which is acme.io/fpga, is requested in addition to gpus" --gres=fpga:1,gpu:1 &&
	refused "expected one kind of device in a pod" --gres=fpga:1 --gpus-per-node=1 &&
	echo "{command: [a], image: test, gpus: 2, resources: {acme.io/fpga: 2}}" >twice.yaml && gpuq submit --dry-run twice.yaml >/dev/null
'

test_expect_success 'sizes are checked as those of a job file' '
	refused "huge, which is hugepages-2Mi: expected a multiple of 2Mi" --gres=huge:1 && f=$(fake_job hang=true --gres=huge:4M) &&
	runs "$f" node-0001 "{\"cpu\": \"1\", \"hugepages-2Mi\": \"4194304\"}" && all_gone
'

test_expect_success 'names that pods cannot request are refused in the site' '
	echo "{version: 1, gres: {k: a.kubernetes.io/x}}" >bad.yaml && test_must_fail gpuq apply -f bad.yaml 2>why && grep "bad.yaml:1:.*gres.k: expected an extended resource" why
'

test_expect_success 'what the named nodes cannot hold is told at submit' '
	told() { # TEXT KEYS
		echo "{command: [a], image: test, $2}" >w.yaml && gpuq submit --dry-run w.yaml 2>warned >/dev/null && grep "no node of those that it asks for can hold a pod of this job ($1" warned
	} &&
	silent() { echo "{command: [a], image: test, $1}" >w.yaml && gpuq submit --dry-run w.yaml 2>warned >/dev/null && ! grep "can hold" warned; } &&
	told "5 GPUs requested, 4 on the largest node" "gpus: 5, nodes: [node-0001]" && told "1 rdma/hca requested, 0 on" "resources: {rdma/hca: 1}, nodes: [node-0000, node-0002]" &&
	told "1 rdma/hca requested, 0 on" "resources: {rdma/hca: 1}, exclude: [node-0001]" && told "5 GPUs requested, 4" "gpus: 5, node_selector: {kubernetes.io/hostname: node-0001}" &&
	told "none is of foo" "gpus: 1, flavor: foo, nodes: [node-0001]" &&
	silent "gpus: 4, nodes: [node-0001]" && silent "resources: {rdma/hca: 1}" && silent "gpus: 1, flavor: foo, exclude: [node-0001]"
'

no_harm_was_done

test_done
