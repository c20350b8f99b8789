#!/bin/sh
test_description='reservations with pools without nodes in the calendar, users that name a queue'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start with a pool that has no nodes' '
	cat >site.yaml <<-END &&
	version: 1
	flavors: [{name: a}]
	pools: [{name: away, selector: {pool: away}, flavor: a}]
	queues: [{name: q, quota: 4, managers: [daemon]}, {name: r}]
	users: [{name: nobody, reserve: true}]
	END
	start_gpuqd --site "$PWD/site.yaml"
'

test_expect_success 'the calendar has those of pools without nodes' '
	exits 0 gpuq reserve amount -t 2h -g 3 -q q --pool away --start now+1m && exits 0 gpuq reserve whole -t 2h -q q --pool away --start now+1m &&
	exits 0 gpuq reserve window --external --pool away -w 2 -t 2d -q q --start now+1m &&
	gpuq reservations --calendar --days 3 >out && says out "^pool away, 0 GPUs" && says out "^  amount .*3" && says out "^  whole .*[?]" &&
	says out "^  window .*[?]" && says out "[?] not known before its nodes are there" &&
	test "$(gpuq reservations --calendar --json window | json pools.away)" = 0 && gpuq reserve --delete amount whole window
'

test_expect_success ROOT 'users reserve for themselves, and take nothing from the quota of a queue' '
	open_to_all && exits 1 as nobody gpuq reserve -t 1h -g 2 -u nobody -q q && says err "without --queue" &&
	exits 0 as nobody gpuq reserve own -t 1h -g 2 -u nobody && exits 1 as nobody gpuq reserve own -q q &&
	exits 0 as daemon gpuq reserve theirs -t 1h -g 2 -q q && gpuq reserve --delete own theirs
'

test_expect_success 'the daemon ends' '
	stop_gpuqd
'

test_done
