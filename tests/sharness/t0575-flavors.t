#!/bin/sh
test_description='flavors in order of preference: one is waited for, for a time or up to a price; why shows the clock, plan each flavor'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"
. "$test_source/tests/sharness/fake-devices.sh"

cat >site.yaml <<-END
	version: 1
	currency: EUR
	flavors: [{name: a100-spot, price: 1}, {name: a100, price: 3}]
	pools:
	- {name: s, selector: {buy: spot}, flavor: a100-spot}
	- {name: p, selector: {buy: plain}, flavor: a100}
	queues:
	- {name: q}
	- {name: prefers, flavors: [{name: a100-spot, for: 6h}, a100]}
END

# of 'YAML...': submits a job of one device that runs until it is told to end; prints its id
of() {
	printf "command: [a]\nimage: test\nannotations: {gpuq.test/hang: \"true\"}\ngpus: 1\n$1\n" >of.yaml && submit of.yaml
}

# on JOB FLAVOR: it runs, or will, on that flavor
on() {
	job_is "$1" flavor "$2"
}

test_expect_success 'a device of each flavor, that of the first one is taken' '
	start_fake --nodes 2 --gpus 1 && present="\"nvidia.com/gpu.product\": \"Tesla-T4\"" &&
	offers node-0000 "\"nvidia.com/gpu\": \"1\"" "$present, \"buy\": \"spot\"" && offers node-0001 "\"nvidia.com/gpu\": \"1\"" "$present, \"buy\": \"plain\"" &&
	start_fake_gpuqd --site "$PWD/site.yaml" && wait_for 60 node_is node-0000 pool s && wait_for 60 node_is node-0001 pool p &&
	first=$(of "queue: q\nflavor: a100-spot") && job_becomes "$first" RUNNING 60 && on "$first" a100-spot
'

test_expect_success 'it is waited for although the next one is free, and why shows the clock' '
	wait=$(of "queue: prefers") && wait_for 60 eval "gpuq why $wait >out && says out \"FlavorWait a100-spot: until .* left\"" &&
	job_is "$wait" state PENDING && says out "Resources" && gpuq queue -j "$wait" --json >out && says out FlavorWait
'

test_expect_success 'a scenario of it waits as well' '
	gpuq export --scenario >now.yaml && says now.yaml "for: 6h" && "$test_build/gpuqd/gpuq-sim" run now.yaml >out && says out "FlavorWait"
'

test_expect_success 'plan tells for each flavor when and at what cost' '
	gpuq plan --queue q --gpus 1 --time 1h --flavor a100-spot:2h,a100 --image x -- true >out && says out "^Flavors.*a100-spot: .*1.00 EUR" &&
	says out "a100: .*in (1:59:5|2:00:0).*not before 2:00:00 of waiting.*3.00 EUR" &&
	gpuq plan --queue q --gpus 1 --time 1h --flavor a100-spot,a100 --image x -- true >out && says out "a100: at once.*3.00 EUR" &&
	gpuq plan --json --queue q --gpus 1 --time 1h --flavor a100-spot:2h,a100 --image x -- true >plan.json && test "$(json flavors.1.waited_s <plan.json)" = 7200 &&
	/usr/bin/python3 "$test_source/tests/sharness/check_json.py" "$test_source/man/gpuq-json.5" Plan <plan.json
'

test_expect_success 'a job that does not wait takes the next one at once; a price may be too high' '
	dear=$(of "queue: q\nflavor: [{name: a100-spot}, {name: a100, max_price: 2.5}]") &&
	next=$(of "queue: q\nflavor: [a100-spot, a100]") && job_becomes "$next" RUNNING 60 && on "$next" a100 &&
	job_is "$dear" state PENDING && gpuq cancel "$next" "$dear" && wait_for 60 job_is "$next" state CANCELLED
'

test_expect_success 'the wait ends: the next flavor is used; over a restart the clock runs on' '
	short=$(of "queue: q\nflavor: [{name: a100-spot, for: 8s}, a100]") && kill_gpuqd &&
	start_fake_gpuqd && job_becomes "$short" RUNNING 90 && on "$short" a100 && job_is "$wait" state PENDING
'

test_expect_success 'the flavor comes in time' '
	gpuq cancel "$first" && job_becomes "$wait" RUNNING 60 && on "$wait" a100-spot
'

test_expect_success 'a flavor whose pool is removed: the first reason is the wait; with the pool the job runs' '
	sed "/name: s, /d" site.yaml >less.yaml && gpuq apply --prune -f less.yaml && gone=$(of "queue: q\nflavor: [{name: a100-spot, for: 6h}, a100]") &&
	wait_for 60 job_is "$gone" reason FlavorWait && job_is "$gone" reasons.0.object a100-spot && gpuq cancel "$wait" && gpuq apply -f site.yaml &&
	job_becomes "$gone" RUNNING 60 && on "$gone" a100-spot && of "queue: q\nflavor: [{name: a100-spot, for: 8s}, a100]" >again && gpuq cancel "$(cat again)"
'

test_expect_success 'stored, exported and printed as it was given' '
	gpuq export >exported.yaml && says exported.yaml "for: 6h" && gpuq apply -f exported.yaml --dry-run >out && says out "[Nn]othing" &&
	gpuq submit --dry-run -o yaml of.yaml >out && says out "for: 8s"
'

# refused TEXT FLAVOR: such a job is refused, with file, line and column
refused() {
	printf "queue: q\nimage: x\ncommand: [\"true\"]\ngpus: 1\nflavor: %s\n" "$2" >bad.yaml &&
		exits 1 gpuq submit bad.yaml && { grep -e "$1" err || { cat err; return 1; }; }
}

test_expect_success 'what can have no effect is refused, with its place' '
	refused "bad.yaml:5:.*flavor.*is not followed by another" "[a100, {name: a100-spot, for: 1h}]" &&
	refused "bad.yaml:5:.*unknown key.*refusals" "[{name: a100, refusal: 1}, a100-spot]" &&
	refused "bad.yaml:5:.*for" "[{name: a100, for: 0s}, a100-spot]" && refused "bad.yaml:5:.*refusals" "[{name: a100, refusals: 17}, a100-spot]" &&
	refused "bad.yaml:5:.*max_price" "[{name: a100, max_price: 0}]" && refused "bad.yaml:5:.*name" "[{for: 1h}, a100]" &&
	refused "no pool of a100 requests nodes" "[{name: a100, refusals: 2}, a100-spot]"
'

test_done
