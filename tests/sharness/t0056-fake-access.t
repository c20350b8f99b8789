#!/bin/sh
test_description='only its owner decides what runs in a job: sessions, images and namespaces on the fake apiserver'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# User bin owns the job, nobody manages its queue, games is an operator.
by() {
	by_user=$1
	shift
	as "$by_user" env HOME=/ "$@"
}

# job_of NAMESPACE IMAGE: its pod is there, with that image
job_of() {
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/$1/pods?labelSelector=gpuq.io/job=$held" >pods.out &&
	test "$(json items.0.spec.containers.0.image <pods.out)" = "$2"
}

if ! test_have_prereq ROOT; then
	skip_all='several users take root'
	test_done
fi

test_expect_success 'a daemon, its users and their jobs' '
	printf "operators: [games]\n" >gpuqd.yaml && cat >site.yaml <<-\END &&
	version: 1
	queues:
	- {name: team, managers: [nobody], namespace: default, image: good}
	- {name: like, managers: [nobody], namespace: default, image: good}
	- {name: space, managers: [nobody], namespace: kube-public, image: good}
	- {name: account, managers: [nobody], namespace: default, image: good, service_account: strong}
	- {name: image, managers: [nobody], namespace: default, image: evil}
	- {name: secret, managers: [nobody], namespace: default, image: good, image_pull_secrets: [x]}
	- {name: policy, managers: [nobody], namespace: default, image: good, pod_policy: privileged}
	END
	start_fake && start_fake_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml" && open_to_all &&
	id=$(echo "{command: [a], image: test, queue: team, annotations: {gpuq.test/hang: \"true\"}}" | by bin gpuq submit --parsable -) &&
	held=$(echo "{command: [a], queue: team, hold: true}" | by bin gpuq submit --parsable -) && job_becomes "$id" RUNNING
'

test_expect_success 'a program, a terminal and a port are the owner s' '
	exits 7 by bin gpuq exec "$id" -- exit 7 &&
	for user in nobody games; do
		exits 249 by "$user" gpuq exec "$id" -- exit 7 && says err "only its owner may run programs" &&
		exits 1 by "$user" gpuq attach "$id" && says err "only its owner may attach" &&
		exits 1 by "$user" gpuq port-forward "$id" :80 && says err "only its owner may forward" || return 1
	done &&
	exits 249 by daemon gpuq exec "$id" -- exit 7 && says err "another user"
'

test_expect_success 'what runs, and what it reaches, is the owner s to change' '
	for user in nobody games; do
		for set in command="[b]" image=evil volumes="[{secret: x, path: /x}]" annotations="{a: b}" labels="{a: b}" workdir=/x; do
			exits 1 by "$user" gpuq update "$held" "$set" && says err "${set%%=*}: only the owner of the job may change it" || return 1
		done
	done
'

test_expect_success 'a manager moves a job only between queues whose pods run alike' '
	for queue in space account image secret policy; do
		exits 1 by nobody gpuq update "$held" queue=$queue && says err "queue: only the job.s owner may move it to queue $queue" || return 1
	done &&
	exits 1 by games gpuq update "$held" queue=space && exits 0 by nobody gpuq update "$held" queue=like &&
	exits 0 by bin gpuq update "$held" queue=space && exits 0 by bin gpuq update "$held" queue=team
'

test_expect_success 'nor does a manager change the image of a queue under the jobs in it' '
	exits 1 by nobody gpuq queues set team image=evil && says err "only an operator may change image" &&
	exits 0 by nobody gpuq release "$held" && job_becomes "$held" COMPLETED && job_of default good
'

test_expect_success 'with operators_act_as_user an operator enters, a manager does not' '
	printf "operators: [games]\noperators_act_as_user: true\n" >gpuqd.yaml && kill -HUP "$gpuqd_pid" &&
	wait_for 60 exits 7 by games gpuq exec "$id" -- exit 7 && exits 249 by nobody gpuq exec "$id" -- exit 7
'

no_harm_was_done
test_done
