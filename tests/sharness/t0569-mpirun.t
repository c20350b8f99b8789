#!/bin/sh
test_description='launchers of MPI in a gang: mpirun finds its hosts, and starts programs in the other pods without ssh'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/mpi.sh"

gang_job=9 own_hosts=yes

unshare -u true 2>/dev/null || {
	skip_all='host names of their own for pods need root'
	test_done
}

for mpi in mpich openmpi; do
	{ command -v mpiexec.$mpi >/dev/null && hello_of $mpi -DHOST; } || without $mpi
done

whole_world() {
	for rank in 0 1 2 3 4 5; do
		echo "rank $rank of 6 sum 15 on pod-$((rank / 2))"
	done >want && sort out.0 >got && test_cmp want got
}

test_expect_success 'start' '
	mkdir bin "$TMPDIR/files" && ln -s "$test_build/gpuq/gpuq" bin/srun && ln -s "$test_build/gpuq/gpuq" bin/sbatch && PATH=$PWD/bin:$PATH && TMPDIR=$TMPDIR/files &&
	export PATH TMPDIR && : "Hydra passes its script without quotes: no space here" &&
	unset SLURM_MPI_TYPE && srun --mpi=LIST >out && says out "^	launch$"
'

test_expect_success 'a command in the first pod runs others in each, and all sruns have its exit code' '
	cat >launcher.sh <<-\END &&
	cat "$OMPI_MCA_orte_default_hostfile" "$HYDRA_HOST_FILE"
	$OMPI_MCA_plm_rsh_agent pod-1 "hostname; exit 3"
	echo code $?
	"$HYDRA_LAUNCHER_EXEC" pod-0 echo in "\$(hostname)"
	srun --nodelist=pod-2 sh -c "\"kill -9 \\\$\\\$\""
	echo code $?
	srun --nodelist=pod-7 true
	echo code $?
	exit 5
	END
	all_pods srun --mpi=launch --ntasks-per-node=2 sh launcher.sh && all_end 5 && printf "%s\n" "pod-0 slots=2" "pod-1 slots=2" "pod-2 slots=2" pod-0:2 pod-1:2 pod-2:2 "code 3" "in pod-0" "code 137" "code 255" >want &&
	test_cmp want out.0 && test "$(cat out.1)" = pod-1 && says err.0 "pod-7: the command could not be run"
'

test_expect_success 'what was started ends with the command, and with the one that asked for it' '
	echo "srun --nodelist=pod-1 sh -c \"\\\"sleep 60 & echo \\\\\\\$! >one; wait\\\"\" & until [ -s one ]; do sleep 0.1; done" >left.sh &&
	all_pods srun --mpi=launch -n 3 sh left.sh && all_end 0 && test -s one && ends_within() { ! kill -0 "$(cat one)" 2>/dev/null; } && wait_for 20 ends_within
'

test_expect_success MPICH 'mpiexec of MPICH' '
	all_pods srun --mpi=launch --ntasks-per-node=2 mpiexec.mpich ./hello.mpich && all_end 0 && whole_world
'

test_expect_success OPENMPI 'mpirun of OpenMPI' '
	all_pods srun --mpi=launch --ntasks-per-node=2 mpirun.openmpi ./hello.openmpi && all_end 0 && whole_world && all_pods srun --mpi=launch --ntasks-per-node=2 mpirun.openmpi ./hello.openmpi 9 && all_end 9
'

test_expect_success 'on the local cluster the command is told of one host, once in a gang' '
	start_gpuqd && cat >gang.sh <<-\END &&
	#!/bin/sh
	#SBATCH -N 2 -c 1 -o gang-%n.out
	srun --mpi=launch --ntasks-per-node=2 sh -c "cat \$OMPI_MCA_orte_default_hostfile \$HYDRA_HOST_FILE; exit 4"
	echo code $?
	END
	exits 0 sbatch --wait gang.sh && printf "%s\n" "localhost slots=4" localhost:4 "code 4" >want && test_cmp want gang-0.out && test "$(cat gang-1.out)" = "code 4"
'

test_expect_success 'nothing is left' no_folder_left

test_done
