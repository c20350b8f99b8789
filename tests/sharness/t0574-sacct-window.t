#!/bin/sh
test_description='sacct -S and -E: jobs that were pending or ran meanwhile; variables of jobs without devices; types that there are'
. "$(dirname "$0")/lib.sh"

mkdir bin && for name in sbatch sacct; do ln -s "$test_build/gpuq/gpuq" bin/$name || exit 99; done

# window OPTION...: ids of the jobs in it
window() {
	bin/sacct -n -X -P -o jobid "$@" | tr "\n" " "
}

test_expect_success 'one that ended, one that runs, one that is pending' '
	start_gpuqd --gpus 1 && first=$(date +%FT%T) && sleep 1 && a=$(submit --wrap true) && gpuq wait "$a" && b=$(submit --gpus 1 --wrap "sleep 1000") && job_becomes "$b" RUNNING && c=$(submit --gpus 1 --wrap true) && sleep 3
'

test_expect_success 'a window after the last submission has what runs or is pending' '
	test "$(window -S now-1)" = "$b $c " && test "$(window -S now-1 -E now+60)" = "$b $c " && test "$(window -S midnight)" = "$a $b $c " && test "$(window -S now-1 -s RUNNING)" = "$b "
'

test_expect_success 'a window that is over has no later job; one before the first has none' '
	test "$(window -S 2001-01-01 -E "$first")" = "" && later=$(date +%FT%T) && sleep 2 && d=$(submit --wrap true) && gpuq wait "$d" && test "$(window -S midnight -E "$later")" = "$a $b $c " && gpuq cancel "$b" "$c" && job_becomes "$b" CANCELLED &&
	test "$(window -S midnight -E "$later")" = "$a $b $c " && test "$(window -S now+1hour)" = ""
'

test_expect_success 'without devices none of the variables of devices is set' '
	bin/sbatch -W -o out1 --wrap "env" && ! grep -E "^SLURM_(JOB_GPUS|GPUS)" out1 && bin/sbatch -W --gres=gpu:1 -o out2 --wrap "env" && says out2 "^SLURM_JOB_GPUS=0$" && says out2 "^SLURM_GPUS_ON_NODE=1$"
'

test_expect_success 'a type that no node has, where the devices have none' '
	bin/sbatch --gres=gpu:h100:1 --wrap true 2>err && says err "no node has devices of flavor h100 .the devices that there are have no type."
'

test_done
