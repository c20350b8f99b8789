#!/bin/sh
test_description='steps side by side in one pod: devices and CPUs of their own'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	mkdir bin && for name in sbatch srun; do
		ln -s "$test_build/gpuq/gpuq" bin/$name || return 1
	done && PATH=$PWD/bin:$PATH && export PATH && start_gpuqd
'

# steps NAME LINES [option...]: a job of these lines with four devices; its output is in NAME
steps() {
	steps_name=$1 steps_lines=$2
	shift 2
	printf '#!/bin/bash\n%s\n' "$steps_lines" >job.sh &&
		timeout 120 sbatch --wait -Q --gpus=4 -o "$steps_name" "$@" job.sh
}

# Each waits until four have begun, so that they are there at once.
meet='meet() { touch "$1.$2"; until [ "$(ls "$1".* | wc -l)" -ge "$3" ]; do sleep 0.05; done; }; export -f meet'

test_expect_success 'each has a device of its own, however it asks for it' '
	for how in gpus-per-task=1 gpus=1 gpus-per-node=1 gres=gpu:1 gres=gpu; do
		rm -f met.* && steps out "$meet
			for i in 1 2 3 4; do srun -Q -n1 --$how bash -c \"meet met \$i 4; echo device \\\$CUDA_VISIBLE_DEVICES \\\$SLURM_STEP_GPUS\" & done; wait" &&
		test "$(sort out | tr "\n" ,)" = "device 0 0,device 1 1,device 2 2,device 3 3," || { echo "$how"; cat out; return 1; }
	done
'

test_expect_success 'one that finds none waits, and gets those of a step that has ended, also of one that was killed' '
	steps out "srun -n1 --gpus=3 bash -c \"touch first; until [ -e on ]; do sleep 0.05; done\" & one=\$!
		until [ -e first ]; do sleep 0.05; done
		srun -n1 --gpus=2 bash -c \"echo second \\\$CUDA_VISIBLE_DEVICES\" 2>err & two=\$!
		until grep -q waiting err; do sleep 0.05; done; touch on; wait \$one \$two; rm -f on first
		srun -n1 --gpus=4 bash -c \"touch first; until [ -e on ]; do sleep 0.05; done\" & one=\$!
		until [ -e first ]; do sleep 0.05; done; kill -KILL \$one; touch on
		srun -n1 --gpus=4 bash -c \"echo third \\\$CUDA_VISIBLE_DEVICES\"; true" &&
	says out "^second 0,1$" && says out "^third 0,1,2,3$" && says err "^srun: waiting: other steps have the devices$"
'

# in_job OPTION...: srun in a job of four devices
in_job() {
	env GPUQ_JOB_ID=1 "$devices" SLURM_CPUS_ON_NODE=2 timeout 60 srun "$@"
}
devices=CUDA_VISIBLE_DEVICES=4,5,6,7

test_expect_success 'a step in a step divides what that has; --overlap does not ask, and none sees none' '
	cat >in.sh <<-\END &&
	srun -n1 --gpus-per-task=1 sh -c "echo inner \$CUDA_VISIBLE_DEVICES"
	srun -n1 --overlap --gres=gpu:1 sh -c "echo beside \$CUDA_VISIBLE_DEVICES"
	END
	in_job -n1 --gpus=1 --exclusive sh in.sh >out && test "$(tr "\n" , <out)" = "inner 4,beside 4," &&
	in_job -n1 --gres=none sh -c "echo none \$CUDA_VISIBLE_DEVICES." >out && test "$(cat out)" = "none ." &&
	in_job -n2 --gpus-per-task=2 sh -c "echo \$SLURM_PROCID \$CUDA_VISIBLE_DEVICES" | sort >out && test "$(tr "\n" ";" <out)" = "0 4,5;1 6,7;" &&
	exits 2 in_job -n1 --gpus=a:b true && says err "expected a number of devices"
'

test_expect_success 'without a list of the devices, as in a container, they are numbered from 0' '
	for how in gpus-per-task=2 gres=gpu:2; do
		env GPUQ_JOB_ID=1 GPUQ_GPUS=4 SLURM_CPUS_ON_NODE=1 srun -n1 --$how sh -c "echo \$CUDA_VISIBLE_DEVICES" >out &&
		test "$(cat out)" = 0,1 || return 1
	done
'

test_expect_success '--exclusive: as many at once as the job has CPUs for' '
	cat >one.sh <<-\END &&
	mkdir "here.$1"
	set -- here.*
	echo "$#" >>most
	sleep 0.3
	rmdir "here.$SELF"
	END
	steps= && for i in 1 2 3 4 5 6; do
		env GPUQ_JOB_ID=1 SLURM_CPUS_ON_NODE=2 SELF=$i srun -Q -n1 --exclusive sh one.sh $i &
		steps="$steps $!" || return 1
	done && wait $steps && test "$(wc -l <most)" = 6 && test "$(sort -n most | tail -n 1)" -le 2 && ! ls here.*
'

test_done
