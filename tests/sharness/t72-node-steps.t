#!/bin/sh
test_description='a real node: steps over pods whose image has no gpuq'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"
. "$test_source/tests/sharness/mpi.sh"

module=$test_build/gpuq/slurm/mpi/.libs/libgpuq-pmix.so
[ -e "$module" ] || skip_all='gpuq was built without openpmix (libpmix-dev)'
hello_of openmpi -DHOST || skip_all='the Debian packages openmpi-bin and libopenmpi-dev are not installed'
[ -z "${skip_all-}" ] || test_done

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/exec.yaml" --no-kwok --real-node --real-gpus 4

# gang "OPTION..." COMMAND...: a script of two pods
gang() {
	printf '#!/bin/sh\n#SBATCH -N 2 -c 1 -J world %s\nexport OMPI_MCA_mca_base_component_show_load_errors=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n' "$1" >gang.sh
	shift
	echo "$*" >>gang.sh && submit gang.sh
}

# both_logs JOB: the logs of both pods are in out
both_logs() {
	gpuq logs --pod=0 "$1" >out && gpuq logs --pod=1 "$1" >>out
}

# ends JOB CODE: it does, with the logs of both pods in out. Of a job that fails one pod ends and the other is told to
# leave, which is removed when it has left: its log is there because the site keeps logs, a moment after the end.
ends() {
	gpuq wait "$1" >wait.out 2>&1
	ended=$?
	cat wait.out && wait_for 60 both_logs "$1" && cat out && test $ended = "$2"
}

# whole_world N SUM: the ranks of both pods are in out
whole_world() {
	seq 0 $(($1 - 1)) | sed "s/.*/rank & of $1 sum $2/" >want && grep "rank [0-9]* of" out | sed "s/^.*rank/rank/; s/ on .*//" | sort >got && test_cmp want got &&
		test "$(grep "rank [0-9]* of" out | sed "s/.* on //" | sort -u | wc -l)" = 2
}

site() {
	printf "version: 1\nlogs_keep: {time: 1d, size: 64Ki}\nsteps: {image: docker.io/local/%s}\nqueues: [{name: default, quota: 4, image: \"docker.io/local/openmpi:1\"}]\n" "$1" >site.yaml
}

test_expect_success 'an image with gpuq, and one with OpenMPI alone' '
	lib=/usr/lib/x86_64-linux-gnu &&
	node_image docker.io/local/steps:1 --with "/usr/bin/gpuq=$test_build/gpuq/gpuq" --with "/usr/bin/slurm/mpi/.libs/libgpuq-pmix.so=$module" &&
	node_image docker.io/local/openmpi:1 --with "/usr/bin/hello=$PWD/hello.openmpi" --with $lib/openmpi --with $lib/pmix2 --with $lib/libpmix.so.2 \
		--with "/usr/bin/mpirun=$(command -v mpirun.openmpi)" --with /usr/bin/orted --with /etc/openmpi --with /usr/share/openmpi &&
	{ exec nsenter -t "$(cut -d" " -f1 "$TMPDIR/k/run/node.pid")" -n "$kube_tools/dns" "$TMPDIR/k/admin.kubeconfig" >dns.log 2>&1 3>&- 4>&- 5>&- & } &&
	site openmpi:1 && start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 120 node_frees real1 4
'

test_expect_success 'steps: {image} without gpuq is named' '
	id=$(gang "" srun --ntasks-per-node=2 hello) && job_becomes "$id" FAILED 120 && gpuq status "$id" >out && cat out && says out "gpuq was not copied into the pod"
'

test_expect_success 'ranks of two pods, whose image has no gpuq, are one world' '
	site steps:1 && gpuq apply -f site.yaml && id=$(gang "" srun --ntasks-per-node=2 hello) && ends "$id" 0 && whole_world 4 6
'

test_expect_success 'from salloc an srun in each pod starts its ranks' '
	mkdir bin && ln -s "$test_build/gpuq/gpuq" bin/salloc && ln -s "$test_build/gpuq/gpuq" bin/srun && PATH=$PWD/bin:$PATH &&
	exits 0 salloc -Q -N 2 -c 1 srun --mpi=pmix --label --ntasks-per-node=2 hello && cat out err && whole_world 4 6
'

test_expect_success '--launch: the script runs in the first pod alone, mpirun in it in both' '
	id=$(gang --launch "echo begun; mpirun hello; echo code \$?; mpirun hello 9") && ends "$id" 9 && whole_world 2 1 && test "$(grep -c "^begun" out)" = 1 && says out "^code 0$"
'

test_expect_success 'srun in it starts the tasks of both' '
	id=$(gang --launch "srun --ntasks-per-node=2 hello; echo code \$?") && ends "$id" 0 && whole_world 4 6 && test "$(grep -c "^code 0" out)" = 1
'

test_expect_success 'launch: true of the queue: a script that knows nothing of it runs once' '
	printf "version: 1\nqueues: [{name: default, launch: true}]\n" >more.yaml && gpuq apply -f more.yaml && id=$(gang "" "echo begun; srun --ntasks-per-node=2 hello; echo code \$?") &&
	ends "$id" 0 && whole_world 4 6 && test "$(grep -c "^begun" out)" = 1 && test "$(grep -c "^code 0" out)" = 1
'

test_expect_success 'a job of one pod has nothing of it' '
	printf "#!/bin/sh\n#SBATCH -c 1\nls -d /gpuq*\n" >one.sh && id=$(submit one.sh) && exits 0 gpuq wait "$id" && gpuq logs "$id" >out && cat out && test "$(cat out)" = /gpuq
'

test_expect_success 'nothing was overcommitted' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
