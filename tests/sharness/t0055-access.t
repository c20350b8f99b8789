#!/bin/sh
test_description='only its owner decides what runs in a job: owners, managers and operators on the local cluster'
. "$(dirname "$0")/lib.sh"

# User bin owns the job, nobody manages its queue, games is an operator, daemon has no part in it.
by() {
	by_user=$1
	shift
	as "$by_user" env HOME=/ "$@"
}

# no_entry USER: refused as one who sees the job, with no trace of a command that ran
no_entry() {
	rm -f entered
	exits 249 by "$1" gpuq exec "$id" -- touch "$PWD/entered" && says err "only its owner may run programs" &&
	exits 1 by "$1" gpuq attach "$id" && says err "only its owner may attach" &&
	exits 1 by "$1" gpuq port-forward "$id" :80 && says err "only its owner may forward" && test ! -e entered
}

# enters USER: runs a program as the owner of the job
enters() {
	exits 0 by "$1" gpuq exec "$id" -- id -un && test "$(cat out)" = bin
}

# changed KEY: the last change of job $held, as its events show it
changed() {
	gpuq events "$held" --json | grep "\"event\":\"job.updated\"" | tail -n 1 | json changes
}

if ! test_have_prereq ROOT; then
	skip_all='several users take root'
	test_done
fi

test_expect_success 'a daemon, its users, and a job of each kind' '
	mkdir -m 777 open && printf "operators: [games]\n" >gpuqd.yaml && cat >site.yaml <<-\END &&
	version: 1
	queues:
	- {name: team, managers: [nobody]}
	- {name: twin, managers: [nobody]}
	- {name: apart, managers: [nobody], namespace: elsewhere}
	- {name: strange}
	END
	start_gpuqd --config "$PWD/gpuqd.yaml" --site "$PWD/site.yaml" && open_to_all &&
	id=$(printf "command: [sleep, 1000]\ncpus: 0\nqueue: team\nchdir: /\n" | by bin gpuq submit --parsable -) &&
	held=$(printf "command: [id]\ncpus: 0\nqueue: team\nchdir: /\noutput: $PWD/open/out\nhold: true\n" | by bin gpuq submit --parsable -) &&
	root=$(printf "command: [sleep, 1000]\ncpus: 0\nqueue: team\nhold: true\n" | gpuq submit --parsable -) &&
	job_becomes "$id" RUNNING
'

test_expect_success 'the owner enters; for a stranger the job is somebody else s' '
	enters bin && exits 249 by daemon gpuq exec "$id" -- true && says err "another user" &&
	exits 1 by daemon gpuq attach "$id" && says err "another user" &&
	exits 1 by daemon gpuq port-forward "$id" :80 && says err "another user" &&
	exits 1 by daemon gpuq logs "$id" && exits 1 by daemon gpuq cancel "$id" && exits 1 by daemon gpuq update "$id" nice=1
'

test_expect_success 'a manager of the queue does not enter; nor does an operator' '
	no_entry nobody && no_entry games && says err "operators_act_as_user"
'

test_expect_success 'they read its output, and signal it' '
	exits 0 by nobody gpuq logs "$id" && exits 0 by games gpuq logs "$id" && exits 0 by nobody gpuq cancel -s CONT "$id"
'

test_expect_success 'gpuqd s own user enters' '
	exits 0 gpuq exec "$id" -- id -un && test "$(cat out)" = bin
'

test_expect_success 'what runs, and where reports of it go, is not for a manager to change, nor for an operator' '
	for user in nobody games; do
		for set in command="[/bin/sh, -c, id]" args="[x]" env="{A: b}" chdir=/tmp output=/etc/x error=/etc/x input=/etc/shadow \
			append=true stdin=true tty=true script_args="[x]" slurm_env=true image=evil workdir=/ volumes="[{host_path: /, path: /x}]" \
			labels="{a: b}" annotations="{a: b}" name=.profile ntasks=2 groups="[{name: main, command: [id]}]" namespace=x \
			notify="[end]" mail_user=eve mail_type="[END]"; do
			exits 1 by "$user" gpuq update "$held" "$set" && says err "${set%%=*}: only the owner of the job may change it" || return 1
			exits 1 by "$user" gpuq update --dry-run "$held" "$set" || return 1
		done
	done &&
	exits 1 by nobody gpuq update "$root" command="[id]" && exits 1 by games gpuq update "$root" command="[id]" &&
	exits 1 by nobody gpuq update "$held" nice=1 command="[id]" && job_is "$held" nice 0
'

test_expect_success 'limits, order and what it takes are theirs' '
	exits 0 by nobody gpuq update "$held" time=2h nice=-5 gpus=1 comment=ours deadline=now+1d retry=2 cpus=2 account=lab &&
	job_is "$held" time_limit_s 7200 && job_is "$held" nice -5 && job_is "$held" gpus 1 &&
	exits 0 by games gpuq update "$held" priority=7 && exits 1 by nobody gpuq update "$held" priority=8 && says err "operators" &&
	exits 1 by bin gpuq update "$held" priority=8 && exits 0 by nobody gpuq update "$held" gpus=0 cpus=0 && exits 0 by nobody gpuq update --top "$held" &&
	test_must_fail by nobody gpuq update "$held" nicee=x
'

test_expect_success 'a job moves between queues whose pods run alike, with its nice only where its manager has a say' '
	exits 0 by nobody gpuq update "$held" queue=twin && exits 0 by nobody gpuq update "$held" queue=team &&
	exits 1 by nobody gpuq update "$held" queue=apart && says err "queue: only the job.s owner may move it" &&
	exits 1 by nobody gpuq update "$held" queue=strange && says err "nice: only managers" &&
	exits 0 by nobody gpuq update "$held" queue=strange nice=0 && exits 1 by nobody gpuq update "$held" queue=team &&
	exits 0 by bin gpuq update "$held" queue=apart && exits 0 by bin gpuq update "$held" queue=team
'

test_expect_success 'what its owner changes is done, and what may be secret is not told to all' '
	exits 0 by bin gpuq update "$held" env="{TOKEN: s3cr3t}" command="[/bin/sh, -c, id -un]" time=3h &&
	test "$(changed)" = "env command time=3h" && by daemon gpuq events "$held" --json >out && ! grep s3cr3t out
'

test_expect_success 'it runs as its owner said' '
	exits 0 by nobody gpuq release "$held" && job_becomes "$held" COMPLETED && test "$(cat open/out)" = bin
'

test_expect_success 'a manager changes neither the image of a queue nor what its pods run as' '
	exits 1 by nobody gpuq queues set team image=evil && says err "only an operator may change image" &&
	exits 0 by nobody gpuq queues set team default_time=1h && printf "version: 1\nqueues:\n- {name: low, parent: twin}\n- {name: high, parent: apart}\n" >q.yaml &&
	exits 0 gpuq apply -f q.yaml && exits 1 by nobody gpuq queues set low parent=apart && says err "only an operator may put it below queue apart" &&
	exits 0 gpuq queues set low parent=apart && exits 0 gpuq queues set team image=good
'

test_expect_success 'operators_act_as_user lets operators in, from the next SIGHUP on; managers still not' '
	printf "operators: [games]\noperators_act_as_user: true\n" >gpuqd.yaml && kill -HUP "$gpuqd_pid" && wait_for 60 enters games &&
	held=$(printf "command: [id]\ncpus: 0\nqueue: team\nchdir: /\nhold: true\n" | by bin gpuq submit --parsable -) &&
	exits 0 by games gpuq update "$held" command="[id, -u]" && no_entry nobody && exits 1 by nobody gpuq update "$held" command="[id]" &&
	printf "operators: [games]\n" >gpuqd.yaml && kill -HUP "$gpuqd_pid" && wait_for 60 no_entry games
'

test_expect_success 'a job that has ended, and one of an array, are kept as well' '
	gpuq cancel "$id" && job_becomes "$id" CANCELLED && exits 249 by nobody gpuq exec "$id" -- true && says err "only its owner" &&
	id=$(printf "command: [sleep, 1000]\ncpus: 0\nqueue: team\nchdir: /\narray: 0-1\n" | by bin gpuq submit --parsable -) && job_becomes "${id}_0" RUNNING &&
	exits 249 by nobody gpuq exec "${id}_0" -- true && says err "only its owner" && enters_array=$(by bin gpuq exec "${id}_0" -- id -un) &&
	test "$enters_array" = bin && exits 0 by nobody gpuq cancel "$id"
'

test_expect_success 'end' '
	stop_gpuqd
'

test_done
