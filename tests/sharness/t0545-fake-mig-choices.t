#!/bin/sh
test_description='jobs that accept several MIG profiles, or an instance in place of a part of a device'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/fake.sh"

# offer NODE PROFILE COUNT
offer() {
	/usr/bin/curl -sSf -X PATCH -H "Content-Type: application/merge-patch+json" \
		--data-binary "{\"status\": {\"allocatable\": {\"nvidia.com/mig-$2\": \"$3\"}, \"capacity\": {\"nvidia.com/mig-$2\": \"$3\"}}}" \
		"http://127.0.0.1:$fake_port/api/v1/nodes/$1/status" >/dev/null
}

free_of() { # PROFILE
	gpuq nodes --json | /usr/bin/python3 -c '
import json, sys
print(sum(m["free"] for line in sys.stdin for m in json.loads(line).get("mig", []) if m["profile"] == sys.argv[1]))' "$1"
}

has_free() { # PROFILE N
	[ "$(free_of "$1")" = "$2" ] || { echo "$(free_of "$1") of $1 are free, not $2"; return 1; }
}

limit_of() { # JOB: what its pod asks the device plugin for
	/usr/bin/curl -sSf "http://127.0.0.1:$fake_port/api/v1/namespaces/default/pods" | /usr/bin/python3 -c '
import json, sys
for p in json.load(sys.stdin)["items"]:
    if "-%s-" % sys.argv[1] in p["metadata"]["name"]:
        print(" ".join("%s=%s" % kv for kv in sorted(p["spec"]["containers"][0]["resources"]["limits"].items())))' "$1"
}

profiles() { # JOB: those that its scenario names, in order
	/usr/bin/python3 -c '
import re, sys
for part in re.split(r"\n *- *\{?\"?job\"?: *", open("now.yaml").read()):
    if re.match(r"\"?%s\b" % sys.argv[1], part):
        print(" ".join(re.findall(r"[123]g\.[0-9]+gb", part.split("resources")[0])))' "$1"
}

ended() { # JOB
	gpuq cancel "$1" && job_becomes "$1" CANCELLED
}

test_expect_success 'AC-NV-3: the smallest that holds it; never two of a smaller one, nor a whole device' '
	start_fake && start_fake_gpuqd && offer node-0000 1g.5gb 14 && offer node-0000 2g.10gb 1 && offer node-0000 3g.20gb 2 && wait_for 60 has_free 3g.20gb 2 &&
	a=$(fake_job hang=true --gpu-memory 18Gi --mig-ok) && job_becomes "$a" RUNNING && test "$(limit_of "$a")" = nvidia.com/mig-3g.20gb=1 &&
	job_is "$a" pods.0.mig 3g.20gb && job_is "$a" gpus 0.429 && job_is "$a" isolation mig && has_free 3g.20gb 1 && has_free 1g.5gb 14 &&
	b=$(fake_job hang=true --gpu-memory 18Gi --mig-ok --time 1h) && job_becomes "$b" RUNNING && c=$(fake_job hang=true --gpu-memory 18Gi --mig-ok) && wait_for 60 job_is "$c" reason Resources &&
	gpuq why "$c" >why.out && grep "3g.20gb" why.out && ended "$a" && job_becomes "$c" RUNNING && ended "$b" && ended "$c"
'

test_expect_success '... of a list, whatever its order: the next larger one once that is full; each is charged for what it has' '
	a=$(fake_job hang=true --mig 3g.20gb,2g.10gb) && job_becomes "$a" RUNNING && job_is "$a" pods.0.mig 2g.10gb && job_is "$a" gpus 0.286 &&
	b=$(fake_job hang=true --mig 3g.20gb,2g.10gb) && job_becomes "$b" RUNNING && job_is "$b" pods.0.mig 3g.20gb && job_is "$b" gpus 0.429 && test "$(limit_of "$b")" = nvidia.com/mig-3g.20gb=1 &&
	c=$(fake_job hang=true --mig 3g.20gb,2g.10gb) && job_becomes "$c" RUNNING && d=$(fake_job hang=true --mig 3g.20gb,2g.10gb) && wait_for 60 job_is "$d" reason Resources &&
	job_is "$d" gpus 0.286 && gpuq why "$d" >why.out && grep 2g.10gb why.out && grep 3g.20gb why.out && gpuq status "$b" >status.out && grep "1 x mig 3g.20gb" status.out
'

test_expect_success '... as a restart finds it, and as a scenario has it' '
	kill_gpuqd && start_fake_gpuqd && job_is "$b" pods.0.mig 3g.20gb && wait_for 60 has_free 3g.20gb 0 && has_free 2g.10gb 0 && wait_for 60 job_is "$d" reason Resources &&
	gpuq export --scenario >now.yaml && "$test_build/gpuqd/gpuq-sim" run now.yaml >now.out && says now.out "running +$b +node-0000" && says now.out "pending +$d +Resources 2g.10gb" &&
	test "$(profiles "$d")" = "2g.10gb 3g.20gb" && test "$(profiles "$b")" = "3g.20gb 2g.10gb" &&
	gpuq status "$d" -o yaml >d.yaml && gpuq submit --dry-run -o yaml d.yaml >again.yaml && grep -A2 "mig:" d.yaml >one && grep -A2 "mig:" again.yaml >two && cmp one two && grep 3g.20gb two &&
	ended "$b" && job_becomes "$d" RUNNING && job_is "$d" pods.0.mig 3g.20gb && ended "$a" && ended "$c" && ended "$d"
'

test_expect_success 'a queue of 0.3 devices: the larger one would exceed its limit' '
	echo "{version: 1, queues: [{name: small, limit: {default: 0.3}}]}" >site.yaml && gpuq apply -f site.yaml &&
	a=$(fake_job hang=true -p small --mig 3g.20gb,1g.5gb) && job_becomes "$a" RUNNING && job_is "$a" pods.0.mig 1g.5gb && b=$(fake_job hang=true -p small --mig 3g.20gb,2g.10gb) &&
	wait_for 60 job_is "$b" reason LimitQueue && ended "$a" && job_becomes "$b" RUNNING && job_is "$b" pods.0.mig 2g.10gb && ended "$b"
'

test_expect_success 'elements of an array, and pods of a gang: each start takes one profile' '
	a=$(fake_job hang=true --mig 3g.20gb,2g.10gb --array=0-3) && for i in 0 1 2; do job_becomes "${a}_$i" RUNNING || return 1; done && job_is "${a}_0" pods.0.mig 2g.10gb && job_is "${a}_1" pods.0.mig 3g.20gb &&
	job_is "${a}_2" pods.0.mig 3g.20gb && gpuq cancel "$a" && wait_for 60 has_free 3g.20gb 2 &&
	b=$(fake_job hang=true -N 2 --mig 3g.20gb,2g.10gb 2>warned) && grep "no peer-to-peer" warned && job_becomes "$b" RUNNING && job_is "$b" pods.0.mig 3g.20gb && job_is "$b" pods.1.mig 3g.20gb &&
	gpuq status "$b" >status.out && grep "Note.*no peer-to-peer" status.out && ended "$b" && c=$(fake_job hang=true -g 2 --mig 1g.5gb 2>warned) && test "$(grep -c "no peer-to-peer" warned)" = 1 &&
	job_becomes "$c" RUNNING && job_is "$c" pods.0.instances 2 && ended "$c" && d=$(fake_job hang=true --mig 1g.5gb 2>warned) && ! grep peer-to-peer warned && ended "$d"
'

test_expect_success 'an instance that stands in for a part of a device counts as one, wherever instances are counted' '
	offer node-0001 4g.20gb 1 && wait_for 60 has_free 4g.20gb 1 && a=$(fake_job hang=true -g 0.5 --gpu-memory 4Gi --mig-ok) && job_becomes "$a" RUNNING && job_is "$a" pods.0.mig 4g.20gb &&
	job_is "$a" pods.0.instances 1 && has_free 4g.20gb 0 && gpuq nodes --json >nodes.out && grep -q "\"profile\":\"4g.20gb\",\"state\":\"allocated\"" nodes.out &&
	gpuq queues --json >queues.out && grep "4g.20gb\":1[,}]" queues.out && ended "$a" && has_free 4g.20gb 1
'

refused() { # KEYS TEXT
	echo "{name: x, command: [a], image: i, $1}" >bad.yaml && exits 1 gpuq submit --dry-run bad.yaml && says err "bad.yaml:1:[0-9]*: $2"
}

test_expect_success 'what cannot be is refused where it stands' '
	refused "mig: [1g.5gb, 2x]" "mig\[1\]: expected a MIG profile" && refused "mig: []" "mig: expected at least one" && refused "mig: [1g.5gb, 1g.5gb]" "mig: expected each profile once" &&
	refused "mig_ok: true" "mig_ok: expected gpu_memory beside it" && refused "gpu_memory: 4Gi, mig: 1g.5gb, mig_ok: true" "mig_ok: expected either" &&
	refused "mig: [1g.1gb, 1g.2gb, 1g.3gb, 1g.4gb, 1g.5gb, 1g.6gb, 1g.7gb, 1g.8gb, 1g.9gb]" "mig\[8\]: expected at most 8" &&
	exits 1 gpuq submit --dry-run --mig 1g.5gb, --wrap true && says err "expected a MIG profile" &&
	gpuq submit --dry-run -o yaml --image i --mig 1g.5gb,2g.10gb --wrap true >dry.out && cat dry.out && says dry.out "2g.10gb"
'

no_harm_was_done
test_done
