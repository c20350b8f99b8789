#!/bin/sh
test_description='a key makes a submission happen once'
. "$(dirname "$0")/lib.sh"

test_expect_success 'the same key is the same job' '
	start_gpuqd && echo "command: [\"true\"]" >job.yaml &&
	one=$(submit --key build-7 job.yaml) && two=$(submit --key build-7 job.yaml) && test "$one" = "$two" &&
	three=$(submit --key build-8 job.yaml) && test "$three" = $((one + 1))
'

test_expect_success 'after it has ended, too' '
	exits 0 gpuq wait "$one" && test "$(submit --key build-7 job.yaml)" = "$one" &&
	exits 0 gpuq submit --wait --key build-7 job.yaml
'

test_expect_success 'and after a kill of the daemon' '
	kill_gpuqd && start_gpuqd && test "$(submit --key build-7 job.yaml)" = "$one"
'

test_expect_success 'several documents under one key are the same several jobs' '
	printf "command: [\"true\"]\n---\ncommand: [\"true\"]\n" >two.yaml &&
	submit --key pair two.yaml >first && submit --key pair two.yaml >second &&
	test_cmp first second && test "$(sort -u first | wc -l)" = 2
'

test_expect_success 'a key that was used for another request is refused, whatever differs' '
	last=$(submit job.yaml) && echo "command: [\"false\"]" >other.yaml && exits 1 submit --key build-7 other.yaml && says err "used for another request .job $one" &&
	exits 1 submit --key build-7 --nice=1 job.yaml && says err "another request" && exits 1 submit --key build-7 two.yaml && says err "another request" &&
	exits 1 submit --key pair job.yaml && says err "another request" && test "$(submit --key build-7 job.yaml)" = "$one" &&
	test "$(submit job.yaml)" = $((last + 1))
'

test_expect_success 'a key of 128 bytes is the longest' '
	long=$(printf "%0128d" 7) && submit --key "$long" job.yaml &&
	exits 2 gpuq submit --key "${long}x" job.yaml
'

test_expect_success ROOT 'keys of different users are different keys' '
	open_to_all && mine=$(submit --key shared job.yaml) &&
	theirs=$(as nobody env HOME=/ gpuq submit --parsable --key shared - <job.yaml) &&
	test "$mine" != "$theirs"
'

test_expect_success 'at the same time, too' '
	racers= && for n in 1 2 3 4 5 6 7 8; do { submit --key race job.yaml >race.$n & racers="$racers $!"; } || return 1; done &&
	for n in $racers; do wait "$n" || return 1; done &&
	test "$(cat race.? | sort -u | wc -l)" = 1 && stop_gpuqd
'

test_done
