# mig.sh - what the tests of nodes that gpuqd has cut share; sourced after fake.sh or kube.sh

# manager KUBECONFIG: a MIG manager, which does as the file `how` says; its log is manager.log
manager() {
	echo obey >how
	: >manager.log
	"$test_source/tests/kube/mig-manager" "$1" "$PWD/manager.log" "$PWD/how" </dev/null >>manager.err 2>&1 3>&- 4>&- 5>&- &
	wait_for 60 grep -q ready manager.log
}

does() {
	echo "$1" >how.new && mv how.new how
}

# n_set NODE LAYOUT: how often the node was told to have it
n_set() {
	grep -c "^set $1 $2 " manager.log
}

# offers NODE PROFILE N: as gpuqd knows it
offers() {
	offers_got=$(gpuq nodes --json | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    n = json.loads(line)
    if n["name"] == sys.argv[1]: print(" ".join(m["profile"] + " " + str(m["count"]) for m in n.get("mig", [])))' "$1")
	[ "$offers_got" = "$2 $3" ] || { echo "$1 offers '$offers_got', not $2 $3"; return 1; }
}

# cut_is NODE KEY WANT: of the last time that gpuqd had it cut
cut_is() {
	cut_got=$(gpuq nodes --json | grep "\"name\":\"$1\"" | json "mig_layout.$2")
	[ "$cut_got" = "$3" ] || { echo "$2 of the layout of $1 is $cut_got, not $3"; return 1; }
}

# says_cut JOB NODE: gpuq why tells that it waits for that node
says_cut() {
	gpuq why "$1" >why.out && grep "MIG layout: node $2 is being cut" why.out
}
