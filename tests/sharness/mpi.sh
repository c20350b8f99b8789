# mpi.sh - an MPI program, and pods of a gang that are processes of this machine

# hello_of MPI [-DHOST]: compiles ./hello.MPI and sets a prerequisite of that name. Its ranks print what they are and the
# sum of all, with HOST where they run as well; with an argument the last one ends all with this code.
hello_of() {
	command -v "mpicc.$1" >/dev/null || return
	cat >hello.c <<-'END_OF_C'
	#include <mpi.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <unistd.h>
	int main(int argc, char **argv)
	{
		int rank, size, sum = 0;
		char host[256] = "";

		MPI_Init(&argc, &argv);
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		MPI_Comm_size(MPI_COMM_WORLD, &size);
		if (argc > 1 && rank == size - 1)
			MPI_Abort(MPI_COMM_WORLD, atoi(argv[1]));
		MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		gethostname(host, sizeof(host) - 1);
	#ifdef HOST
		printf("rank %d of %d sum %d on %s\n", rank, size, sum, host);
	#else
		printf("rank %d of %d sum %d\n", rank, size, sum);
	#endif
		MPI_Finalize();
		return 0;
	}
	END_OF_C
	"mpicc.$1" ${2+"$2"} -o "hello.$1" hello.c && test_set_prereq "$(echo "$1" | tr '[:lower:]' '[:upper:]')"
}

without() {
	say_color skip "# without $1: its package is not installed"
}

# in_pod N [VARIABLE...] srun OPTION...: as the script of the N-th of three pods of the job $gang_job would. They share
# memory, as real ones do not; with $own_hosts each has a host name of its own, pod-N.
in_pod() {
	pod=$1
	shift
	[ -z "${own_hosts-}" ] || set -- unshare -u sh -c 'hostname "pod-$GPUQ_POD_INDEX"; exec "$@"' sh "$@"
	env OMPI_MCA_btl=self,tcp OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 KUBERNETES_SERVICE_HOST=none \
		GPUQ_JOB_ID="$gang_job" GPUQ_ATTEMPT=0 GPUQ_NNODES=3 GPUQ_POD_INDEX="$pod" GPUQ_NODELIST=a,b,c MASTER_ADDR=127.0.0.1 \
		GPUQ_GANG_KEY=0123456789abcdef "$@"
}

pod_now() {
	now=$1
	shift
	in_pod "$now" "$@" >out."$now" 2>err."$now"
	echo "$now $?" >>codes
}

# all_pods srun OPTION...: in all of them; the last to start is the first. Exit codes are in codes.
all_pods() {
	rm -f codes out.*
	pod_now 2 "$@" &
	third=$!
	pod_now 1 "$@" &
	second=$!
	pod_now 0 "$@" &
	wait $! $second $third
}

# all_end CODE: all three sruns ended with it
all_end() {
	cat err.* out.*
	test "$(sort codes | tr "\n" " ")" = "0 $1 1 $1 2 $1 "
}

no_folder_left() {
	test -z "$(find "$TMPDIR" -name 'gpuq-mpi-*')"
}
