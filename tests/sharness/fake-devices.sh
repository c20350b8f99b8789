# fake-devices.sh - nodes of the fake apiserver with devices and resources of all kinds; sourced after fake.sh

api() { # METHOD PATH [BODY]
	/usr/bin/curl -sSf -X "$1" -H "Content-Type: application/merge-patch+json" ${3:+--data-binary "$3"} "http://127.0.0.1:$fake_port/api/v1$2"
}

# offers NODE '"NAME": "N", ...' ['"LABEL": "VALUE", ...']: what it offers besides
offers() {
	api PATCH "/nodes/$1/status" "{\"status\": {\"capacity\": {$2}, \"allocatable\": {$2}}}" >/dev/null &&
		api PATCH "/nodes/$1" "{\"metadata\": {\"labels\": {${3-}}}}" >/dev/null
}

# node NODE JSONPATH
node() {
	gpuq nodes --json | grep "\"name\":\"$1\"" | json "$2"
}

node_is() { # NODE JSONPATH VALUE
	[ "$(node "$1" "$2")" = "$3" ] || { echo "$1 $2 is '$(node "$1" "$2")', not '$3'"; return 1; }
}

# limits ID: what the first container of its pod asks for
limits() {
	api GET "/namespaces/default/pods?labelSelector=gpuq.io/job=$1" | json items.0.spec.containers.0.resources.limits
}

# all_gone: cancels all jobs, and waits for their devices
all_gone() {
	gpuq cancel -t R,PD,CF >/dev/null
	wait_for 60 eval "[ -z \"\$(gpuq queue -h)\" ]"
}

# pod NAME 'LIMITS': a manifest that hangs
pod() {
	cat <<-END
	{apiVersion: v1, kind: Pod, metadata: {name: $1, annotations: {gpuq.test/hang: "true"}},
	 spec: {containers: [{name: c, image: test, command: [a], resources: {limits: {$2}}}]}}
	END
}

# theirs NAME NODE 'LIMITS': a pod that gpuqd did not make
theirs() {
	api POST /namespaces/default/pods "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"$1\", \"annotations\": {\"gpuq.test/hang\": \"true\"}},
		\"spec\": {\"nodeName\": \"$2\", \"containers\": [{\"name\": \"c\", \"image\": \"test\", \"resources\": {\"limits\": {$3}}}]}}" >/dev/null
}

# offers_hami NODE: a T4 that HAMi splits in ten
offers_hami() {
	hami_card="{\\\"id\\\":\\\"GPU-a\\\",\\\"index\\\":0,\\\"count\\\":10,\\\"devmem\\\":15360,\\\"devcore\\\":100,\\\"type\\\":\\\"NVIDIA-T4\\\",\\\"numa\\\":0,\\\"health\\\":true}" &&
	offers "$1" "\"nvidia.com/gpu\": \"10\"" && api PATCH "/nodes/$1" "{\"metadata\": {\"annotations\": {\"hami.io/node-nvidia-register\": \"[$hami_card]\"}}}" >/dev/null
}
