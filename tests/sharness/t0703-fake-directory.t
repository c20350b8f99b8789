#!/bin/sh
test_description='a script that is submitted from a directory that its pod does not have: a warning, once'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

XDG_CACHE_HOME=$PWD/cache && export XDG_CACHE_HOME

# warns QUEUE FILE OPTION...: submits with one such warning
warns() {
	exits 0 gpuq submit --hold -p "$@" && says err "warning: the pod will not have $PWD, .*--code . .code: true.*volume.*--code none" && test "$(wc -l <err)" = 1
}

silent() {
	exits 0 gpuq submit --hold -p "$@" && test_must_be_empty err
}

test_expect_success 'queues whose pods have the directory, and some whose have not' '
	cat >site.yaml <<-END &&
	version: 1
	image: base
	flavors: [{name: near, volumes: [{claim: home, path: "$PWD"}]}, {name: far}]
	queues:
	- {name: none}
	- {name: placed, workdir: /jobs}
	- {name: sends, code: true}
	- {name: home, volumes: [{claim: home, path: "${PWD%/*}"}]}
	- {name: both, flavors: [far, near]}
	END
	cp site.yaml flavors.yaml && sed -i "/^flavors/d; s/flavors: .far, near./weight: 1/" site.yaml &&
	printf "#!/bin/sh\n#SBATCH -c 1 -N 2\npython train.py\n" >job.sh && mkdir bin && ln -s "$test_build/gpuq/gpuq" bin/sbatch && echo bin >.gpuqignore &&
	start_fake && start_fake_gpuqd --site "$PWD/site.yaml"
'

test_expect_success 'a script in a pod without it: gpuq submit, sbatch, from standard input, many of them' '
	warns none job.sh && warns placed job.sh && warns none - <job.sh && warns none -a 0-9 job.sh &&
	exits 0 gpuq submit --hold -p none --chdir /elsewhere job.sh && says err "the pod will not have $PWD" && says err "[-]-chdir /elsewhere is ignored" &&
	exits 0 bin/sbatch -H -p none job.sh && says err "sbatch: warning: the pod will not have $PWD" && test "$(wc -l <err)" = 1 &&
	printf "script: a\n---\nscript: b\n" >two.yaml && warns none two.yaml && exits 0 gpuq submit --dry-run -p none job.sh && says err "will not have"
'

test_expect_success 'nothing is said where code or a volume brings it, or the job says that it needs none' '
	silent none --code . job.sh && silent none --code none job.sh && silent sends job.sh && silent home job.sh &&
	silent none --volume "home:$PWD" job.sh && silent none --volume data:/data --chdir /data/x job.sh && printf "script: a\nworkdir: /opt\n" >job.yaml && silent none job.yaml
'

test_expect_success 'nor for commands, and for a job that changes' '
	silent none --wrap "hostname" && exits 0 bin/sbatch -H -p none --wrap hostname && test_must_be_empty err && printf "command: [hostname]\n" >job.yaml && silent none job.yaml &&
	id=$(gpuq submit --hold --parsable -p none job.sh) && exits 0 gpuq update "$id" time=5m && test_must_be_empty err
'

test_expect_success 'a flavor may have the volume, which is not known before the job has its devices' '
	gpuq apply -f flavors.yaml && for more in "" "--flavor far,near" "--flavor near"; do
		exits 0 gpuq submit --hold -p both -g 1 $more job.sh && ! grep "will not have" err || return 1
	done && exits 0 gpuq submit --hold -p both -g 1 --flavor far job.sh && says err "will not have"
'

test_expect_success 'on the local cluster jobs run in it' '
	stop_gpuqd && rm -r state && start_gpuqd && exits 0 gpuq submit --hold job.sh && test_must_be_empty err
'

no_harm_was_done

test_done
