#!/bin/sh
test_description='a real node: an MPI program in the pods of a gang, which srun starts'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/mpi.sh"

command -v mpicc.mpich >/dev/null || {
	skip_all='the Debian packages mpich and libmpich-dev are not installed'
	test_done
}

cluster_for_gpuqd --no-kwok --real-node --real-gpus 4

# gang N [option...]: a script of two pods that does N steps
gang() {
	steps=$1
	shift
	printf '#!/bin/sh\n#SBATCH -N 2 -c 1 -J world\nfor i in $(seq %s); do %s || exit; done\n' "$steps" "$*" >gang.sh && submit gang.sh
}

test_expect_success 'names of pods, an image with gpuq and a program' '
	hello_of mpich -DHOST && node_image docker.io/local/mpich:1 --with "/usr/bin/srun=$test_build/gpuq/gpuq" --with "/usr/bin/hello=$PWD/hello.mpich" --with /usr/lib/x86_64-linux-gnu/ucx &&
	{ exec nsenter -t "$(cut -d" " -f1 "$TMPDIR/k/run/node.pid")" -n "$kube_tools/dns" "$TMPDIR/k/admin.kubeconfig" >dns.log 2>&1 3>&- 4>&- 5>&- & } &&
	printf "version: 1\nqueues: [{name: default, quota: 4, image: \"docker.io/local/mpich:1\"}]\n" >site.yaml &&
	start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 120 node_frees real1 4
'

test_expect_success 'four ranks in two pods are one world, step by step' '
	id=$(gang 2 srun --ntasks-per-node=2 hello) && exits 0 gpuq wait "$id" && gpuq logs --pod=0 "$id" >out && gpuq logs --pod=1 "$id" >>out && sed "s/ on .*//" out | sort | uniq -c | tr -s " " >got &&
	seq 0 3 | sed "s/.*/ 2 rank & of 4 sum 6/" >want && test_cmp want got && test "$(sed "s/.* on //" out | sort -u | wc -l)" = 2
'

test_expect_success 'the key is not the token of the pods, and differs from job to job' '
	b=$(gang 1 "echo key \$GPUQ_GANG_KEY; srun -n 2 hello") && exits 0 gpuq wait "$b" && gpuq logs --pod=0 "$b" >out && gpuq logs --pod=1 "$b" >other && key=$(sed -n "s/^key //p" out) && test ${#key} = 32 &&
	says other "^key $key$" && pods_of "$b" "metadata.annotations" >notes && ! grep -q "$key" notes && pods_of "$id" spec.containers >notes && ! grep -q "$key" notes
'

test_expect_success 'a rank that aborts ends all' '
	c=$(gang 1 srun --ntasks-per-node=2 hello 9) && exits 9 gpuq wait "$c"
'

test_expect_success 'nothing was overcommitted' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
