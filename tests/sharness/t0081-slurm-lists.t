#!/bin/sh
test_description='sacctmgr, sshare, --json in the words of Slurm, scontrol write and show config, lists of --gres'
. "$(dirname "$0")/lib.sh"

# value PATH: of the one JSON object in out
value() {
	tr -d "\n" <out | json "$1"
}

test_expect_success 'start' '
	mkdir bin && for name in sbatch scancel scontrol sacct sacctmgr sinfo squeue sshare; do
		ln -s "$test_build/gpuq/gpuq" bin/$name || return 1
	done && PATH=$PWD/bin:$PATH && export PATH && me=$(id -un) && node=$(uname -n) &&
	cat >site.yaml <<-\END &&
	version: 1
	queues:
	- {name: lab, qos: [normal, long], max_time: 2d}
	- {name: vision, parent: lab}
	- {name: speech, parent: lab}
	qos:
	- {name: long, priority: 5, preemptible: false}
	users:
	- {name: ann}
	END
	start_gpuqd --site site.yaml && a=$(sbatch --parsable -p vision -A projectx -J one -G 2 -t 60 --comment hello --wrap "sleep 300") &&
	job_becomes "$a" RUNNING && exits 5 sbatch --parsable --wait -p speech -J five --wrap "exit 5" && b=$(cat out)
'

test_expect_success 'sacctmgr lists users, accounts, associations, qos, clusters' '
	sacctmgr -n -s list user "$me" format=account%256 >out && says out "^ *vision *$" && says out "^ *projectx *$" && says out "^ *speech *$" && ! grep -w lab out &&
	sacctmgr -nP show user format=user >out && says out "^$me$" && says out "^ann$" &&
	sacctmgr show account >out && says out "^ +Account +Descr +Org *$" && says out "^ +vision +vision +lab *$" &&
	sacctmgr -nP show assoc user="$me" account=vision format=cluster,account,user,qos >out && test "$(cat out)" = "gpuq|vision|$me|normal,long" &&
	sacctmgr -nP show assoc format=account,user >out && grep -qxF "projectx|$me" out && grep -qxF "vision|ann" out && ! grep -F "projectx|ann" out &&
	sacctmgr -nP list qos format=name,priority,preemptmode >out && says out "^long\|5\|cluster$" && says out "^normal\|0\|requeue$" &&
	test "$(sacctmgr -nP show cluster format=cluster)" = gpuq && test "$(sacctmgr -np show qos long format=name)" = "long|" &&
	exits 1 sacctmgr add user x && says err "gpuq apply changes users" && exits 1 sacctmgr show tres && says err "gpuq nodes" &&
	exits 1 sacctmgr show user format=usr && says err "did you mean User" && exits 255 sacctmgr --server unix:/nowhere show user
'

test_expect_success 'sshare has its columns' '
	sshare >out && says out "^Account +User +RawShares +NormShares +RawUsage +EffectvUsage +FairShare *$" && says out "^lab " && says out "^ vision " &&
	sshare -U --format Account%256 --noheader >out && says out "^ *vision *$" && ! grep -w lab out &&
	sshare -n -P -a -o account,user,rawshares >out && says out "^lab\|\|1$" && says out "^ +vision\|$me\|" && exits 1 sshare -o nocolumn
'

test_expect_success 'squeue --json' '
	squeue --json >out && test "$(value jobs.0.job_id)" = "$a" && test "$(value jobs.0.job_state.0)" = RUNNING &&
	test "$(value jobs.0.name)" = one && test "$(value jobs.0.partition)" = vision && test "$(value jobs.0.account)" = projectx &&
	test "$(value jobs.0.time_limit.number)" = 60 && test "$(value jobs.0.start_time.set)" = true && test "$(value jobs.0.comment)" = hello &&
	test "$(value jobs.0.array_task_id.set)" = false && test "$(value jobs.0.user_name)" = "$me" && test "$(value errors)" = "[]" &&
	test "$(value meta.plugin.data_parser)" = data_parser/v0.0.42 && squeue --json=v0.0.40 -p speech >out && test "$(value jobs)" = "[]"
'

test_expect_success 'sacct --json' '
	sacct --json -j "$a,$b" >out && test "$(value jobs.0.state.current.0)" = RUNNING && test "$(value jobs.1.state.current.0)" = FAILED &&
	test "$(value jobs.1.exit_code.return_code.number)" = 5 && test "$(value jobs.1.exit_code.status.0)" = ERROR && test "$(value jobs.0.exit_code.status.0)" = PENDING &&
	test "$(value jobs.0.association.account)" = projectx && test "$(value jobs.0.tres.allocated)" != "[]" && test "$(value jobs.1.time.end)" -ge "$(value jobs.1.time.start)"
'

test_expect_success 'sinfo --json' '
	sinfo --json >out && test "$(value sinfo.0.nodes.total)" = 1 && test "$(value sinfo.0.node.state.0)" = MIXED && says out "\"name\": \"vision\"" &&
	says out "\"total\": \"gpu:default:4\"" && says out "\"used\": \"gpu:default:2\"" && sinfo --json -p speech >out && test "$(value sinfo.0.partition.name)" = speech && ! grep -w vision out
'

test_expect_success 'scontrol write batch_script and show config' '
	printf "#!/bin/sh\n#SBATCH -p speech\necho one\n" >one.sh && id=$(sbatch --parsable one.sh) && exits 0 gpuq wait "$id" &&
	scontrol write batch_script "$id" - >out && test_cmp one.sh out && scontrol write batch_script "$id" >out && test_cmp one.sh "slurm-$id.sh" &&
	scontrol write batch_script "$id" there.sh && test_cmp one.sh there.sh && exits 1 scontrol write batch_script "$id" /nowhere/x && says err "/nowhere/x" &&
	exits 1 scontrol write batch_script 999 && scontrol show config >out && says out "^ClusterName +:?= gpuq$" && says out "^AccountingStorageType +:?= accounting_storage/slurmdbd$"
'

test_expect_success 'a kind of --gres that there is not is named, with what to do' '
	exits 1 sbatch -p speech --gres=gpu:1,lustre:2 --wrap true && says err "lustre is unknown, as the site maps no gres" && says err "licenses" &&
	exits 1 sbatch -p speech --gres=nvme:1 --wrap true && says err "nvme" && exits 1 sbatch --gres=gpu:a:1,gpu:b:1 --wrap true && says err "groups" &&
	exits 1 sbatch --gres=gpu:1,shard:2 --wrap true && says err "gpu-memory" && exits 0 sbatch -H -p speech --gres=gres/gpu:2 --wrap true
'

test_done
