#!/bin/sh
test_description='a job that names several queues goes to the one that starts it first, else to the first that accepts it, and is told so'
. "$(dirname "$0")/lib.sh"

names() {
	mkdir -p bin && ln -s "$test_build/gpuq/gpuq" "bin/$1"
}

# in_queue JOB QUEUE
in_queue() {
	job_is "$1" queue "$2"
}

test_expect_success 'queues with rules of their own' '
	names sbatch && names scontrol &&
	cat >site.yaml <<-END &&
		version: 1
		queues:
		- {name: short, max_time: 1h, max_gpus: {job: 1}}
		- {name: long, max_time: 10d}
		- {name: others}
		- {name: tight, limit: 1}
	END
	start_gpuqd --gpus 4 --site "$PWD/site.yaml" && gpuq queues close others
'

test_expect_success 'the first, where it accepts the job; sbatch prints its line alone' '
	printf "#!/bin/sh\n#SBATCH -p short,long\n#SBATCH -t 30\nsleep 100\n" >a.sh && bin/sbatch a.sh >out 2>err && says out "^Submitted batch job [0-9]*$" && says err "queue short is the first of short,long that accepts the job" &&
	a=$(sed -n "s/.*job //p" out) && in_queue "$a" short && gpuq status -o yaml "$a" >out && says out "^queue: short$"
'

test_expect_success 'the next, where the first does not, with the cause' '
	printf "#!/bin/sh\n#SBATCH -p short,long -t 5:00:00\nsleep 100\n" >b.sh && b=$(gpuq submit --parsable b.sh 2>err) && in_queue "$b" long && says err "queue long is the first of short,long .*; queue short does not accept it: .*longer than queue short" &&
	c=$(gpuq submit --parsable --queue others,nowhere,short,long --gpus 2 -t 10 --wrap true 2>err) && in_queue "$c" long && says err "others does not accept it" && says err "no queue is named nowhere" && says err "short does not accept it"
'

test_expect_success 'none: refused with all causes, and nothing is stored' '
	exits 1 gpuq submit --queue others,short -t 9h --wrap true && says err "none of the queues accepts the job; queue others .*; queue short" &&
	exits 1 gpuq submit --queue short,long -d afterok:999 --wrap true && says err "none of the queues"
'

test_expect_success 'a list in a job file, in update and in --dry-run; lists that are none' '
	printf "queue: short,long\ntime: 2h\ncommand: [sleep, \"100\"]\n" >job.yaml && gpuq submit --dry-run --json job.yaml >out 2>err && test "$(json spec.queue <out)" = long &&
	d=$(submit --hold job.yaml) && in_queue "$d" long && gpuq update "$d" time=30m && gpuq update "$d" queue=short,long && in_queue "$d" short &&
	exits 1 gpuq submit --queue short,,long --wrap true && exits 1 gpuq submit --queue "$(seq -s, 1 17)" --wrap true && says err "at most 16 queues" &&
	printf "queue: \"short,\"\ncommand: [x]\n" >bad.yaml && exits 1 gpuq submit bad.yaml && says err "bad.yaml:1:.*with commas"
'

test_expect_success 'of those that accept it the one that is planned to start it first; with --key, held or alike the first' '
	t=$(submit -p tight,long -g 1 -t 2h --wrap "sleep 1000" 2>err) && in_queue "$t" tight && job_becomes "$t" RUNNING &&
	u=$(gpuq submit --parsable -p tight,long -g 1 -t 1h --wrap "sleep 1000" 2>err) && in_queue "$u" long && says err "queue long is the one of tight,long that would start the job first, at 2" && ! grep "is the first of" err &&
	u=$(bin/sbatch --parsable -p others,tight,long -G 1 -t 1:00 --wrap "sleep 1000" 2>err) && in_queue "$u" long && says err "would start the job first" &&
	u=$(gpuq submit --parsable -p tight,long -g 1 --hold --wrap true 2>err) && in_queue "$u" tight && says err "queue tight is the first of tight,long" &&
	u=$(gpuq submit --parsable --key one -p tight,long -g 1 -t 1h --wrap true 2>err) && in_queue "$u" tight && test "$(gpuq submit --parsable --key one -p tight,long -g 1 -t 1h --wrap true 2>err)" = "$u" &&
	gpuq cancel --me
'

test_expect_success 'accounts as Slurm has them' '
	e=$(submit -p long -A ann@v100 --wrap true) && job_is "$e" account ann@v100 && exits 1 gpuq submit -A "a b" --wrap true
'

test_done
