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

test_done
