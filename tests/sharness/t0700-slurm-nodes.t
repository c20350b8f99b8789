#!/bin/sh
test_description='nodes as Slurm shows them: the partitions that may use them, who drained them and when'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	mkdir bin && for name in scontrol sinfo sbatch; do
		ln -s "$test_build/gpuq/gpuq" bin/$name || return 1
	done && PATH=$PWD/bin:$PATH && export PATH && node=$(uname -n) &&
	cat >site.yaml <<-\END &&
	version: 1
	queues:
	- {name: lab}
	- {name: vision, parent: lab}
	- {name: speech, parent: lab, limit: {default: 0, other: 3}}
	- {name: guests, limit: 0}
	- {name: visitors, parent: guests, limit: 4}
	- {name: interns, limit: {other: 0}}
	flavors:
	- {name: other, match: {product: "none such*"}}
	END
	start_gpuqd --gpus 2 --site site.yaml
'

test_expect_success 'a node names the partitions that may use it, sinfo shows it in these' '
	scontrol show node >out && says out "^ +Partitions=vision,interns$" && scontrol -o show node "$node" >out && says out " Partitions=vision,interns( |$)" &&
	sinfo -h -o "%R %D %N" >out && says out "^vision 1 $node$" && says out "^interns 1 $node$" && says out "^speech 0 *$" && says out "^visitors 0 *$" && ! grep -q "^lab\|^guests" out &&
	sinfo -h -N -o "%R %N" >out && sort out >got && printf "%s\n" "interns $node" "vision $node" >want && test_cmp want got &&
	test "$(sinfo -h -s -p speech -o %F)" = 0/0/0/0 && test -z "$(sinfo -h -N -p speech -o %N)" && test "$(sinfo -h -o "%D %N")" = "1 $node" &&
	sinfo --json >out && tr -d "\n" <out | json sinfo >all && ! grep -q visitors all && grep -q interns all
'

test_expect_success 'a drain has its time and its user, also after a restart' '
	me=$(id -un) && test "$(sinfo -h -p vision -o "%u|%U|%E")" = "Unknown|Unknown|none" && from=$(date +%Y-%m-%dT%H:%M:%S) &&
	scontrol update nodename="$node" state=drain reason="new fan" && to=$(date +%Y-%m-%dT%H:%M:%S) && sinfo -h -R >out && says out "^new fan +$me +20" &&
	sinfo -h -p vision -o "%u|%U|%H|%E" >out && says out "^$me\|$me\($(id -u)\)\|20.*\|new fan$" && at=$(cut -d "|" -f 3 out) &&
	printf "%s\n" "$from" "$at" "$to" >want && sort want >got && test_cmp want got && scontrol show node >out && says out "^ +Reason=new fan \[$me@$at\]$" &&
	gpuq nodes --json >out && test "$(json drained_by <out)" = "$me" && sinfo --json >out && tr -d "\n" <out | json sinfo.0.reason >all && grep -q "$me" all && grep -q "new fan" all &&
	kill_gpuqd && start_gpuqd --gpus 2 && test "$(sinfo -h -p vision -o "%u|%H|%E")" = "$me|$at|new fan" &&
	scontrol update nodename="$node" state=resume && gpuq nodes --json >out && test "$(json drained_by <out)" = null && test "$(json drained_time <out)" = null &&
	kill_gpuqd && start_gpuqd --gpus 2 && test "$(sinfo -h -p vision -o "%u|%E")" = "Unknown|none"
'

test_done
