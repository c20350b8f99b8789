#!/bin/sh
test_description='who asked to be told is told: webhooks, mail, failures, restarts'
. "$(dirname "$0")/lib.sh"

# start_hook [PORT]: a receiver; its port in $port
start_hook() {
	mkdir -p hook && rm -f hook/port || return 1
	/usr/bin/python3 "$test_source/tests/sharness/hook.py" hook "$@" >>hook.log 2>&1 3>&- 4>&- &
	hook_pid=$!
	wait_for 60 test -s hook/port && port=$(cat hook/port)
}
stop_hook() {
	kill $hook_pid && wait $hook_pid
	:
}

# got PATH: of all that came, a line each
got() {
	touch hook/got && json "$1" <hook/got
}
# told COUNT EVENT: so many messages of this event have come
told() {
	told_n=$(got body.event | grep -cx "$2")
	[ "$told_n" = "$1" ] || { echo "$told_n times $2:"; cat hook/got; return 1; }
}
figure() {
	[ "$(gpuq diag --json | json "notify.$1")" = "$2" ] || { gpuq diag --json | json notify; return 1; }
}

test_expect_success 'a receiver, a mail command, a daemon that knows them' '
	cat >mail.sh <<-END &&
	#!/bin/sh
	# The folder is named by the file, as the command runs somewhere else.
	n=\$(ls "$PWD/mails" | wc -l)
	test ! -e "$PWD/mail-fails" || { echo "no such mailbox"; exit 67; }
	test ! -e "$PWD/mail-hangs" || sleep 60
	echo "\$*" >"$PWD/args"
	cat >"$PWD/mails/.new" && mv "$PWD/mails/.new" "$PWD/mails/\$n"
	END
	chmod +x mail.sh && mkdir mails && start_hook &&
	cat >gpuqd.yaml <<-END &&
	notify:
	  mail_command: ["$PWD/mail.sh", -t, "a b"]
	  mail_from: gpuq@cluster.example
	  mail_allowed: ["@example.org"]
	  mail_timeout: 1s
	  webhook_allowed: ["http://127.0.0.1:$port/user/"]
	  webhook_timeout: 3s
	  keep: 1h
	  webhooks:
	  - {name: pager, url: "http://127.0.0.1:$port/site", on: [fail]}
	END
	gpuqd --config gpuqd.yaml --check && start_gpuqd --config gpuqd.yaml
'

test_expect_success 'begin and end of a job, told once, with an id that is no other' '
	id=$(sh_job "exit 0" -J trained -g 1 --notify begin,end --webhook "http://127.0.0.1:$port/user/ann?k=v") &&
	exits 0 gpuq wait "$id" && wait_for 60 told 1 end && told 1 begin &&
	test "$(got path | sort -u)" = "/user/ann?k=v" && test "$(got type | sort -u)" = application/json &&
	tail -n 1 hook/got | json body >end.json && test "$(json job.id <end.json)" = "$id" &&
	test "$(json job.state <end.json)" = COMPLETED && test "$(json job.exit_code <end.json)" = 0 &&
	test "$(json job.name <end.json)" = trained && test "$(json version <end.json)" = 1 &&
	test "$(json id <end.json)" = "$(tail -n 1 hook/got | json id)" && test "$(got id | sort -u | wc -l)" = 2 &&
	wait_for 60 figure waiting 0 && wait_for 60 figure webhooks 2
'

test_expect_success 'the body is what gpuq-json(5) says' '
	got body | /usr/bin/python3 "$test_source/tests/sharness/check_json.py" "$test_source/man/gpuq-json.5" "Message to a webhook"
'

test_expect_success 'a failure: the owner by mail, the site by its webhook' '
	id=$(sh_job "exit 3" -J sunk --mail-type=FAIL --mail-user=ann@example.org) && { gpuq wait "$id" || :; } && job_becomes "$id" FAILED &&
	wait_for 60 test -s mails/0 && wait_for 60 told 1 fail && tail -n 1 hook/got | json path | grep -x /site &&
	grep -x "To: ann@example.org" mails/0 && grep -x "From: gpuq@cluster.example" mails/0 &&
	grep -x "Subject: gpuq: job $id (sunk) FAILED, exit code 3" mails/0 && grep -x "Auto-Submitted: auto-generated" mails/0 &&
	says mails/0 "^Message-ID: <gpuq-[0-9a-f]{8}-[0-9]+@cluster.example>\$" && says mails/0 "^State: +FAILED" &&
	says args "^-t a b\$"
'

test_expect_success 'nobody is told who did not ask' '
	rm -f hook/got && id=$(sh_job "exit 0" --notify fail --webhook "http://127.0.0.1:$port/user/x") && exits 0 gpuq wait "$id" &&
	mark=$(sh_job "exit 0" --notify end --webhook "http://127.0.0.1:$port/user/x") && exits 0 gpuq wait "$mark" &&
	wait_for 60 told 1 end && told 0 fail
'

test_expect_success 'where a job may send is what the site allows' '
	exits 1 sh_job "exit 0" --webhook "http://127.0.0.1:$port/other" && says err "not allowed" && says err "/user/" &&
	exits 1 sh_job "exit 0" --webhook "http://127.0.0.1:$port/user/../site" && says err "steps" &&
	exits 1 sh_job "exit 0" --webhook "http://127.0.0.1:$port/user/%2e%2E/site" && says err "steps" &&
	exits 1 sh_job "exit 0" --webhook "http://a@127.0.0.1:$port/user/" && says err "without a user" &&
	exits 1 sh_job "exit 0" --webhook "file:///etc/passwd" && says err "https" &&
	exits 1 sh_job "exit 0" --mail-type END --mail-user eve@example.com && says err "not allowed" &&
	exits 1 sh_job "exit 0" --mail-type END --mail-user -oQ/tmp && says err "mail address" &&
	printf "command: [\"true\"]\nnotify: {on: [end], mail: \"a@example.org\\\\nBcc: b@example.org\"}\n" >bad.yaml &&
	exits 1 gpuq submit bad.yaml && says err "mail address" &&
	printf "command: [\"true\"]\nnotify: [finish]\n" >bad.yaml && exits 1 gpuq submit bad.yaml && says err "bad.yaml:2:.*expected begin, end"
'

test_expect_success 'an array as a whole, or element by element' '
	rm -f hook/got && id=$(sh_job "exit 0" -a 0-2 --notify begin,end --webhook "http://127.0.0.1:$port/user/a") &&
	exits 0 gpuq wait "$id" && wait_for 60 told 1 end && wait_for 60 figure waiting 0 && told 1 end && told 1 begin &&
	test "$(tail -n 1 hook/got | json body.job.array_index)" = null && rm -f hook/got &&
	id=$(sh_job "exit 0" -a 0-2 --notify end,array_tasks --webhook "http://127.0.0.1:$port/user/a") &&
	exits 0 gpuq wait "$id" && wait_for 60 told 3 end && wait_for 60 figure waiting 0 && told 3 end &&
	test "$(got body.job.array_index | sort | tr "\n" " ")" = "0 1 2 "
'

test_expect_success 'the clock of a job, and its requeue' '
	rm -f hook/got && id=$(sh_job "sleep 300" -t 4s --notify time_50,time_limit,requeue --webhook "http://127.0.0.1:$port/user/t") &&
	job_becomes "$id" RUNNING && gpuq requeue "$id" && wait_for 60 told 1 requeue && wait_for 60 told 1 time_50 &&
	job_becomes "$id" TIMEOUT && wait_for 60 told 2 time_limit && told 1 time_50 &&
	test "$(got path | sort | uniq -c | tr -s " \n" " ")" = " 1 /site 3 /user/t " &&
	gpuq events "$id" --json | json event | grep -qx job.time_passed
'

test_expect_success 'what it waits for cannot happen any more' '
	rm -f hook/got && a=$(sh_job "exit 1" --hold) && b=$(sh_job "exit 0" -d afterok:"$a" --notify invalid_depend --webhook "http://127.0.0.1:$port/user/d") &&
	gpuq release "$a" && wait_for 60 told 1 invalid_depend && gpuq cancel "$b"
'

test_expect_success 'refused for good: given up at once, and told in the audit' '
	echo 404 >hook/answer && rm -f hook/got && before=$(gpuq diag --json | json notify.given_up) &&
	id=$(sh_job "exit 0" --notify end --webhook "http://127.0.0.1:$port/user/gone") && exits 0 gpuq wait "$id" &&
	wait_for 60 figure given_up $((before + 1)) && wait_for 60 figure waiting 0 && told 1 end &&
	gpuq events --audit --json | grep notify.given_up >audit.json && tail -n 1 audit.json | grep "job/$id" &&
	! grep user/gone audit.json
'

test_expect_success 'redirects are not followed' '
	echo "302 http://127.0.0.1:$port/site" >hook/answer && rm -f hook/got && before=$(gpuq diag --json | json notify.given_up) &&
	id=$(sh_job "exit 0" --notify end --webhook "http://127.0.0.1:$port/user/r") && exits 0 gpuq wait "$id" &&
	wait_for 60 figure given_up $((before + 1)) && test "$(got path)" = /user/r
'

test_expect_success 'a receiver in trouble is tried again, with the same id' '
	echo 503 >hook/answer && rm -f hook/got && id=$(sh_job "exit 0" --notify begin,end --webhook "http://127.0.0.1:$port/user/s") &&
	exits 0 gpuq wait "$id" && wait_for 60 told 2 begin && rm hook/answer && wait_for 60 told 1 end &&
	test "$(got body.event | uniq | tr "\n" " ")" = "begin end " && test "$(got id | sort -u | wc -l)" = 2 && wait_for 60 figure waiting 0
'

test_expect_success 'one who does not answer keeps no other waiting' '
	stop_hook && id=$(sh_job "exit 0" --notify end --webhook "http://127.0.0.1:$port/user/down" --mail-type END --mail-user ann@example.org) &&
	rm -f mails/* && exits 0 gpuq wait "$id" && wait_for 60 test -s mails/0 && wait_for 60 figure waiting 1 &&
	wait_for 60 eval "gpuq diag --json | json notify.last_error | grep -i connect" && gpuq diag --json | json notify.last_error | grep "127.0.0.1" && gpuq diag >out && ! grep user/down out
'

test_expect_success 'killed meanwhile: told after the restart, when the receiver is back' '
	kill_gpuqd && rm -f hook/got && start_gpuqd --config gpuqd.yaml && wait_for 60 figure waiting 1 && start_hook "$port" &&
	wait_for 60 told 1 end && test "$(got body.job.id)" = "$id" && wait_for 60 figure waiting 0
'

test_expect_success 'killed between the answer and its note: told once more under the same id' '
	stop_gpuqd && rm -f hook/got && GPUQ_FAILPOINT=notify.sent=kill start_gpuqd --config gpuqd.yaml &&
	id=$(sh_job "exit 0" --notify end --webhook "http://127.0.0.1:$port/user/k") && wait_for 60 gpuqd_is_dead &&
	{ wait "$gpuqd_pid" || gpuqd_pid=; } && test -z "$gpuqd_pid" && start_gpuqd --config gpuqd.yaml && wait_for 60 told 2 end &&
	test "$(got id | sort -u | wc -l)" = 1 && wait_for 60 figure waiting 0
'

test_expect_success 'a mail command that fails or hangs is tried again' '
	rm -f mails/* && touch mail-fails && id=$(sh_job "exit 0" --mail-type END --mail-user ann@example.org) && exits 0 gpuq wait "$id" &&
	wait_for 60 eval "gpuq diag --json | json notify.last_error | grep mailbox" && rm mail-fails && touch mail-hangs &&
	wait_for 60 eval "gpuq diag --json | json notify.last_error | grep long" && rm mail-hangs && wait_for 60 test -s mails/0 && wait_for 60 figure mails 1
'

test_expect_success 'doctor and export of the settings' '
	exits 0 gpuq doctor && says out "notify" && gpuqd --config gpuqd.yaml --print-config >out && says out "webhook_allowed"
'

test_expect_success 'SIGHUP: another webhook, another command, other places that users may name' '
	sed -e "s|^  - {name: pager.*|  - {name: other, url: \"http://127.0.0.1:$port/moved\", on: [fail]}|" \
		-e "s|/user/|/people/|" gpuqd.yaml >gpuqd.new && mv gpuqd.new gpuqd.yaml && kill -HUP "$gpuqd_pid" &&
	wait_for 60 grep -q "config.reload.*webhooks=1" gpuqd.log &&
	exits 1 gpuq submit --notify end --webhook "http://127.0.0.1:$port/user/x" --wrap true && says err "webhook" &&
	n=$(sh_job "exit 3" -J moved --notify end --webhook "http://127.0.0.1:$port/people/x") && job_becomes "$n" FAILED &&
	wait_for 60 eval "got path | grep -x /moved" && wait_for 60 eval "got path | grep -x /people/x"
'

test_expect_success 'a file that is wrong changes nothing' '
	echo "notify: {no_such: 1}" >>gpuqd.yaml && kill -HUP "$gpuqd_pid" && wait_for 60 grep -q "config.reload.*old settings stay" gpuqd.log &&
	n=$(sh_job "exit 3" -J again) && job_becomes "$n" FAILED && wait_for 60 eval "test \$(got path | grep -cx /moved) = 2"
'

test_expect_success 'a site that sends no mail says so, and takes the job' '
	stop_gpuqd && rm -rf state && start_gpuqd && id=$(sh_job "exit 0" --mail-type END 2>err) && says err "mail: not configured" &&
	exits 0 gpuq wait "$id" && figure waiting 0 && stop_gpuqd && stop_hook
'

test_done
