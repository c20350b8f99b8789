#!/bin/sh
test_description='batch scripts in the style of those that are written for Slurm do what they say'
. "$(dirname "$0")/lib.sh"

# tests/sharness/sbatch/README says what the lines at the end of each script mean.
scripts=$test_source/tests/sharness/sbatch

test_expect_success 'start, with the commands of Slurm in the path' '
	cat >site.yaml <<-\END &&
	version: 1
	flavors: [{name: a100, match: {product: "*"}}]
	pools: [{name: all, flavor: a100}]
	qos: [{name: short, max_time: 24h}]
	queues: [{name: default}, {name: gpu}]
	licenses: [{name: matlab, count: 1}]
	END
	start_gpuqd --site site.yaml && node=$(gpuq nodes --json | json name) && mkdir bin &&
	for name in sbatch salloc scancel scontrol sacct sinfo squeue srun; do
		ln -s "$test_build/gpuq/gpuq" bin/$name || return 1
	done &&
	printf "#!/bin/sh\necho torchrun \"\$@\"\necho threads=\$OMP_NUM_THREADS\n" >bin/torchrun &&
	printf "#!/bin/sh\necho \$CUDA_VISIBLE_DEVICES | tr , \"\\\\n\" | sed \"s/^/GPU /\"\n" >bin/nvidia-smi &&
	chmod +x bin/torchrun bin/nvidia-smi && PATH=$PWD/bin:$PATH && export PATH
'

# said SCRIPT WORD: what stands behind "# WORD: " in it
said() {
	sed -n "s/^# $2: //p" "$1"
}

# each SCRIPT WORD: does every line of that
each() {
	said "$1" "$2" >"$TMPDIR/each" || return 1
	while IFS= read -r each_line <&8; do
		eval "$each_line" 8<&- || { echo "this failed: $each_line"; return 1; }
	done 8<"$TMPDIR/each"
}

# by_hand: a wrapper, which submits jobs itself
by_hand() {
	timeout 100 sh "$script" >runs.out 2>runs.err || { echo "exit status $?"; cat runs.out runs.err; return 1; }
}

by_sbatch() {
	ends=$(said "$script" ends) warns=$(said "$script" warns)
	eval "sbatch --parsable $(said "$script" submit) \"\$script\" $(said "$script" args)" >id 2>err
	submitted=$?
	if [ "$ends" = refused ]; then
		test $submitted = 1
		return
	fi
	test $submitted = 0 || { cat err; return 1; }
	id=$(cat id)
	said "$script" warns >warns
	while IFS= read -r line; do says err "$line" || return 1; done <warns
	each "$script" meanwhile || return 1
	[ "$ends" != no ] || return 0
	code=$(said "$script" exit) state=$(said "$script" state)
	exits "${code:-0}" gpuq wait --timeout 100s "$id" || { gpuq status "$id"; tail -n 5 ./*.out; return 1; }
	[ -z "$state" ] || job_is "$id" state "$state"
}

# run SCRIPT: in a folder of its own
run() {
	script=$1
	mkdir "$(basename "$1").d" && cd "$(basename "$1").d" || return 1
	each "$script" before || return 1
	case $(said "$script" runs) in
	sh) by_hand || return 1 ;;
	*) by_sbatch || return 1 ;;
	esac
	each "$script" check
}

for script in "$scripts"/${GPUQ_TEST_SCRIPTS:-[0-9]*}; do
	# shellcheck disable=SC2046 # a word or none
	test_expect_success $(said "$script" needs) "$(basename "$script")" '
		top=$PWD && { run "$script"; ran=$?; cd "$top"; test $ran = 0; }
	'
done

test_expect_success 'nothing is left' '
	gpuq queue -o JOBID,NAME,STATE && test "$(in_queue)" = 0 && stop_gpuqd
'

test_done
