#!/bin/sh
test_description='a real node: an OpenMPI program, which speaks PMIx, in the pods of a gang'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

module=$test_build/gpuq/slurm/mpi/.libs/libgpuq-pmix.so
[ -e "$module" ] || skip_all='gpuq was built without openpmix (libpmix-dev)'
command -v mpicc.openmpi >/dev/null || skip_all='the Debian packages openmpi-bin and libopenmpi-dev are not installed'
[ -z "${skip_all-}" ] || test_done

cat >hello.c <<'END_OF_C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int rank, size, sum = 0, n = 1 << 20, *big = malloc(sizeof(int) << 20);
	char host[256] = "";

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 1 && strcmp(argv[1], "crash") == 0 && rank == size - 1)
		raise(11);
	if (argc > 1 && rank == size - 1)
		MPI_Abort(MPI_COMM_WORLD, atoi(argv[1]));
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		big[i] = rank;
	MPI_Allreduce(MPI_IN_PLACE, big, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	gethostname(host, sizeof(host) - 1);
	printf("rank %d of %d sum %d %d on %s\n", rank, size, sum, big[n - 1], host);
	MPI_Finalize();
	return 0;
}
END_OF_C

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/exec.yaml" --no-kwok --real-node --real-gpus 4


# gang COMMAND...: a script of two pods
gang() {
	printf '#!/bin/sh\n#SBATCH -N 2 -c 1 -J world\nexport OMPI_MCA_mca_base_component_show_load_errors=0\n%s\n' "$*" >gang.sh && submit gang.sh
}

# ends JOB CODE: it does, with the logs of both pods in out
ends() {
	gpuq wait "$1" >wait.out 2>&1
	ended=$?
	gpuq logs --pod=0 "$1" >out && gpuq logs --pod=1 "$1" >>out && cat out wait.out && test $ended = "$2"
}

test_expect_success 'names of pods, an image with gpuq, its module and a program' '
	mpicc.openmpi -o hello hello.c && lib=/usr/lib/x86_64-linux-gnu &&
	node_image docker.io/local/openmpi:1 --with "/usr/bin/srun=$test_build/gpuq/gpuq" --with "/usr/bin/slurm/mpi/.libs/libgpuq-pmix.so=$module" \
		--with "/usr/bin/hello=$PWD/hello" --with $lib/openmpi --with $lib/pmix2 --with $lib/libpmix.so.2 --with /usr/bin/mpirun.openmpi --with /usr/bin/orted --with /etc/openmpi --with /usr/share/openmpi &&
	{ exec nsenter -t "$(cut -d" " -f1 "$TMPDIR/k/run/node.pid")" -n "$kube_tools/dns" "$TMPDIR/k/admin.kubeconfig" >dns.log 2>&1 3>&- 4>&- 5>&- & } &&
	printf "version: 1\nqueues: [{name: default, quota: 4, image: \"docker.io/local/openmpi:1\"}]\n" >site.yaml &&
	start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 120 node_frees real1 4
'

test_expect_success 'four ranks in two pods are one world, step by step' '
	id=$(gang "srun --mpi=list; for i in 1 2; do srun --ntasks-per-node=2 hello || exit; done") && ends "$id" 0 &&
	says out "^	pmix$" && grep "^rank" out | sed "s/ on .*//" | sort | uniq -c | tr -s " " >got && seq 0 3 | sed "s/.*/ 2 rank & of 4 sum 6 6/" >want && test_cmp want got &&
	test "$(grep "^rank" out | sed "s/.* on //" | sort -u | wc -l)" = 2
'

test_expect_success 'mpirun in the first pod finds the hosts, and needs no ssh' '
	c=$(gang "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; srun --mpi=launch --ntasks-per-node=2 mpirun.openmpi hello; echo code \$?") && ends "$c" 0 &&
	grep "^rank" out | sed "s/ on .*//" | sort >got && seq 0 3 | sed "s/.*/rank & of 4 sum 6 6/" >want && test_cmp want got && test "$(grep "^rank" out | sed "s/.* on //" | sort -u | wc -l)" = 2 &&
	test "$(grep -c "^code 0" out)" = 2
'

test_expect_success 'from salloc with --mpi an srun in each pod starts its ranks, or mpirun' '
	mkdir bin && ln -s "$test_build/gpuq/gpuq" bin/salloc && ln -s "$test_build/gpuq/gpuq" bin/srun && PATH=$PWD/bin:$PATH && root=OMPI_ALLOW_RUN_AS_ROOT &&
	exits 0 salloc -Q -N 2 -c 1 srun --mpi=pmix --label --ntasks-per-node=2 hello && cat out err && sed "s/ on .*//" out | sort >got && seq 0 3 | sed "s/.*/&: rank & of 4 sum 6 6/" >want && test_cmp want got &&
	exits 9 salloc -Q -N 2 -c 1 srun --mpi=pmix -n 2 hello 9 && cat err &&
	exits 0 salloc -Q -N 2 -c 1 srun --mpi=launch --export=ALL,$root=1,${root}_CONFIRM=1 --ntasks-per-node=2 mpirun.openmpi hello && cat out err &&
	grep "^rank" out | sed "s/ on .*//" | sort >got && seq 0 3 | sed "s/.*/rank & of 4 sum 6 6/" >want && test_cmp want got
'

test_expect_success 'a rank that aborts, and one that crashes, ends all' '
	a=$(gang "srun --mpi=pmix --ntasks-per-node=2 hello 9") && b=$(gang "srun --ntasks-per-node=2 hello crash; echo code \$?") &&
	exits 9 gpuq wait "$a" && ends "$b" 0 && test "$(grep -c "^code 139" out)" = 2
'

test_expect_success 'nothing was overcommitted' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
