#!/bin/sh
test_description='OpenMPI 5: srun of a gang, and mpirun in a script that launches'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/mpi.sh"

test_expect_success 'start' '
	start_clients && printf "#!/bin/sh\nexec %s/bin/mpicc \"\$@\"\n" "$GPUQ_CLIENTS" >mpicc.five && chmod +x mpicc.five && PATH=$PWD:$PATH && hello_of five
'

gang() {
	printf '#!/bin/sh\n#SBATCH -N 2 -c 1 -o gang.out %s\nexport OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1\n%s\n' "$1" "$2" >gang.sh
	rm -f gang.out
	timeout 120 sbatch --wait gang.sh
	code=$?
	cat gang.out
	printf "rank %s of 2 sum 1\n" 0 1 >want
	grep ^rank gang.out | sort >got
	test $code = 0 && test_cmp want got
}

if [ -e "$test_build/gpuq/slurm/mpi/.libs/libgpuq-pmix.so" ]; then
	test_expect_success 'srun' 'gang "" "srun ./hello.five"'
fi

test_expect_success 'mpirun' 'gang --launch "mpirun ./hello.five"'

test_done
