#!/bin/sh
test_description='of SLURM_MEM_PER_NODE, _CPU and _GPU one is set, by the option, also where the submitter has others'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	start_gpuqd --gpus 1 && mkdir bin && ln -s "$test_build/gpuq/gpuq" bin/sbatch && PATH=$PWD/bin:$PATH
'

test_expect_success 'one, with its amount' '
	for option in mem=NODE mem-per-cpu=CPU mem-per-gpu=GPU; do
		SLURM_MEM_PER_NODE=7 SLURM_MEM_PER_CPU=7 SLURM_MEM_PER_GPU=7 timeout 60 sbatch --wait -G 1 -c 1 "--${option%=*}=64M" -o memory.out --wrap "env | grep MEM_PER" &&
			test "$(cat memory.out)" = "SLURM_MEM_PER_${option#*=}=64" || return 1
		rm memory.out || return 1
	done && stop_gpuqd
'

test_done
