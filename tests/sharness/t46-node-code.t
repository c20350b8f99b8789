#!/bin/sh
test_description='a real node: a script of sbatch finds its code, its data on a claim, its checkpoint; an array, its failed element again'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --no-kwok --real-node --real-gpus 4
XDG_CACHE_HOME=$PWD/cache && export XDG_CACHE_HOME

test_expect_success 'a site, a directory of data, a script as people have it' '
	mkdir -p bin data proj/lib && chmod 777 data && for name in sbatch scontrol; do ln -s "$test_build/gpuq/gpuq" bin/$name || return 1; done && PATH=$PWD/bin:$PATH &&
	echo 20 >data/set && bound_claim datasets "{}" "$PWD/data" &&
	cat >site.yaml <<-END &&
		version: 1
		queues:
		- {name: train, quota: 4, image: "docker.io/local/busybox:1", code: true, volumes: [{claim: datasets, path: /data}]}
	END
	cat >proj/train.sh <<-\END &&
	#!/bin/sh
	#SBATCH -J train -p train --gres=gpu:1 -a 1-2 -o /data/out-%a.txt --open-mode=append
	cd "$SLURM_SUBMIT_DIR"
	sh train.py
	END
	cat >proj/train.py <<-\END &&
	. lib/steps.sh
	ckpt=/data/ckpt-$SLURM_ARRAY_TASK_ID
	from=$(cat $ckpt 2>/dev/null || echo 0)
	step "$from" "$(cat /data/set)" && echo $next >$ckpt && echo "task $SLURM_ARRAY_TASK_ID: from $from to $next"
	test $SLURM_ARRAY_TASK_ID != 2 || test "$from" != 0
	END
	echo "step() { next=\$((\$1 + \$2)); }" >proj/lib/steps.sh && echo junk >proj/junk.o && echo "*.o" >proj/.gitignore &&
	start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 120 node_frees real1 4
'

test_expect_success 'sbatch of the script runs in the pods as it is; one element fails' '
	id=$(cd proj && sbatch --parsable train.sh) && job_becomes "${id}_1" COMPLETED 180 && job_becomes "${id}_2" FAILED 180 &&
	test "$(cat data/out-1.txt)" = "task 1: from 0 to 20" && test "$(cat data/ckpt-2)" = 20
'

test_expect_success 'the failed element again goes on from its checkpoint, with the same code' '
	kill_gpuqd && start_kube_gpuqd && wait_for 120 node_frees real1 4 && b=$(gpuq resubmit --parsable --failed "$id") && exits 0 gpuq wait "$b" && test "$(cat data/ckpt-2)" = 40 &&
	says data/out-2.txt "task 2: from 20 to 40" && test "$(ls state/code | wc -l)" = 1
'

test_expect_success 'a command carries a directory, runs below it and may write there' '
	printf "image: docker.io/local/busybox:1\ngpus: 1\ncode: proj\ncommand: [sh, -c, \"ls; echo new >made && cat lib/steps.sh && pwd\"]\n" >job.yaml && c=$(submit job.yaml) && exits 0 gpuq wait "$c" &&
	gpuq logs "$c" >out && says out "^train.py$" && says out "^step" && says out "^/gpuq-code$" && ! grep -x junk.o out
'

test_expect_success 'logs_keep: the output of pods that are gone, of an array, of a cancelled job' '
	printf "version: 1\nlogs_keep: {time: 1d, size: 64Ki}\n" >more.yaml && gpuq apply -f more.yaml && printf "finished_pod_keep: 0s\n" >now.yaml && stop_gpuqd &&
	start_kube_gpuqd --config "$PWD/now.yaml" && wait_for 120 node_frees real1 4 && no_pods() { test -z "$(kube list gpuq-jobs/pods metadata.name | grep gpuq-)"; } && wait_for 120 no_pods &&
	d=$(submit -a 0-1 job.yaml) && job_becomes "${d}_1" COMPLETED 180 && job_becomes "${d}_0" COMPLETED 180 && wait_for 120 no_pods && gpuq logs "${d}_1" >out && says out "^/gpuq-code$" &&
	printf "image: docker.io/local/busybox:1\ngpus: 1\ncommand: [sh, -c, \"trap \\\"echo saved; exit 0\\\" TERM; echo begun; while :; do sleep 0.2; done\"]\n" >long.yaml && e=$(submit long.yaml) &&
	job_becomes "$e" RUNNING 120 && wait_for 60 eval "gpuq logs $e | grep -x begun" && gpuq cancel "$e" && job_becomes "$e" CANCELLED 60 && wait_for 120 no_pods &&
	wait_for 60 eval "gpuq logs $e | grep -x saved" && gpuq logs "$e" >out && says out "^begun$" && says out "^saved$" && kill_gpuqd && start_kube_gpuqd --config "$PWD/now.yaml" && gpuq logs "$e" >out && says out "^saved$" && gpuq logs "$c" >out && says out "^/gpuq-code$"
'

test_expect_success 'nothing was overcommitted' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
