# instances.sh - MIG instances of a node: what it has of them, what gets them, what others took; sourced after fake.sh or kube.sh
#
# The same on every cluster: before it is sourced there are
#	$first		a node of four devices, beside another
#	$pods		the API path of gpuqd's pods, below /api/v1
#	api METHOD PATH [BODY]
#	begin, daemon	the cluster and gpuqd; gpuqd alone

# instances NODE: "PROFILE COUNT FREE" a line
instances() {
	gpuq nodes --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    n = json.loads(line)
    if n["name"] == sys.argv[1]:
        for m in n.get("mig", []): print(m["profile"], m["count"], m["free"])' "$1"
}

has_instances() {
	[ "$(instances "$first")" = "$1" ] || { echo "it has '$(instances "$first")', not '$1'"; return 1; }
}

# instance PROFILE hang|short: a job of one, until it is cancelled or for a moment; prints its id
instance() {
	case $2 in
	hang) instance_note="gpuq.test/hang: 'true'" ;;
	*) instance_note="gpuq.test/run: 300ms" ;;
	esac
	echo "{command: [a], image: test, mig: $1, annotations: {$instance_note}}" | submit -
}

test_expect_success 'a node with two instances beside its devices' '
	begin && api PATCH "/nodes/$first/status" \
		"{\"status\": {\"allocatable\": {\"nvidia.com/mig-1g.10gb\": \"2\"}, \"capacity\": {\"nvidia.com/mig-1g.10gb\": \"2\"}}}" >/dev/null &&
	wait_for 60 has_instances "1g.10gb 2 2" && test "$(free_gpus)" = 8.285
'

test_expect_success 'a job takes one where they are, and asks the device plugin for it by its name' '
	a=$(instance 1g.10gb hang) && job_becomes "$a" RUNNING && job_is "$a" pods.0.node "$first" &&
	has_instances "1g.10gb 2 1" && test "$(free_gpus)" = 8.142 &&
	api GET "$pods" >pods.out &&
	grep -q "\"nvidia.com/mig-1g.10gb\": *\"1\"" pods.out
'

test_expect_success 'a third waits until one is free; another profile is nowhere' '
	b=$(instance 1g.10gb hang) && job_becomes "$b" RUNNING && c=$(instance 1g.10gb short) &&
	wait_for 60 job_is "$c" reason Resources && has_instances "1g.10gb 2 0" &&
	d=$(instance 3g.40gb short 2>warned) && grep "no node can hold" warned && wait_for 60 job_is "$d" reason Unsatisfiable
'

test_expect_success 'the live state as a scenario has them as well' '
	gpuq export --scenario >now.yaml && "$test_build/gpuqd/gpuq-sim" run now.yaml >now.out && says now.out "running +$a +$first" &&
	says now.out "running +$b +$first" && says now.out "pending +$c +Resources 1g.10gb" && says now.out "pending +$d +Unsatisfiable" &&
	gpuq cancel "$a" && exits 0 gpuq wait "$c" && gpuq cancel "$b" "$d"
'

test_expect_success 'a restart finds who has which' '
	b=$(instance 1g.10gb hang) && job_becomes "$b" RUNNING && kill_gpuqd && daemon &&
	wait_for 60 has_instances "1g.10gb 2 1" && job_is "$b" state RUNNING && gpuq cancel "$b" &&
	wait_for 60 has_instances "1g.10gb 2 2"
'
