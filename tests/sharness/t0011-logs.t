#!/bin/sh
test_description='the output of jobs'
. "$(dirname "$0")/lib.sh"

test_expect_success 'start' '
	start_gpuqd
'

test_expect_success 'of a job that has ended' '
	id=$(sh_job "echo out; echo err >&2") && exits 0 gpuq wait "$id" &&
	gpuq logs "$id" >out && sort out >got && printf "err\nout\n" >want && test_cmp want got
'

test_expect_success 'byte for byte' '
	head -c 300000 /dev/urandom >noise && id=$(sh_job "cat \"$PWD/noise\"") && exits 0 gpuq wait "$id" &&
	gpuq logs "$id" >out && test_cmp noise out
'

test_expect_success 'of one that runs' '
	id=$(sh_job "echo first; sleep 300") && wait_for 60 eval "gpuq logs $id | grep first"
'

test_expect_success 'following it to its end' '
	follow=$(sh_job "echo first; until [ -e \"$PWD/go\" ]; do sleep 0.05; done; echo last; exit 4") &&
	{ gpuq logs -f "$follow" >followed & follower=$!; } && wait_for 60 grep -q first followed &&
	test_must_fail grep -q last followed && touch go && wait "$follower" &&
	printf "first\nlast\n" >want && test_cmp want followed
'

test_expect_success 'following one that has not begun waits for it' '
	held=$(sh_job "echo begun" --hold) && { gpuq logs -f "$held" >later & follower=$!; } &&
	gpuq release "$held" && wait "$follower" && says later "^begun$"
'

test_expect_success 'the last lines' '
	id2=$(sh_job "seq 1 100") && exits 0 gpuq wait "$id2" && gpuq logs --tail 3 "$id2" >out &&
	printf "98\n99\n100\n" >want && test_cmp want out
'

test_expect_success 'a reader that goes away is no harm' '
	loud=$(sh_job "yes | head -c 20000000") && gpuq logs -f "$loud" | head -n 1 &&
	exits 0 gpuq wait "$loud" && gpuq version
'

test_expect_success 'of one that has not begun' '
	held=$(sh_job "echo x" --hold) && test_might_fail gpuq logs "$held" >out 2>err && test_must_be_empty out &&
	gpuq cancel "$held"
'

test_expect_success 'to a file of the job instead' '
	cat >filed.sh <<-\END &&
	#!/bin/sh
	#SBATCH --output=job-%j.txt
	echo in the file
	END
	id3=$(submit filed.sh) && exits 0 gpuq wait "$id3" && says "job-$id3.txt" "^in the file$"
'

test_expect_success 'they outlive the daemon' '
	kill_gpuqd && start_gpuqd && gpuq logs "$id2" | tail -n 1 >out && says out "^100$" && gpuq cancel "$id"
'

test_expect_success ROOT 'others do not see them' '
	open_to_all && exits 1 as nobody env HOME=/ gpuq logs "$id2" &&
	test_must_be_empty out
'

test_expect_success ROOT 'under root a job is run as who submitted it, in a group of processes of its own' '
	mkdir -m 777 open && id4=$(cd open && printf "#!/bin/sh\nid -un; pwd\n" |
		as nobody env HOME=/ gpuq submit --parsable -) &&
	exits 0 gpuq wait "$id4" && gpuq logs "$id4" >out && says out "^nobody$" && says out "/open$" &&
	job_is "$id4" user nobody
'

test_expect_success 'end' '
	stop_gpuqd
'

test_done
