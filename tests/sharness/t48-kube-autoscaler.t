#!/bin/sh
test_description='real control plane: pools that grow by an autoscaler which sees pods alone: placeholders, scale-in, kills'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/provision.sh"

autoscaler_rights=$test_source/etc/kubernetes/optional/autoscaler.yaml

# pool_site [KEYS]: one pool of an autoscaler, with these keys more
pool_site() {
	cat >site.yaml <<-END
		version: 1
		flavors: [{name: big}]
		queues: [{name: q}]
		pools:
		- name: big
		  flavor: big
		  selector: {pool: big}
		  provisioning: {kind: autoscaler, max_nodes: 3, min_idle: 3s, retry_base: 1s, retry_max: 4s,
		    machine: {gpus: 8, cpus: 8, memory: 64Gi, labels: {pool: big}}${1:+, $1}}
	END
}
pool_site "" && cluster_for_gpuqd

# ask LINES: a job of the pool that runs until it is told to end
ask() {
	fake_job "queue: q\ntime: 1h\n$1\n$(fate hang=true)"
}

# placeholders EXPR: of those that there are
placeholders() {
	kube list "gpuq-jobs/pods?labelSelector=gpuq.io/placeholder" "$1"
}

n_placeholders() {
	n_placeholders_got=$(placeholders metadata.name | grep -c .)
	[ "$n_placeholders_got" = "$1" ] || { echo "$n_placeholders_got placeholders, not $1"; return 1; }
}

n_nodes() {
	n_nodes_got=$(kube list nodes metadata.name | grep -c .)
	[ "$n_nodes_got" = "$1" ] || { echo "$n_nodes_got nodes, not $1"; return 1; }
}

unmet() {
	gpuq status --json >unmet.out && [ "$(json unmet_nodes.big <unmet.out)" = "$1" ]
}

test_expect_success 'without the rights a job waits, says why, and doctor names what is missing' '
	printf "finished_pod_keep: 1s\n" >gpuqd.yaml && start_kube_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml" &&
	a=$(ask "gpus: 8") && job_becomes "$a" PROVISIONING 60 && wait_for 60 eval "job $a provisioning.message | grep -q PriorityClass" &&
	{ gpuq doctor >out 2>&1 || :; } && says out "pools of an autoscaler: the account of gpuqd may not .*pods/status" &&
	says out "no PriorityClass gpuq-placeholder" && says out "optional/autoscaler.yaml" && n_placeholders 0 &&
	unmet 1 && gpuq cancel "$a" && unmet 0
'

test_expect_success 'with them there is a placeholder, which nobody binds, and which autoscalers see' '
	kube apply -f "$autoscaler_rights" && a=$(ask "gpus: 8") && job_becomes "$a" PROVISIONING 60 && wait_for 60 n_placeholders 1 &&
	wait_for 60 eval "placeholders status.conditions | grep -q Unschedulable" && placeholders status.conditions >out && says out PodScheduled &&
	placeholders spec.priority >out && test "$(cat out)" = -10 && test "$(placeholders spec.schedulerName)" = gpuq &&
	gpuq pools -h -o NAME,STATE,NODES,ASKED big >out && says out "^big *open *0 *1" && unmet 1 &&
	{ gpuq doctor >out 2>&1 || :; } && ! grep "autoscaler: the account" out && ! grep "no PriorityClass" out
'

test_expect_success 'one that others delete is made again; with the job it goes' '
	kube delete "gpuq-jobs/pods/$(placeholders metadata.name)" && wait_for 60 eval "placeholders status.conditions | grep -q Unschedulable" && n_placeholders 1 &&
	gpuq cancel "$a" && wait_for 60 n_placeholders 0
'

test_expect_success 'the autoscaler makes the node, the job runs there, its pod keeps it; idle, it goes' '
	autoscaler pods && a=$(ask "gpus: 8") && job_becomes "$a" RUNNING 90 && wait_for 60 n_placeholders 0 && n_nodes 1 &&
	grep "pod gpuq-.*-$a-ask.* gpuq-placeholder -10" scaler/log && test "$(pods_of "$a" | grep -c .)" = 1 &&
	pods_of "$a" metadata.annotations >out && says out "safe-to-evict\": \"false\"" && says out "do-not-disrupt\": \"true\"" &&
	kube list nodes metadata.annotations >out && says out "scale-down-disabled\": \"true\"" &&
	gpuq cancel "$a" && wait_for 60 n_nodes 0 && unmet 0
'

test_expect_success 'a gang gets all its nodes, and no more than max_nodes are asked for' '
	becomes nothing && gang=$(ask "pods: 3\ngpus: 8") && job_becomes "$gang" PROVISIONING 60 && wait_for 60 n_placeholders 3 &&
	more=$(ask "gpus: 8") && wait_for 60 eval "test \"\$(job $more reason)\" != null" && job_is "$more" state PENDING && n_placeholders 3 && unmet 3 &&
	becomes serve && job_becomes "$gang" RUNNING 90 && n_pods "$gang" 3 && wait_for 60 n_placeholders 0 && n_nodes 3 &&
	gpuq cancel "$gang" && job_becomes "$more" RUNNING 60 && gpuq cancel "$more" && wait_for 60 n_nodes 0 && none_twice
'

test_expect_success 'a node that stays is one of those of a gang, and the others come beside it' '
	pool_site "min_nodes: 1" && gpuq apply -f site.yaml && a=$(ask "gpus: 8") && job_becomes "$a" RUNNING 90 && gpuq cancel "$a" && job_becomes "$a" CANCELLED &&
	gang=$(ask "pods: 2\ngpus: 8") && job_becomes "$gang" RUNNING 90 && n_nodes 2 && wait_for 60 n_placeholders 0 &&
	pool_site && gpuq apply -f site.yaml && gpuq cancel "$gang" && wait_for 60 n_nodes 0
'

test_expect_success 'nodes with fewer devices than the machine: the job does not start there, its pool is left alone' '
	becomes half && a=$(ask "gpus: 8") && wait_for 60 grep "pool.closed.*pool=big" gpuqd.log && wait_for 60 n_placeholders 0 &&
	job_is "$a" state PENDING && gpuq cancel "$a" && becomes serve && wait_for 60 n_nodes 0
'

test_expect_success 'a node that is taken while a job was just placed there: the job starts on the next, and nothing is counted' '
	a=$(fake_job "queue: q\ntime: 1h\ngpus: 8\n$(fate start=30s hang=true)") && wait_for 90 n_pods "$a" 1 &&
	kube delete "nodes/$(pods_of "$a" spec.nodeName)" && wait_for 150 eval "test \$(job $a attempt) = 1" &&
	wait_for 90 n_pods "$a" 1 && gpuq cancel "$a" && wait_for 60 n_nodes 0 && wait_for 60 n_placeholders 0
'

test_expect_success 'placeholders: false makes none, and the figure tells how many nodes lack' '
	pool_site "placeholders: false, min_nodes: 1" && gpuq apply -f site.yaml && b=$(ask "pods: 2\ngpus: 8") && job_becomes "$b" PROVISIONING 60 &&
	wait_for 60 unmet 2 && n_placeholders 0 && gpuq pools --json big >out && test "$(json unmet_nodes <out)" = 2 &&
	fakenode add own[1-2] gpus=8 cpu=8 memory=64Gi label=pool=big &&
	job_becomes "$b" RUNNING 60 && unmet 0
'

test_expect_success 'as many as min_nodes stay when they are idle' '
	kept() { kube list nodes metadata.annotations | grep -c "scale-down-disabled"; } && wait_for 60 eval "test \$(kept) = 2" &&
	gpuq cancel "$b" && wait_for 60 eval "test \$(kept) = 1" && pool_site && gpuq apply -f site.yaml && wait_for 60 eval "test \$(kept) = 0" &&
	fakenode delete own1 &&
	fakenode delete own2 && wait_for 60 n_nodes 0
'

again() {
	start_kube_gpuqd --config "$PWD/gpuqd.yaml"
}
# killed_at PLACE [WHAT]: the daemon ends there while a gang gets its nodes, or is cancelled; its successor
# goes on, and no placeholder is made twice or stays
killed_at() {
	becomes "${2-serve}" && kill_gpuqd && GPUQ_FAILPOINT="$1=kill" && export GPUQ_FAILPOINT && again || return 1
	ask 'pods: 2\ngpus: 8' >submit.out 2>&1
	[ "${2-serve}" = serve ] || { wait_for 180 n_placeholders 2 && gpuq cancel --me; }
	wait_for 180 gpuqd_is_dead
	killed_status=$?
	unset GPUQ_FAILPOINT
	[ $killed_status = 0 ] && again || return 1
	if [ "${2-serve}" = serve ]; then
		# It may have ended before the submission was on disk.
		[ -n "$(gpuq queue -h -o JOBID)" ] || ask 'pods: 2\ngpus: 8' >submit.out
		killed_job=$(gpuq queue -h -o JOBID | tr -d ' ') && job_becomes "$killed_job" RUNNING 180 && n_pods "$killed_job" 2 &&
			gpuq cancel "$killed_job"
	fi &&
		wait_for 180 n_placeholders 0 && wait_for 180 n_nodes 0 && none_twice
}

grep -q "GPUQ_FAILPOINTS 1" "$test_build/config.h" && test_set_prereq FAILPOINTS

for step in ask.made placeholders.hold kube.placeholder kube.placeholder:2 kube.placeholder.answered kube.placeholder.mark \
	placeholders.asked placeholders.drop kube.placeholder.remove; do
	test_expect_success FAILPOINTS "killed at $step: none twice, none stays" "
		killed_at $step
	"
done
for step in placeholders.drop kube.placeholder.remove placeholders.dropped; do
	test_expect_success FAILPOINTS "killed at $step, when no job needs them: none stays" "
		killed_at $step nothing
	"
done

test_expect_success 'nothing was overcommitted' '
	nothing_was_overcommitted
'

test_done
