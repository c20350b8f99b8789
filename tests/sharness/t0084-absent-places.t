#!/bin/sh
test_description='nodes and labels that do not exist are told at submit'
. "$(dirname "$0")/lib.sh"

test_expect_success 'a node that does not exist is named, with the nearest one' '
	start_gpuqd && node=$(gpuq nodes --json | json name) && printf "#!/bin/sh\ntrue\n" >job.sh &&
	gpuq submit --dry-run -w "${node}x" job.sh >out 2>err && says err "no node is named ${node}x .did you mean $node" &&
	gpuq submit --dry-run -w "$node" job.sh >out 2>err && ! grep "no node" err
'

test_expect_success 'a label that no node has is named' '
	gpuq submit --dry-run -C disk=ssd job.sh >out 2>err && says err "no node has a label that the job asks for: disk=ssd" &&
	id=$(gpuq submit --parsable -C disk=ssd job.sh 2>err) && says err "disk=ssd" && job_is "$id" state PENDING && gpuq cancel "$id" && stop_gpuqd
'

test_done
