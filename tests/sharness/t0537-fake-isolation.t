#!/bin/sh
test_description='what keeps the devices of a job apart from other pods: shown, demanded, charged'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

# refused TEXT [option...]: a job is refused in these words
refused() {
	refused_text=$1
	shift
	! fake_job hang=true "$@" 2>refusal && grep -e "$refused_text" refusal || { cat refusal; return 1; }
}

# rows ISOLATION FILE: how many of a report have it
rows() {
	grep -c "\"isolation\":$1[,}]" "$2"
}

test_expect_success 'a node of each way of sharing' '
	start_fake --nodes 4 --gpus 2 &&
	offers node-0000 "\"nvidia.com/gpu\": \"4\"" "\"nvidia.com/gpu.replicas\": \"2\", \"nvidia.com/gpu.sharing-strategy\": \"time-slicing\"" &&
	offers node-0001 "\"nvidia.com/gpu\": \"4\"" "\"nvidia.com/gpu.replicas\": \"2\", \"nvidia.com/gpu.sharing-strategy\": \"mps\"" &&
	offers node-0002 "\"nvidia.com/gpu\": null, \"nvidia.com/mig-1g.5gb\": \"7\"" "\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB\"" &&
	cat >site.yaml <<-END &&
	version: 1
	queues:
	- {name: default}
	- {name: safe, isolation: mps, reclaim: never}
	- {name: strict, parent: safe, isolation: exclusive}
	- {name: lax, parent: safe, isolation: none}
	END
	start_fake_gpuqd --site site.yaml && wait_for 60 node_is node-0001 sharing mps && wait_for 60 node_is node-0002 devices.0.state cut &&
	node_is node-0000 devices.0.isolation time-slice && node_is node-0001 devices.1.isolation mps &&
	node_is node-0002 devices.0.isolation mig && node_is node-0003 devices.0.isolation exclusive &&
	gpuq nodes -h -o NODE,GPU,ISOLATION >text && grep "node-0003 *1 *exclusive" text
'

test_expect_success 'a node with whole devices beside instances shares by mig, and takes both' '
	node_is node-0003 sharing whole && offers node-0003 "\"nvidia.com/mig-1g.5gb\": \"7\"" "\"nvidia.com/gpu.product\": \"NVIDIA-A100-SXM4-40GB\"" &&
	wait_for 60 node_is node-0003 mig.0.count 7 && node_is node-0003 sharing mig && gpuq nodes -h -o SHARING node-0003 >text && grep mig text &&
	{ gpuq doctor >out || :; } && grep -q "whole devices: usable on node-0003" out && grep -q "mig: usable on node-0002, node-0003" out &&
	for ask in "-g 2" "--mig 1g.5gb"; do
		j=$(fake_job run=100ms $ask -w node-0003) && job_becomes "$j" COMPLETED || return 1
	done && offers node-0003 "\"nvidia.com/mig-1g.5gb\": null" "\"nvidia.com/gpu.product\": null" && wait_for 60 node_is node-0003 sharing whole
'


test_expect_success 'what a kind of request never has is refused, and what to request instead' '
	refused "the job demands isolation mig, and a part of a device has at most mps: request a MIG instance (mig: 1g.10gb) or whole devices" --isolation mig -g 0.5 &&
	refused "the job demands isolation exclusive, and a MIG instance has at most mig: request whole devices" --isolation exclusive --mig 1g.5gb &&
	refused "its queue demands isolation exclusive, and a part of a device has at most mps: request whole devices" -p strict -g 0.5 &&
	refused "isolation: expected exclusive, mig, mps, memory-limited, time-slice or none, not .hard." --isolation hard &&
	echo "{command: [a], image: test, gpus: 1, isolation: hard}" >bad.yaml && test_must_fail gpuq submit bad.yaml 2>refusal &&
	grep "bad.yaml:1:.*isolation" refusal
'

test_expect_success 'jobs go where their devices are isolated as they, or their queue, demand' '
	m=$(fake_job hang=true -g 0.5 --isolation mps) && l=$(fake_job hang=true -g 0.5 -p lax) &&
	t=$(fake_job hang=true -g 0.5 -w node-0000) && i=$(fake_job hang=true --mig 1g.5gb --isolation mig) &&
	w=$(fake_job hang=true -g 1 --isolation exclusive) && b=$(fake_job hang=true -g 0.5 -w node-0000 --isolation mps) &&
	for job in "$m=mps" "$l=mps" "$t=time-slice" "$i=mig" "$w=exclusive"; do
		job_becomes "${job%=*}" RUNNING && job_is "${job%=*}" isolation "${job#*=}" && job_is "${job%=*}" pods.0.isolation "${job#*=}" || return 1
	done && job_is "$m" pods.0.node node-0001 && job_is "$l" pods.0.node node-0001 && job_is "$w" pods.0.node node-0003 &&
	job_is "$b" isolation null && gpuq status "$m" >text && grep "^Isolation  *mps$" text &&
	gpuq queue -h -o JOBID,ISOLATION -j "$m" >text && grep mps text
'

test_expect_success 'queues show what they demand, also what a parent does' '
	gpuq queues -h -o NAME,ISOLATION >text && grep "^default  *-$" text && grep "^safe  *mps$" text && grep "^strict  *exclusive$" text &&
	grep "^lax  *mps$" text && test "$(gpuq queues --json lax | json isolation)" = mps && test "$(gpuq queues --json default | json isolation)" = null
'

test_expect_success 'a node that gives less is not eligible, and the reason names it' '
	job_is "$b" reasons.0.code Unsatisfiable && job_is "$b" reasons.0.object "isolation mps" &&
	gpuq why "$b" >text && grep "isolation mps" text && gpuq update "$b" isolation=none && job_becomes "$b" RUNNING && job_is "$b" isolation time-slice
'

test_expect_success 'a queue that comes to demand more keeps its pending jobs from weaker nodes; what runs goes on' '
	gpuq cancel "$b" && job_becomes "$b" CANCELLED && gpuq drain node-0000 &&
	p=$(fake_job hang=true -g 0.5 -w node-0000) && wait_for 60 job_is "$p" reason NodesUnavailable &&
	sed -i "s/- {name: default}/- {name: default, isolation: memory-limited}/" site.yaml && gpuq apply -f site.yaml && gpuq resume node-0000 &&
	wait_for 60 job_is "$p" reasons.0.object "isolation memory-limited" && job_is "$m" state RUNNING &&
	gpuq export >exported && grep "isolation: memory-limited" exported && gpuq apply -f exported --dry-run >text && gpuq cancel "$p"
'

test_expect_success 'where the nodes give less the demand is refused; one of them is enough for it to be accepted' '
	gpuq cancel "$m" "$l" && job_becomes "$m" CANCELLED && job_becomes "$l" CANCELLED &&
	api PATCH /nodes/node-0001 "{\"metadata\": {\"labels\": {\"nvidia.com/gpu.sharing-strategy\": \"time-slicing\"}}}" >/dev/null &&
	wait_for 60 node_is node-0001 sharing time-slicing &&
	refused "its queue demands isolation mps, and no node gives a part of a device more than time-slice" -p lax -g 0.5 &&
	sed -i "s/^queues:/pools: [{name: p, selector: {kind: later}, sharing: mps}]\nqueues:/" site.yaml && gpuq apply -f site.yaml &&
	p=$(fake_job hang=true -g 0.5 -p lax) && wait_for 60 job_is "$p" reasons.0.object "isolation mps" && gpuq cancel "$p"
'

test_expect_success 'the report tells them apart: of running and of ended pods, of parts of days, after a restart' '
	wait_for 60 eval "gpuq report --json --isolation mig | grep \"mig-1g.5gb.:[1-9]\"" && gpuq cancel "$i" && job_becomes "$i" CANCELLED &&
	gpuq report --json --by queue,isolation >r && cat r &&
	for word in time-slice mig exclusive; do test "$(rows "\"$word\"" r)" -ge 1 || return 1; done &&
	kill_gpuqd && start_fake_gpuqd && gpuq report --json --by isolation --since "$(date -u +%FT00:00:00Z)" >r && cat r &&
	test "$(rows "\"mig\"" r)" = 1 && test "$(rows "\"exclusive\"" r)" = 1 &&
	gpuq report --json --isolation mig,mps >r && test "$(grep -c gpu_seconds r)" -ge 1 && gpuq report -h --by isolation --isolation mig >text &&
	test "$(wc -l <text)" = 1 && grep "^mig " text && test_must_fail gpuq report --isolation hard 2>refusal && grep "expected exclusive" refusal &&
	gpuq report --json >r && ! grep isolation r &&
	test_expect_code 2 gpuq report -o USER,isolation:9,GPU_HOURS 2>refusal && grep "rows are not grouped by it: expected --by user,queue,flavor,isolation;" refusal &&
	test_expect_code 2 gpuq report -o +DAY --by user 2>refusal && grep "expected --by user,day;" refusal && gpuq report -h -o ISOLATION --by isolation >text && grep "^mig" text
'

test_expect_success 'replicas that the site calls whole devices are no more isolated for that' '
	gpuq cancel "$w" "$t" && job_becomes "$w" CANCELLED && job_becomes "$t" CANCELLED && gpuq drain node-0003 &&
	sed -i "s/sharing: mps}/sharing: mps}, {name: as, selector: {gpus: as}, sharing: time-slicing, replicas_as_gpus: true}/" site.yaml && gpuq apply -f site.yaml &&
	api PATCH /nodes/node-0000 "{\"metadata\": {\"labels\": {\"gpus\": \"as\"}}}" >/dev/null && wait_for 60 node_is node-0000 gpus 4 && node_is node-0000 state idle && node_is node-0000 note null &&
	sed -i "s/, isolation: memory-limited//" site.yaml && gpuq apply --prune -f site.yaml 2>&1 | cat && node_is node-0000 devices.0.isolation time-slice &&
	r=$(fake_job hang=true -g 1) && job_becomes "$r" RUNNING && job_is "$r" isolation time-slice &&
	x=$(fake_job hang=true -g 1 --isolation exclusive -w node-0000) && wait_for 60 job_is "$x" reasons.0.object "isolation exclusive" && all_gone
'

no_harm_was_done

test_done
