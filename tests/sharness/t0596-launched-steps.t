#!/bin/sh
test_description='a script that the first pod of a gang runs alone: its sruns start tasks in all pods'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/mpi.sh"

gang_job=11 own_hosts=yes

unshare -u true 2>/dev/null || {
	skip_all='host names of their own for pods need root'
	test_done
}

for mpi in mpich openmpi; do
	hello_of $mpi -DHOST || without $mpi
done

# launched COMMAND...: a script of these lines, with two tasks in each of three pods
launched() {
	printf '%s\n' "$@" >script.sh && all_pods srun --mpi=launch --ntasks-per-node=2 sh script.sh
}

whole_world() {
	for rank in 0 1 2 3 4 5; do
		echo "rank $rank of 6 sum 15 on pod-$((rank / 2))"
	done >want && cat out.* | sort >got && test_cmp want got
}

test_expect_success 'start' '
	mkdir bin "$TMPDIR/files" && ln -s "$test_build/gpuq/gpuq" bin/srun && PATH=$PWD/bin:$PATH && TMPDIR=$TMPDIR/files && export PATH TMPDIR && unset SLURM_MPI_TYPE
'

test_expect_success 'tasks of all pods, with the directory and the variables of the script' '
	mkdir "a b" && cat >"a b/task.sh" <<-\END &&
	echo "$SLURM_PROCID of $SLURM_NTASKS on $(hostname) $WORDS ${PWD##*/} ${GPUQ_STEP_NAME-} ${GPUQ_LAUNCH-} $GPUQ_POD_INDEX"
	END
	launched "cd \"a b\"; WORDS=\"it'\''s new\"; export WORDS; srun --ntasks-per-node=2 sh task.sh; echo code \$?" && all_end 0 &&
	for rank in 0 1 2 3 4 5; do echo "$rank of 6 on pod-$((rank / 2)) it'\''s new a b   $((rank / 2))" || return 1; done >want && cat out.* | grep -v ^code | sort >got && test_cmp want got &&
	says out.0 "^code 0$" && test "$(cat out.* | grep -c ^code)" = 1
'

test_expect_success 'the highest exit code; -N 1 and -n 1 stay here' '
	launched "srun --mpi=none --ntasks-per-node=1 sh -c '\''exit \$SLURM_PROCID'\''" && all_end 2 &&
	launched "srun --ntasks-per-node=1 -n 3 -K0 sh -c '\''exit \$((3 * (SLURM_PROCID == 2)))'\''; echo code \$?" && says out.0 "^code 3$" &&
	launched "srun -n 1 hostname; srun -N 1 --ntasks-per-node=2 hostname" && all_end 0 && test "$(cat out.* | sort | uniq -c | tr -s " ")" = " 3 pod-0"
'

test_expect_success MPICH 'MPICH, one step after the other' '
	launched "srun --ntasks-per-node=2 ./hello.mpich >/dev/null && srun --ntasks-per-node=2 ./hello.mpich" && all_end 0 && cat out.0 | grep -c rank && launched "srun --ntasks-per-node=2 ./hello.mpich" && all_end 0 && whole_world
'

[ ! -e "$test_build/gpuq/slurm/mpi/.libs/libgpuq-pmix.so" ] || test_set_prereq PMIX
test_expect_success OPENMPI,PMIX 'OpenMPI, and a rank that aborts' '
	launched "srun --ntasks-per-node=2 ./hello.openmpi" && all_end 0 && whole_world && launched "srun --ntasks-per-node=2 ./hello.openmpi 9" && all_end 9
'

test_expect_success 'nothing is left' 'wait_for 20 no_folder_left'

test_done
