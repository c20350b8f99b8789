#!/bin/sh
test_description='a real node: the walk of gpuq-guide(7), from a script to a notebook'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

python=$(readlink -f /usr/bin/python3)
[ -d "/usr/lib/$(basename "$python")" ] || {
	skip_all='the Debian package python3 is not installed'
	test_done
}

cluster_for_gpuqd --with "$test_source/etc/kubernetes/optional/exec.yaml" --no-kwok --real-node --real-gpus 4
XDG_CACHE_HOME=$PWD/cache && export XDG_CACHE_HOME

test_expect_success 'what administrators have set up: an image, a claim with data, a queue' '
	mkdir -p bin data && chmod 777 data && for name in sbatch squeue sacct scancel seff; do ln -s "$test_build/gpuq/gpuq" bin/$name || return 1; done && PATH=$PWD/bin:$PATH &&
	node_image docker.io/local/python:1 --with "/usr/bin/python=$python" --with "/usr/bin/python3=$python" --with "/usr/lib/$(basename "$python")" &&
	seq 1 10 >data/set && bound_claim datasets "{}" "$PWD/data" &&
	cat >site.yaml <<-END &&
		version: 1
		queues:
		- {name: vision, quota: 4, image: "docker.io/local/python:1", code: true, default_time: 10m, volumes: [{claim: datasets, path: /data}]}
		users: [{name: $(id -un), default_queue: vision}]
	END
	start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 120 node_frees real1 4
'

test_expect_success 'a script and its code, beside each other' '
	mkdir -p proj/runs && cat >proj/model.py <<-\END &&
	def loss(rate, data):
	    if rate > 0.5:
	        raise ValueError(f"rate {rate}: the loss is not a number")
	    return sum(data) * rate
	END
	cat >proj/train.py <<-\END &&
	import os, sys, model
	rate = float(sys.argv[1])
	ckpt = f"/data/ckpt-{rate}"
	tries = int(open(ckpt).read()) if os.path.exists(ckpt) else 0
	open(ckpt, "w").write(str(tries + 1))
	data = [int(line) for line in open("/data/set")]
	limit = float(os.environ.get("RATE_LIMIT", "9"))
	print(f"rate {rate} try {tries + 1} loss {model.loss(min(rate, limit), data):.1f}", flush=True)
	END
	printf "runs\n" >proj/.gpuqignore && cat >proj/train.sh <<-\END &&
	#!/bin/sh
	#SBATCH --job-name=train --gres=gpu:1 --cpus-per-task=1 --mem=200M --time=5
	#SBATCH --output=/data/out-%A_%a.txt
	set -- 0.1 0.2 0.9
	shift "${SLURM_ARRAY_TASK_ID:-0}"
	cd "$SLURM_SUBMIT_DIR" && python train.py "$1"
	END
	sh -n proj/train.sh
'

test_expect_success 'one run: its state, its output, what it used' '
	id=$(cd proj && sbatch --parsable train.sh) && job_becomes "$id" COMPLETED 180 && cat data/out-"$id"_*.txt >out && says out "^rate 0.1 try 1 loss 5.5$" &&
	sacct -n -P -X -j "$id" -o JobName,State,ExitCode >out && says out "^train|COMPLETED|0:0$" && seff "$id" >out && says out "^Job ID: $id$" && says out "^State: COMPLETED" && says out "^CPU Utilized: "
'

test_expect_success 'a sweep, of which one element fails, and why' '
	sweep=$(cd proj && sbatch --parsable --array=0-2 train.sh) && job_becomes "${sweep}_0" COMPLETED 180 && job_becomes "${sweep}_1" COMPLETED 180 && job_becomes "${sweep}_2" FAILED 180 &&
	says "data/out-${sweep}_2.txt" "rate 0.9: the loss is not a number" && says "data/out-${sweep}_1.txt" "^rate 0.2 try 1 loss 11.0$" &&
	sacct -n -P -X -j "$sweep" -s F -o JobID,State >out && says out "^${sweep}_2|FAILED$" && test "$(wc -l <out)" = 1
'

test_expect_success 'the failed one again, with another setting, and the rest not' '
	again=$(cd proj && gpuq resubmit --parsable --failed --env RATE_LIMIT=0.4 "$sweep") && exits 0 gpuq wait "$again" && says "data/out-${again}_2.txt" "^rate 0.9 try 2 loss 22.0$" &&
	gpuq status --json "${again}_2" >out && test "$(json resubmit_of <out)" != null && test ! -e "data/out-${again}_1.txt"
'

fetch() {
	/usr/bin/curl -sS "http://127.0.0.1:$1/api"
}

test_expect_success 'a server of notebooks, by a port of the own machine' '
	cat >proj/notebook.sh <<-\END &&
	#!/bin/sh
	#SBATCH -J notebook --gres=gpu:1 -t 30
	mkdir www && echo "{\"version\": \"of a notebook\"}" >www/api && exec python -m http.server --bind 127.0.0.1 -d www 8888
	END
	book=$(cd proj && sbatch --parsable notebook.sh) && job_becomes "$book" RUNNING 180 && rm -f forward &&
	{ gpuq port-forward "$book" :8888 >forward 2>forward.err & forward=$!; } && wait_for 60 test -s forward && here=$(sed -n "s/^Forwarding 127.0.0.1:\([0-9]*\) -> 8888$/\1/p" forward) && test -n "$here" &&
	wait_for 60 eval "fetch $here | grep \"of a notebook\"" && kill "$forward" && squeue -h -n notebook -o "%i %T" >out && says out "^$book RUNNING$" && scancel "$book" && job_becomes "$book" CANCELLED 60
'

test_expect_success 'nothing was overcommitted' '
	stop_gpuqd && nothing_was_overcommitted
'

test_done
