#!/bin/sh
test_description='gpuq diag, doctor and backup: figures, advice, and a copy from which all comes back'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start; a job that has ended, one that runs, one that waits' '
	start_gpuqd && done=$(sh_job "exit 3") && job_becomes "$done" FAILED && run=$(sh_job "sleep 300" -g 4) &&
	job_becomes "$run" RUNNING && wait=$(sh_job "sleep 300" -g 4 -J a-name) && wait_for 60 job_is "$wait" reason Resources
'

test_expect_success 'figures that follow what happens' '
	gpuq diag --json >diag.json && test "$(json scheduler.cycles <diag.json)" -gt 2 && test "$(json scheduler.starts <diag.json)" = 2 &&
	test "$(json journal.records <diag.json)" -gt 5 && test "$(json queues.waiting_jobs <diag.json)" = 1 &&
	test "$(json store.records.history <diag.json)" -ge 1 && test "$(json cluster.connected <diag.json)" = true &&
	gpuq diag >out && says out "^scheduler.cycles +[0-9]+\$" && says out "^journal.last +[0-9.]+ ms\$"
'

test_expect_success 'nothing is wrong here' '
	exits 0 gpuq doctor && says out "^ok +cluster +the cluster .local. is reachable" && says out "^ok +nodes" && ! grep -q "^bad" out
'

test_expect_success 'a copy while it runs' '
	gpuq backup copy.mdb && test -s copy.mdb && test "$(stat -c %a copy.mdb)" = 600 &&
	gpuq backup - >second.mdb && test -s second.mdb && ls state >left && ! grep copy- left
'

test_expect_success ROOT 'only for operators' '
	open_to_all && mkdir -m 777 theirs && exits 1 as nobody env HOME=/ gpuq backup "$PWD/theirs/copy.mdb" && says err "operator|not allowed|role" &&
	! test -e theirs/copy.mdb
'

test_expect_success 'a copy that the server writes: a new file, whole or not there' '
	mkdir there && gpuq backup --server-path "$PWD/there/copy.mdb" >out && says out "^Backed up .* to .*/there/copy.mdb" &&
	test "$(ls -A there)" = copy.mdb && test "$(stat -c %a there/copy.mdb)" = 600 &&
	sum=$(cksum <there/copy.mdb) && exits 1 gpuq backup --server-path "$PWD/there/copy.mdb" && says err "exists" &&
	test "$(cksum <there/copy.mdb)" = "$sum" && ln -s nowhere there/link && exits 1 gpuq backup --server-path "$PWD/there/link" &&
	exits 1 gpuq backup --server-path "$PWD/no-such-folder/x" && exits 1 gpuq backup --server-path relative/x && says err "absolute path" &&
	exits 2 gpuq backup && exits 2 gpuq backup --server-path "$PWD/there/y" z && test "$(ls -A there | wc -l)" = 2
'

test_expect_success ROOT 'an operator who is not gpuqd: only into backup_dir' '
	chmod a+rwx there && printf "operators: [nobody]\nbackup_dir: %s\n" "$PWD/there" >ops.yaml && stop_gpuqd && start_gpuqd --config ops.yaml && open_to_all &&
	exits 1 as nobody env HOME=/ gpuq backup --server-path "$PWD/elsewhere.mdb" && says err "backup_dir" &&
	exits 1 as nobody env HOME=/ gpuq backup --server-path "$PWD/there/../copy2.mdb" && exits 0 as nobody env HOME=/ gpuq backup --server-path "$PWD/there/ours.mdb" &&
	test -s there/ours.mdb && ! test -e elsewhere.mdb && ! test -e copy2.mdb
'

test_expect_success 'what came after it is not in it' '
	later=$(sh_job "sleep 300") && gpuq cancel "$later" "$wait" && stop_gpuqd
'

test_expect_success 'restored as the manual says: the jobs of that moment are there' '
	mv state lost && start_gpuqd --restore "$PWD/copy.mdb" &&
	job_is "$done" state FAILED && job_is "$done" exit_code 3 && job_is "$wait" name a-name &&
	exits 254 gpuq status "$later" && wait_for 60 job_is "$run" reason RestoredUnknown && next=$(sh_job "exit 0") && test "$next" -gt 1000000
'

test_expect_success 'and they go on' '
	gpuq cancel "$run" && job_becomes "$wait" RUNNING && gpuq cancel "$wait" && exits 0 gpuq wait "$next" && stop_gpuqd
'

test_expect_success 'without a server there is advice' '
	exits 1 gpuq doctor && says out "^bad +server" && says out "start gpuqd"
'

test_done
