#!/bin/sh
test_description='a server over ssh: a real sshd on loopback, gpuq proxy behind it'
. "$(dirname "$0")/lib.sh"

reason=$(no_sshd)
if [ -n "$reason" ]; then
	skip_all=$reason
	test_done
fi

# refused REGEX address [command...]: exit 255 and one line of standard error, which matches
refused() {
	refused_line=$1 refused_addr=$2
	shift 2
	exits 255 "$@" gpuq --server "$refused_addr" queue && [ "$(wc -l <err)" = 1 ] && says err "$refused_line"
}

test_expect_success 'a daemon, and a sshd that leads to it' '
	start_gpuqd && start_sshd && GPUQ_SERVER=$ssh_server && exits 0 gpuq version && says out "^server"
'

test_expect_success 'a job runs, is waited for and read, as the user that sshd let in' '
	exits 7 gpuq run -- sh -c "echo hello; exit 7" && grep -qx hello out && last_result FAILED 7 &&
	id=$(sh_job "read line; echo got \$line; sleep 1000") && job_becomes "$id" RUNNING &&
	test "$(job "$id" user)" = "$(id -un)" &&
	exits 0 gpuq exec "$id" -- echo inside && grep -qx inside out &&
	exits 3 gpuq exec "$id" -- sh -c "exit 3"
'

test_expect_success 'input of 1 MiB through exec comes back whole' '
	head -c 1048576 /dev/urandom >sent && gpuq exec --stdin "$id" -- cat <sent >back && cmp sent back
'

test_expect_success 'an interrupt ends the job of run: ssh does not die of it first' '
	{ gpuq run --cpus=0 --name=endless -- sleep 1000 >run.out 2>run.err & run_pid=$!; } &&
	wait_for 60 eval "gpuq queue -h -t R -n endless | grep -q ." && kill -INT "$run_pid" && { wait "$run_pid"; test $? = 252; } &&
	says run.err "gpuq-result: .*CANCELLED" && gpuq cancel "$id"
'

test_expect_success 'a daemon that is started anew is found again; meanwhile the reason is said in one line' '
	id=$(sh_job "sleep 1000") && job_becomes "$id" RUNNING && stop_gpuqd &&
	refused "^gpuq: ssh://.*no gpuqd answers at unix:.*/s" "$ssh_server" &&
	start_gpuqd && job_is "$id" state RUNNING && gpuq cancel "$id"
'

test_expect_success 'a host that does not answer, an unknown host key, a key that is not let in' '
	refused "ssh: .*Connection refused" "ssh://$(id -un)@127.0.0.1:$(free_port)" &&
	mv "$ssh_dir/known" known && refused "ssh: Host key verification failed" "$ssh_server" &&
	awk "{ \$3 = \"AAAAC3NzaC1lZDI1NTE5AAAAIBcRXGIBFIpIVFbA3SnSe3/oTE0FtdJ+vXkRLS1qhRmO\"; print }" known >"$ssh_dir/known" &&
	refused "ssh: Host key verification failed" "$ssh_server" && mv known "$ssh_dir/known" &&
	mv "$ssh_dir/authorized" authorized && refused "Permission denied .publickey" "$ssh_server" &&
	mv authorized "$ssh_dir/authorized" && exits 0 gpuq queue
'

test_expect_success 'no gpuq there, and no ssh here' '
	mkdir none && ln -s "$(command -v env)" none/ && ln -s "$test_build/gpuq/gpuq" none/ &&
	refused "ssh is not installed: install" "$ssh_server" env PATH="$PWD/none" &&
	( ssh_path=/usr/bin:/bin && start_sshd && refused "ssh finds no gpuq there .*install it there" "$ssh_server" )
'

test_expect_success 'addresses that are none are refused before anything runs' '
	while read -r addr words; do
		refused "$words" "$addr" || return 1
	done <<-\END
	ssh://-oProxyCommand=touch.x a host does not begin with -
	ssh://ann@-x a host does not begin with -
	ssh:// the host name is not valid
	ssh://ann@ the host name is not valid
	ssh://@host the user name is not valid
	ssh://-ann@host the user name is not valid
	ssh://a$b@host the user name is not valid
	ssh://host:0 the port is not a number
	ssh://host:65536 the port is not a number
	ssh://host:22x the port is not a number
	ssh://host/path the host name is not valid
	ssh://[::1 a ] is missing
	ssh://[::1]x unexpected text after the host
	ssh://h;id the host name is not valid
	END
'

test_expect_success 'proxy connects to a unix socket only, and says when no server is there' '
	exits 255 gpuq proxy --server "$ssh_server" && says err "proxy connects to a unix socket only" &&
	exits 255 gpuq proxy --server unix:/nonexistent && says err "no gpuqd answers"
'

test_done
