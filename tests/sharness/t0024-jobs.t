#!/bin/sh
test_description='what can be done to jobs: requeue, update, signals, leases, exit code 85'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	start_gpuqd
'

test_expect_success 'a requeued job starts again with its id, and uses up no retry' '
	id=$(sh_job "sleep 300" --no-requeue) && job_becomes "$id" RUNNING &&
	exits 254 gpuq requeue 999 &&
	gpuq requeue "$id" >out && says out "Requeued 1 job" &&
	wait_for 60 job_is "$id" attempt 1 && job_becomes "$id" RUNNING &&
	gpuq requeue --hold "$id" && job_becomes "$id" PENDING && wait_for 60 job_is "$id" reason HeldUser &&
	exits 1 gpuq requeue "$id" && says err "already pending" && gpuq cancel "$id"
'

test_expect_success 'a signal reaches the job and leaves it running' '
	cat >deaf.sh <<-\END &&
	#!/bin/sh
	trap "echo heard" USR1
	echo ready
	while :; do sleep 0.05; done
	END
	id=$(submit deaf.sh) && wait_for 60 eval "gpuq logs $id | grep ready" &&
	gpuq cancel -s USR1 "$id" && wait_for 60 eval "gpuq logs $id | grep heard" &&
	job_is "$id" state RUNNING && gpuq cancel "$id"
'

test_expect_success 'a waiting job can be described anew' '
	id=$(sh_job "sleep 300" -g 4) && job_becomes "$id" RUNNING && w=$(sh_job "sleep 300" -g 4 -t 1h) &&
	gpuq update "$w" gpus=2 time=2h name=renamed nice=5 depends=afterany:"$id" >out &&
	says out "Updated 1 job" && job_is "$w" gpus 2 && job_is "$w" time_limit_s 7200 &&
	job_is "$w" name renamed && wait_for 60 job_is "$w" reason Dependency &&
	gpuq update "$w" depends= && wait_for 60 job_is "$w" reason Resources
'

test_expect_success 'what was changed is what starts, also after a kill' '
	kill_gpuqd && start_gpuqd && job_is "$w" gpus 2 && gpuq cancel "$id" && job_becomes "$w" RUNNING &&
	test "$(free_gpus)" = 2
'

test_expect_success 'what cannot change is refused, with its reason and whole' '
	exits 1 gpuq update "$w" gpus=1 && says err "only a pending job can be changed" &&
	exits 1 gpuq update "$w" gpu=1 && says err "did you mean .gpus" &&
	id=$(sh_job "exit 0" --hold) &&
	exits 1 gpuq update "$id" name=x qos=hihg && says err "no qos" && job_is "$id" name stdin &&
	exits 1 gpuq update "$id" namee=x && says err "name" &&
	exits 1 gpuq update "$id" time=soon && says err "duration" &&
	exits 1 gpuq update "$id" script=x && says err "submit" &&
	exits 2 gpuq update "$id" && exits 254 gpuq update 999 name=x &&
	exits 1 gpuq update --dry-run "$id" gpus=-1 && gpuq update --dry-run "$id" gpus=1 && job_is "$id" gpus 0
'

test_expect_success 'the time limit of a running job: shorter for its owner, longer for an operator' '
	gpuq update "$w" time=1s && job_becomes "$w" TIMEOUT
'

test_expect_success 'an array: its throttle, one element' '
	id=$(sh_job "sleep 300" -a 0-5%1) && job_becomes "${id}_0" RUNNING && gpuq update "$id" array=%2 &&
	job_becomes "${id}_1" RUNNING && exits 1 gpuq update "${id}_4" gpus=2 && says err "whole array" &&
	gpuq update "${id}_4" nice=9 && job_is "${id}_4" state PENDING && gpuq cancel "$id"
'

test_expect_success '--top puts a job before the others of its owner' '
	full=$(sh_job "sleep 300" -g 4) && job_becomes "$full" RUNNING &&
	a=$(sh_job "sleep 300" -g 4) b=$(sh_job "sleep 300" -g 4) c=$(sh_job "sleep 300" -g 4) &&
	wait_for 60 job_is "$c" reason Resources && gpuq update --top "$c" && gpuq cancel "$full" &&
	job_becomes "$c" RUNNING && job_is "$a" state PENDING && gpuq cancel "$a" "$b" "$c"
'

test_expect_success TWO_CPUS 'scripts with #SBATCH lines find the variables that they know' '
	cat >slurm.sh <<-\END &&
	#!/bin/sh
	#SBATCH --job-name=vars --ntasks-per-node=2 --cpus-per-task=1 --array=0-4:2
	env | grep ^SLURM || true
	END
	id=$(submit -g 1 slurm.sh) && exits 0 gpuq wait "$id" && gpuq logs "${id}_4" >out &&
	n=$(job "${id}_4" element_id) && test "$n" -gt "$id" &&
	for want in SLURM_JOB_ID="$n" SLURM_ARRAY_JOB_ID="$id" SLURM_ARRAY_TASK_ID=4 SLURM_ARRAY_TASK_STEP=2 \
		SLURM_ARRAY_TASK_COUNT=3 SLURM_JOB_NAME=vars SLURM_NTASKS=2 SLURM_CPUS_PER_TASK=1 SLURM_GPUS_ON_NODE=1 \
		SLURM_PROCID=0 SLURM_NNODES=1 "SLURM_SUBMIT_DIR=$PWD" SLURM_JOB_PARTITION=default SLURM_RESTART_COUNT=0; do
		grep -qxF -e "$want" out || { echo "no $want"; cat out; return 1; }
	done &&
	id=$(submit --slurm-env=no slurm.sh) && exits 0 gpuq wait "$id" && gpuq logs "${id}_4" >out && ! test -s out
'

test_expect_success 'a pod finds what says something of its job, and no more' '
	echo "{command: [env], cpus: 0}" >env.yaml && id=$(submit env.yaml) && exits 0 gpuq wait "$id" && gpuq logs "$id" >out &&
	for want in GPUQ_JOB_ID=$id GPUQ_ATTEMPT=0 GPUQ_POD_INDEX=0 GPUQ_POD_COUNT=1 GPUQ_NNODES=1 GPUQ_GPUS=0; do
		grep -qxF "$want" out || { echo "no $want"; cat out; return 1; }
	done &&
	! grep -E "^(GPUQ_(NODELIST|NTASKS|QOS|GROUP)|RANK|WORLD_SIZE|PET_.*)=" out &&
	id=$(submit --ntasks-per-node=2 --cpus 0 env.yaml) && exits 0 gpuq wait "$id" && gpuq logs "$id" >out &&
	grep -qx GPUQ_NTASKS=2 out && grep -qx GPUQ_NNODES=1 out && grep -qx GPUQ_QOS=normal out && ! grep "^GPUQ_GROUP=" out &&
	id=$(submit --pods 2 env.yaml) && exits 0 gpuq wait "$id" && gpuq logs "$id" >out &&
	for want in GPUQ_GROUP=main GPUQ_GROUP_INDEX=0 GPUQ_NNODES=2 WORLD_SIZE=2 RANK=0 PET_NNODES=2 PET_NODE_RANK=1 PET_MASTER_ADDR=127.0.0.1; do
		grep -q "$want\$" out || { echo "no $want"; cat out; return 1; }
	done
'

test_expect_success 'a warning comes before the time limit' '
	cat >warned.sh <<-\END &&
	#!/bin/sh
	#SBATCH --signal=USR1@3600 --time=1:00:01
	trap "echo time is short; exit 0" USR1
	while :; do sleep 0.05; done
	END
	id=$(submit warned.sh) && job_becomes "$id" COMPLETED && gpuq logs "$id" >out && says out "time is short"
'

test_expect_success 'exit code 85 of a job that saves itself starts it again; of another it is a failure' '
	cat >saves.yaml <<-\END &&
	command: ["sh", "-c", "test $GPUQ_ATTEMPT = 2 || exit 85"]
	checkpoint: {interval: 1m}
	END
	id=$(submit saves.yaml) && job_becomes "$id" COMPLETED && job_is "$id" attempt 2 &&
	id=$(sh_job "exit 85") && exits 85 gpuq wait "$id"
'

# Asking for a job counts as attending it, so the log is watched instead.
test_expect_success 'a job with a lease ends when nobody waits for it any more' '
	exits 1 gpuq submit --lease 1s --wrap true && says err "5s" &&
	id=$(sh_job "sleep 300" --lease 5s) && other=$(sh_job "sleep 300" --lease 5s) &&
	{ gpuq wait "$other" >/dev/null 2>&1 & } && waiter=$! &&
	{ wait_for 60 grep -q "job.lease job=$id" gpuqd.log || { kill -KILL $waiter; false; }; } &&
	job_becomes "$id" CANCELLED && gpuq status "$id" >out && says out "lease" &&
	job_is "$other" state RUNNING && kill -KILL $waiter &&
	wait_for 60 grep -q "job.lease job=$other" gpuqd.log && job_becomes "$other" CANCELLED
'

test_expect_success 'singleton: one after the other of one owner and name, also when that is said later' '
	one=$(sh_job "sleep 300" -g 1 -J alone) && two=$(sh_job "sleep 300" -g 1 -J alone -d singleton) &&
	three=$(sh_job "sleep 300" -g 1 -J alone) && other=$(sh_job "exit 0" -g 1 -J other -d singleton) &&
	job_becomes "$one" RUNNING && job_becomes "$three" RUNNING && job_becomes "$other" COMPLETED &&
	wait_for 60 job_is "$two" reason Dependency && gpuq cancel "$one" && job_becomes "$two" RUNNING &&
	four=$(sh_job "exit 0" -g 1 -J alone --hold) && gpuq update "$four" depends=singleton && gpuq release "$four" &&
	wait_for 60 job_is "$four" reason Dependency && gpuq cancel "$two" "$three" && job_becomes "$four" COMPLETED
'

test_expect_success '--time-min: the attempt is given what there is until a reservation, the next one looks anew' '
	gpuq reserve upkeep --start "$(date -d "+2 hours" +%Y-%m-%dT%H:%M:%S%:z)" --duration 1h --nodes "$(gpuq nodes --json | json name)" --flags maintenance &&
	long=$(sh_job "sleep 300" -t 5h --time-min 3h) && wait_for 60 job_is "$long" reason Reservation &&
	id=$(sh_job "sleep 300" -t 5h --time-min 30) && job_becomes "$id" RUNNING && job_is "$id" time_min_s 1800 &&
	given=$(job "$id" time_limit_s) && test "$given" -gt 1800 && test "$given" -le 7200 &&
	gpuq update "$id" name=same && job_is "$id" time_limit_s "$given" &&
	kill_gpuqd && start_gpuqd && job_is "$id" time_limit_s "$given" &&
	gpuq requeue --hold "$id" && job_becomes "$id" PENDING && job_is "$id" time_limit_s 18000 &&
	gpuq cancel "$id" && gpuq reserve --delete upkeep && job_becomes "$long" RUNNING &&
	job_is "$long" time_limit_s 18000 && gpuq cancel "$long" &&
	exits 1 gpuq submit -t 1h --time-min 2h --wrap true && says err "time_min"
'

test_expect_success '--priority: an operator says whose turn it is' '
	full=$(sh_job "sleep 300" -g 4) && job_becomes "$full" RUNNING &&
	a=$(sh_job "sleep 300" -g 4) b=$(sh_job "sleep 300" -g 4 --priority 4000000000) &&
	c=$(sh_job "sleep 300" -g 4 --priority 1) && wait_for 60 job_is "$c" reason Resources &&
	wait_for 60 job_is "$b" priority 4000000000 && gpuq update "$b" priority=5000000 nice=7 &&
	gpuq cancel "$full" && job_becomes "$b" RUNNING && gpuq cancel "$b" && job_becomes "$a" RUNNING &&
	job_is "$c" state PENDING && gpuq cancel "$a" "$c" && exits 1 gpuq submit --priority 0 --wrap true
'

test_expect_success 'aftercorr: each element waits for its like, before and after a restart' '
	rm -f go && first=$(sh_job "test \$GPUQ_ARRAY_TASK_ID = 2 && until test -e go; do sleep 0.1; done; test \$GPUQ_ARRAY_TASK_ID != 1" --array 0-3) &&
	after=$(sh_job true --array 0-3 --dependency "aftercorr:$first") && job_becomes "${after}_0" COMPLETED &&
	wait_for 60 job_is "${after}_1" reason DependencyNever && job_is "${after}_2" reason Dependency &&
	kill_gpuqd && start_gpuqd && job_is "${after}_1" reason DependencyNever && touch go &&
	job_becomes "${after}_2" COMPLETED && job_becomes "${after}_3" COMPLETED && job_is "${after}_1" state PENDING
'

test_expect_success 'aftercorr: what ended before it came counts, too' '
	late=$(sh_job true --array 1-2 --dependency "aftercorr:$first" --kill-on-invalid-dep yes) &&
	job_becomes "${late}_2" COMPLETED && job_becomes "${late}_1" CANCELLED && gpuq cancel "$after"
'

test_expect_success 'elements: what ended before it came counts; what is not there is refused' '
	rm -f go && first=$(sh_job "test \$GPUQ_ARRAY_TASK_ID = 2 && until test -e go; do sleep 0.1; done; test \$GPUQ_ARRAY_TASK_ID != 1" --array 0-3) &&
	job_becomes "${first}_0" COMPLETED && job_becomes "${first}_1" FAILED && job_becomes "${first}_2" RUNNING &&
	a=$(sh_job true -d "afterok:${first}_0") b=$(sh_job true -d "afterok:${first}_1") c=$(sh_job true -d "afterany:${first}_2") &&
	job_becomes "$a" COMPLETED && wait_for 60 job_is "$b" reason DependencyNever && job_is "$c" reason Dependency &&
	exits 1 gpuq submit -d "afterok:${first}_7" --wrap true && says err "array $first has no element 7" &&
	touch go && job_becomes "$c" COMPLETED && exits 1 gpuq wait "$first" &&
	test "$(gpuq history --json -j "$first" | json array.indices | sort | uniq -c | tr -d " \n")" = "50-3" &&
	exits 1 gpuq submit -d "afterok:${first}_7" --wrap true && says err "array $first has no element 7" && gpuq cancel "$b"
'

test_expect_success 'elements that are cancelled before they start have ended, for who waits and for who comes' '
	first=$(sh_job true --array 0-3 --hold) && a=$(sh_job true -d "afterany:${first}_2") b=$(sh_job true -d "afterok:${first}_3") &&
	gpuq cancel "$first" && job_becomes "$a" COMPLETED && wait_for 60 job_is "$b" reason DependencyNever &&
	c=$(sh_job true -d "afternotok:${first}_1") && job_becomes "$c" COMPLETED && gpuq cancel "$b"
'

test_expect_success 'after: a start that has been; so long after it' '
	first=$(sh_job "sleep 300") && job_becomes "$first" RUNNING && a=$(sh_job true -d "after:$first") && job_becomes "$a" COMPLETED &&
	b=$(sh_job true -d "after:$first+60") && wait_for 60 job_is "$b" reason Dependency && gpuq update "$b" "depends=after:$first" &&
	job_becomes "$b" COMPLETED && gpuq cancel "$first" && job_becomes "$first" CANCELLED &&
	c=$(sh_job true -d "after:$first") && job_becomes "$c" COMPLETED
'

test_expect_success 'deadline: whoever runs or waits then has ended' '
	a=$(sh_job "sleep 300") b=$(sh_job "sleep 300" --hold) && job_becomes "$a" RUNNING && gpuq update "$a" "$b" deadline=now+2 &&
	exits 251 gpuq wait "$a" && last_result DEADLINE 143 && exits 248 gpuq wait "$b" && job_is "$b" state DEADLINE &&
	exits 1 gpuq submit --deadline 2020-01-01 --wrap true && says err "deadline has passed"
'

test_expect_success 'what cannot start today waits, and that is said with what is asked for' '
	a=$(sh_job true --cpus 4000 -g 9 2>err) && says err "9 GPUs requested, 4 on the largest node; 4000 CPUs requested, [0-9.]+ on" &&
	wait_for 60 job_is "$a" reason Unsatisfiable && gpuq update "$a" gpus=7 cpus=1 >out 2>err && says err "7 GPUs requested" &&
	gpuq update "$a" gpus=1 && job_becomes "$a" COMPLETED
'

test_expect_success 'a reservation: it is there, it is for the job, and the job waits for it' '
	node=$(gpuq nodes --json | json name) && soon=$(date -u -d "+2 hours" +%Y-%m-%dT%H:%M:%SZ) &&
	gpuq reserve mine --start "$soon" --duration 1h --nodes "$node" --users "$(id -un)" &&
	gpuq reserve others --start "$(date -u -d "+5 hours" +%Y-%m-%dT%H:%M:%SZ)" --duration 1h --gpus 1 --users nobody-else &&
	exits 1 gpuq submit --reservation mien --wrap true && says err "no reservation is named mien; did you mean mine" &&
	exits 1 gpuq submit --reservation others --wrap true && says err "not for jobs of" &&
	a=$(sh_job true --reservation mine) && wait_for 60 job_is "$a" reason BeginTime &&
	gpuq reserve --delete mine others && gpuq update "$a" reservation= begin= nodes= && job_becomes "$a" COMPLETED
'

test_expect_success 'no job waits for itself' '
	a=$(sh_job true --hold) b=$(sh_job true -d "afterok:$a") c=$(sh_job true -d "afterany:$b") &&
	exits 1 gpuq update "$a" "depends=afterok:$a" && says err "depend on itself" &&
	exits 1 gpuq update "$a" "depends=afterok:$c" && says err "depend on itself" &&
	exits 1 gpuq submit -d "afterok:$((c + 1))" --wrap true && says err "does not exist" &&
	gpuq release "$a" && job_becomes "$c" COMPLETED
'

test_expect_success 'stop' '
	stop_gpuqd
'

test_done
