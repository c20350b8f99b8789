#!/bin/sh
test_description='steps: {image} brings gpuq into pods of a gang; launch runs the script in the first alone'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

launch="'gpuq', 'slurm', 'srun', '--mpi=launch', '--', "

site() {
	printf "version: 1\n%s\nqueues: [{name: default, quota: 8, image: base}]\n" "$1" >site.yaml
}

# pods ID EXPR: of the spec of its first pod
pod() {
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods" | /usr/bin/python3 -c '
import json, sys
s = [p for p in json.load(sys.stdin)["items"] if p["metadata"]["labels"].get("gpuq.io/job") == sys.argv[1]][0]["spec"]
main, init = s["containers"][0], s.get("initContainers", [None])[0]
print(eval(sys.argv[2]))' "$1" "$2"
}

hangs() {
	id=$(submit --annotation=gpuq.test/hang=true "$@") && job_becomes "$id" RUNNING 60
}

test_expect_success 'on the local cluster the first pod runs it, and finds this machine' '
	start_gpuqd && printf "#!/bin/sh\n#SBATCH -N 2 -c 1 --launch\necho begun; cat \$OMPI_MCA_orte_default_hostfile; gpuq slurm srun sh -c \"echo task \\\$SLURM_PROCID of \\\$SLURM_NTASKS\"; exit 4\n" >gang.sh &&
	id=$(submit gang.sh) && exits 4 gpuq wait --timeout 60s "$id" && gpuq logs "$id" >out && cat out && test "$(grep -c begun out)" = 1 && says out "localhost slots=2" && test "$(grep -c "task [01] of 2" out)" = 2 &&
	printf "pods: 2\nlaunch: true\ncommand: [sh, -c, echo once]\n" >job.yaml && id=$(submit job.yaml) && exits 0 gpuq wait --timeout 60s "$id" && gpuq logs "$id" >out && test "$(grep -c once out)" = 1 && stop_gpuqd && rm -r state
'

test_expect_success 'as a default: the script of sbatch runs once, and says otherwise' '
	printf "version: 1\nlaunch: true\nqueues: [{name: default, quota: 8}, {name: plain, launch: false}, {name: below, parent: plain, quota: 8}]\n" >all.yaml &&
	start_gpuqd --site "$PWD/all.yaml" && printf "#!/bin/sh\n#SBATCH -N 2 -c 1\necho begun; gpuq slurm srun sh -c \"echo task \\\$SLURM_PROCID\"\n" >gang.sh &&
	for more in "1 -p default" "1 -p default --launch" "2 --no-launch" "2 -p below" "1 -p below --launch"; do
		exits 0 gpuq submit --parsable ${more#? } gang.sh || return 1
		id=$(cat out) && exits 0 gpuq wait --timeout 60s "$id" && gpuq logs "$id" >got && cat got && test "$(grep -c begun got)" = "${more%% *}" && test "$(grep -c task got)" = 2 || { echo "$more"; return 1; }
	done && gpuq status -o yaml "$id" >got && says got "^launch: true" && exits 0 gpuq submit --dry-run -o yaml gang.sh && says out "^launch: true" && exits 0 gpuq submit --dry-run -o yaml --no-launch gang.sh && says out "^launch: false" &&
	printf "#!/bin/sh\necho once\n" >plain.sh && exits 0 gpuq submit --dry-run -o yaml --pods 2 plain.sh && ! grep launch out && exits 0 gpuq submit --dry-run -o yaml -N 1 gang.sh && ! grep launch out &&
	exits 0 gpuq slurm sbatch -N 2 --wait --wrap "echo once" && test "$(cat slurm-*.out | grep -c once)" = 1 && printf "pods: 2\ncommand: [true]\n" >job.yaml && exits 0 gpuq submit --dry-run -o yaml job.yaml && ! grep launch out
'

test_expect_success 'the site has the key as it was given, and refuses other values' '
	gpuq export >got && says got "^launch: true" && test "$(grep -c "launch: false" got)" = 1 && gpuq apply -f got --dry-run >out && says out "Nothing changes" &&
	printf "version: 1\nlaunch: maybe\n" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "bad.yaml:2:.*expected true or false" && printf "launch: 1\ncommand: [a]\n" >bad.yaml && exits 1 gpuq submit bad.yaml && says err "bad.yaml:1:.*true or false"
'

test_expect_success 'where every pod runs it, one that calls srun or mpirun is told so, once' '
	for line in "srun ./prog" "  time mpirun -np 4 prog" "/usr/bin/mpiexec prog"; do
		printf "#!/bin/sh\n#SBATCH -N 2 -c 1\n: nothing\n%s\n" "$line" >calls.sh && exits 0 gpuq submit --hold -p below calls.sh && says err "warning: each of the 2 pods runs the whole script, which calls (srun|mpirun|mpiexec): with --launch .*--no-launch" &&
		test "$(wc -l <err)" = 1 && exits 0 gpuq submit --hold -p below --no-launch calls.sh && test_must_be_empty err && exits 0 gpuq submit --hold -p below --launch calls.sh && test_must_be_empty err &&
		exits 0 gpuq submit --hold calls.sh && test_must_be_empty err && exits 0 gpuq submit --hold -N 1 -p below calls.sh && test_must_be_empty err || { echo "$line"; return 1; }
	done && printf "#!/bin/sh\n#SBATCH -N 2 -c 1\n# srun in a comment\nmysrun; srun_of=1; ./srun.sh\n" >calls.sh && exits 0 gpuq submit --hold -p below calls.sh && test_must_be_empty err &&
	stop_gpuqd && rm -r state
'

test_expect_success 'start' '
	site "" && start_fake && start_fake_gpuqd --site "$PWD/site.yaml" &&
	printf "#!/bin/sh\n#SBATCH -N 2 -c 1 --mem 1G\nsrun hostname\n" >gang.sh
'

test_expect_success 'a site that says nothing has no such container' '
	hangs gang.sh && test "$(pod "$id" "init, main[\"command\"]")" = "(None, ['\''/gpuq/script'\''])" && gpuq cancel "$id" &&
	printf "pods: 2\nlaunch: true\ncommand: [mpirun, prog]\n" >job.yaml && hangs job.yaml &&
	test "$(pod "$id" "main[\"command\"]")" = "[$launch'\''mpirun'\'', '\''prog'\'']" && gpuq status -o yaml "$id" >out && says out "^launch: true" && gpuq cancel "$id"
'

test_expect_success 'the container of a gang asks for what the pod has, and puts srun in the way of the script' '
	site "steps: {image: tools}" && gpuq apply -f site.yaml && hangs gang.sh &&
	test "$(pod "$id" "init[\"name\"], init[\"image\"], init[\"command\"]")" = "('\''gpuq-steps'\'', '\''tools'\'', ['\''gpuq'\'', '\''slurm'\'', '\''srun'\'', '\''--carry-to=/gpuq-steps'\''])" &&
	test "$(pod "$id" "init[\"resources\"] == main[\"resources\"], main[\"command\"]")" = "(True, ['\''/gpuq-steps/enter'\'', '\''/gpuq/script'\''])" &&
	test "$(pod "$id" "[(m.get(\"readOnly\"), m[\"mountPath\"]) for m in main[\"volumeMounts\"] if m[\"name\"] == \"gpuq-steps\"]")" = "[(True, '\''/gpuq-steps'\'')]" && gpuq cancel "$id"
'

test_expect_success 'a job of one pod, and one without tasks, have none; a command that is srun does' '
	hangs -N 1 gang.sh && test "$(pod "$id" "init, main[\"command\"]")" = "(None, ['\''/gpuq/script'\''])" && gpuq cancel "$id" &&
	printf "pods: 2\ncommand: [sleep, 9]\n" >job.yaml && hangs job.yaml && test "$(pod "$id" "init, main[\"command\"]")" = "(None, ['\''sleep'\'', '\''9'\''])" && gpuq cancel "$id" &&
	printf "pods: 2\nntasks: 2\ncommand: [sleep, 9]\n" >job.yaml && hangs job.yaml && test "$(pod "$id" "init[\"image\"], main[\"command\"][0]")" = "('\''tools'\'', '\''sleep'\'')" && gpuq cancel "$id" &&
	printf "pods: 2\nntasks: 2\ncommand: [srun, date]\n" >job.yaml && hangs job.yaml && test "$(pod "$id" "main[\"command\"]")" = "['\''/gpuq-steps/enter'\'', '\''srun'\'', '\''date'\'']" && gpuq cancel "$id"
'

test_expect_success 'launch: of several pods srun runs the script' '
	hangs --launch gang.sh &&
	test "$(pod "$id" "main[\"command\"]")" = "['\''/gpuq-steps/enter'\'', $launch'\''/gpuq/script'\'']" && gpuq cancel "$id" &&
	hangs --launch -N 1 gang.sh && test "$(pod "$id" "init, main[\"command\"]")" = "(None, ['\''/gpuq/script'\''])" && gpuq cancel "$id"
'

test_expect_success 'a default of the queue runs it so, and doctor tells where the pods may lack srun' '
	printf "version: 1\nqueues: [{name: default, launch: true}]\n" >more.yaml && gpuq apply -f more.yaml && exits 0 gpuq apply -f more.yaml && hangs gang.sh &&
	test "$(pod "$id" "main[\"command\"]")" = "['\''/gpuq-steps/enter'\'', $launch'\''/gpuq/script'\'']" && gpuq cancel "$id" && { gpuq doctor >out || :; } && ! grep "launch: true" out &&
	printf "version: 1\nlaunch: true\nsteps: null\nqueues: [{name: default, launch: null}]\n" >more.yaml && gpuq apply -f more.yaml && { gpuq doctor >out || :; } && says out "queue default has srun run the scripts" && gpuq diag --json >out && says out "launch_without_steps.*default" &&
	site "steps: {image: tools}" && echo "launch: null" >>site.yaml && gpuq apply -f site.yaml && hangs gang.sh && test "$(pod "$id" "main[\"command\"]")" = "['\''/gpuq-steps/enter'\'', '\''/gpuq/script'\'']" && gpuq cancel "$id"
'

test_expect_success 'a manifest cannot launch; steps without image, or with another key, is refused' '
	printf "apiVersion: v1\nkind: Pod\nmetadata: {name: m}\nspec: {containers: [{name: a, image: b}]}\n" >pod.yaml && exits 1 gpuq submit --launch pod.yaml && says err "manifest says this itself" &&
	printf "launch: true\ncpus: 1\ntemplate: {spec: {containers: [{name: a, image: b, resources: {requests: {cpu: 1}}}]}}\n" >job.yaml && exits 1 gpuq submit job.yaml && says err "job.yaml:1:.*launch" &&
	site "steps: {}" && exits 1 gpuq apply -f site.yaml && says err "image" && site "steps: {image: tools, keep: 1h}" && exits 1 gpuq apply -f site.yaml && says err "keep"
'

test_expect_success 'gpuq that is carried runs where there is a shell and nothing else' '
	mkdir -p root/bin root/steps root/proc && exits 0 gpuq slurm srun --carry-to="$PWD/root/steps" && test -x root/steps/lib/ld.so && find root/steps -type f ! -perm 755 >out && ! grep . out &&
	exits 0 "$PWD/root/steps/srun" --mpi=list && says out "launch" && exits 0 "$PWD/root/steps/gpuq" --version && exits 5 "$PWD/root/steps/enter" sh -c "exit 5" &&
	exits 1 gpuq slurm srun --carry-to=/nowhere/at/all && says err "/nowhere/at/all.*No such file"
'

test_expect_success 'in a root of its own' '
	if busybox=$(command -v busybox) && [ "$(id -u)" = 0 ]; then
		rm -rf root/steps && mkdir -p root/gpuq-steps root/dev && : >root/dev/null && for p in sh hostname cat; do cp "$busybox" root/bin/$p || return 1; done && exits 0 gpuq slurm srun --carry-to="$PWD/root/gpuq-steps" &&
		sed -i "s:$PWD/root::g" root/gpuq-steps/srun root/gpuq-steps/gpuq root/gpuq-steps/enter &&
		exits 0 env GPUQ_JOB_ID=3 PATH=/bin "$(command -v chroot)" root /gpuq-steps/enter srun --mpi=none -n 2 sh -c "echo in \$SLURM_PROCID" && test "$(sort out)" = "$(printf "in 0\nin 1")"
	fi
'

no_harm_was_done

test_done
