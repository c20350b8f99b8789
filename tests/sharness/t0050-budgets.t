#!/bin/sh
test_description='budgets: every key and word of them does what it says, and so does every limit of GPU-minutes that decides'
. "$(dirname "$0")/lib.sh"

me=$(id -un)
cat >site.yaml <<END
version: 1
default_budget: {gpu_minutes: 600, period: week}
qos:
- {name: high, priority: 10}
- {name: cheap, usage_factor: 0.5}
queues:
- {name: plain}
- {name: hard, qos: [normal, high, cheap], budget: {gpu_minutes: 10, period: day, mode: hard}}
- {name: late, quota: 0, budget: {gpu_minutes: 0, period: month, mode: soft}}
- {name: early, quota: 0, budget: {gpu_minutes: 1000, period: quarter}}
- {name: owed, quota: 2, budget: {gpu_minutes: 0, period: year}}
- {name: demoted, quota: 2, budget: {gpu_minutes: 0, period: none}, budget_demotes_guarantee: true}
- {name: each, budget: {user_gpu_minutes: 10, mode: hard}}
- {name: fades, budget: {gpu_minutes: 1000, user_gpu_minutes: 1000, half_life: 2s}}
END

# done_with ROW...: these rows of the table of budgets have been met
done_with() {
	for row; do echo "$row" >>met; done
}
none() {
	exits 0 gpuq cancel --me && wait_for 60 eval "test \$(in_queue) = 0"
}
# use QUEUE PATH: of the budget of the queue
use() {
	gpuq usage "$1" --json | head -n 1 | json "$2"
}
# waits REASON OBJECT HAVE NEED [option...]: a job of these options waits for that, and is cancelled
waits() {
	waits_reason=$1 waits_object=$2 waits_have=$3 waits_need=$4
	shift 4
	waits_id=$(sh_job "exit 0" "$@") && wait_for 60 job_is "$waits_id" reason "$waits_reason" &&
		job_is "$waits_id" reasons.0.object "$waits_object" && job_is "$waits_id" reasons.0.have "$waits_have" &&
		job_is "$waits_id" reasons.0.need "$waits_need" && exits 0 gpuq cancel "$waits_id"
}
# runs [option...]: a job that runs until none() ends it
runs() {
	runs_id=$(sh_job "exec sleep 600" "$@") && job_becomes "$runs_id" RUNNING
}
# less X Y
less() {
	awk "BEGIN { exit !($1 < $2) }"
}

test_expect_success 'periods begin where the calendar says, in UTC' '
	start_gpuqd --site "$PWD/site.yaml" && gpuq usage --json >usage &&
	/usr/bin/python3 -c "
import datetime as d, json
now = d.datetime.now(d.timezone.utc)
day = now.replace(hour=0, minute=0, second=0, microsecond=0)
def month(n):
    k = day.month - 1 + n
    return day.replace(day=1, year=day.year + k // 12, month=k % 12 + 1)
want = {\"hard\": (\"day\", day + d.timedelta(days=1)), \"plain\": (\"week\", day + d.timedelta(days=7 - day.weekday())),
        \"late\": (\"month\", month(1)), \"early\": (\"quarter\", month(3 - (day.month - 1) % 3)),
        \"owed\": (\"year\", day.replace(year=day.year + 1, month=1, day=1)), \"demoted\": (\"none\", None)}
for line in open(\"usage\"):
    r = json.loads(line)
    if r[\"queue\"] in want and r[\"user\"] is None:
        word, reset = want.pop(r[\"queue\"])
        got = r[\"reset_time\"] and d.datetime.fromisoformat(r[\"reset_time\"].replace(\"Z\", \"+00:00\"))
        assert r[\"period\"] == word and got == reset, (r, reset)
assert not want, want
" && done_with period period.none period.day period.week period.month period.quarter period.year default_budget
'

test_expect_success 'hard: nothing starts beyond it; what runs holds what it may still use, what ended does not' '
	waits Budget hard 10 11 -p hard -g 1 -t 11 && runs -p hard -g 2 -t 4:15 && waits BudgetCommitted hard 1 5 -p hard -g 1 -t 5 &&
	test "$(use hard budget_gpu_minutes)" = 10 && less 7 "$(use hard committed_gpu_minutes)" && none &&
	id=$(sh_job "exit 0" -p hard -g 2 -t 4) && job_becomes "$id" COMPLETED && test "$(use hard committed_gpu_minutes)" = 0 &&
	done_with gpu_minutes mode mode.hard
'

test_expect_success 'hard: a job without a time limit is told why it can never start' '
	id=$(sh_job "exit 0" -p hard -g 1) && wait_for 60 job_is "$id" reason Budget && gpuq why "$id" >why && says why "Budget" && none
'

test_expect_success 'hard: what an elastic job grows by has to fit, too' '
	echo "{queue: hard, command: [sleep, \"600\"], gpus: 1, time: 3m, pods: {min: 1, max: 4}}" >elastic.yaml &&
	id=$(submit elastic.yaml) && job_becomes "$id" RUNNING && wait_for 60 eval "test \$(gpuq queues hard --json | json allocated) -ge 2" &&
	sleep 1 && less "$(gpuq queues hard --json | json allocated)" 4 && less "$(use hard committed_gpu_minutes)" 10 && none
'

test_expect_success 'what an eviction lost is given back' '
	runs -p hard -g 3 -t 1 && sleep 1.1 && high=$(sh_job "exec sleep 600" -p hard -g 4 -t 1 --qos high) && job_becomes "$high" RUNNING &&
	less 2.9 "$(gpuq report --json --by queue | grep \"hard\" | json refunded_gpu_seconds)" && none
'

test_expect_success 'the factor of a qos counts' '
	id=$(sh_job "exit 0" -p hard -g 1 -t 21 --qos cheap) && wait_for 60 job_is "$id" reason Budget && job_is "$id" reasons.0.need 11
'

test_expect_success 'soft: used up it lowers the standing, takes nothing away, and yields to who is in budget' '
	none && runs -p late -g 4 && late=$runs_id && test "$(use late over_budget)" = true && job_is "$late" state RUNNING &&
	runs -p early -g 4 && job_is "$late" state PENDING && job_is "$late" evictions.0.cause reclaim && none && done_with mode.soft
'

test_expect_success 'soft: a guarantee still protects, unless the site says that it does not' '
	runs -p owed -g 2 && owed=$runs_id && runs -p demoted -g 2 && demoted=$runs_id && runs -p early -g 2 &&
	job_is "$owed" state RUNNING && job_is "$demoted" state PENDING && none && done_with budget_demotes_guarantee
'

test_expect_success 'of each user alone' '
	waits Budget "each/$me" 10 11 -p each -g 1 -t 11 && runs -p each -g 1 -t 6:30 && waits BudgetCommitted "each/$me" 3 5 -p each -g 1 -t 5 &&
	none && test "$(use each budget_gpu_minutes)" = null && exits 1 gpuq queues grant each 5 && says err "no budget" && done_with user_gpu_minutes
'

test_expect_success 'what fades: of the queue and of each user' '
	id=$(sh_job "sleep 2" -p fades -g 4) && job_becomes "$id" COMPLETED && was=$(use fades used_gpu_minutes) && less 0 "$was" &&
	wait_for 60 eval "less \"\$(use fades used_gpu_minutes)\" $was/2" &&
	wait_for 60 eval "less \"\$(gpuq usage fades -u $me --json | json used_gpu_minutes)\" $was/4" && test "$(use fades half_life_s)" = 2 && done_with half_life
'

test_expect_success 'what makes no sense is refused, with its place' '
	bad() { printf "version: 1\nqueues:\n- name: hard\n  budget: %s\n" "$1" >bad.yaml && exits 1 gpuq apply -f bad.yaml && says err "^(gpuq: )?bad.yaml:4:[0-9]+: .*$2"; } &&
	bad "{}" "gpu_minutes" && bad "{period: day}" "gpu_minutes" && bad "{gpu_minutes: -1}" "0" && bad "{gpu_minutes: 5, period: dya}" "day" &&
	bad "{gpu_minutes: 5, period: day, half_life: 1d}" "either" && bad "{gpu_minutes: 5, mode: hrad}" "hard" && bad "{gpu_minuets: 5}" "gpu_minutes" && bad "5" "map"
'

# The keys of `budget` and their words, and what else the site says of budgets: whoever adds one shows it above.
test_expect_success 'no key and no word of budgets is left out' '
	site=$test_source/gpuqd/site/site.c &&
	{
		sed -n "/^static const struct gpuq_field budget_fields/,/END/s/.*F(site_budget, \"\([a-z_]*\)\".*/\1/p" "$site" &&
		for list in periods:period budget_modes:mode; do
			awk -v list="${list%:*}[]" "index(\$0, \" *const \" list) { on = 1 } on; on && /;/ { exit }" "$site" | grep -o "\"[a-z]*\"" | tr -d "\"" | sed "s/^/${list#*:}./" || return 1
		done && cat "$site" "$test_source/gpuqd/site/policy_queue.h" | grep -o "\"[a-z_]*budget[a-z_]*\"" | tr -d "\"" | grep -v "^budget$"
	} | sort -u >all && test -s all && sort -u met >got && test_cmp all got
'

test_expect_success 'the daemon stops' 'stop_gpuqd'

test_done
