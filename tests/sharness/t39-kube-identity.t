#!/bin/sh
test_description='real control plane: pods call gpuqd over TLS with the token of their service account'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

cluster_for_gpuqd --nodes 1

# token NAMESPACE/ACCOUNT AUDIENCE [POD UID]: as the kubelet gets it for a projected volume
token() {
	token_pod=
	[ -z "${3-}" ] || token_pod=", \"boundObjectRef\": {\"kind\": \"Pod\", \"apiVersion\": \"v1\", \"name\": \"$3\", \"uid\": \"$4\"}"
	kube raw POST "/api/v1/namespaces/${1%/*}/serviceaccounts/${1#*/}/token" \
		"{\"apiVersion\": \"authentication.k8s.io/v1\", \"kind\": \"TokenRequest\", \"spec\": {\"audiences\": [\"$2\"], \"expirationSeconds\": 3600$token_pod}}" 2>/dev/null |
		tr -d "\n" | json status.token
}
# away TOKEN command...: with that token, over TLS
away() {
	away_token=$1
	shift
	env XDG_CONFIG_HOME="$PWD/config" GPUQ_SERVER="$address?pin=$pin" GPUQ_TOKEN="$away_token" "$@"
}
refused() {
	refused_line=$1
	shift
	exits 255 away "$@" && [ "$(wc -l <err)" = 1 ] && says err "$refused_line"
}
# an_account NAMESPACE NAME
an_account() {
	echo "{\"apiVersion\": \"v1\", \"kind\": \"ServiceAccount\", \"metadata\": {\"name\": \"$2\", \"namespace\": \"$1\"}}" |
		kube apply -f - >/dev/null
}

test_expect_success 'gpuqd with auth.kubernetes; two accounts, a pod of one' '
	port=$(free_port) && address=tls://127.0.0.1:$port && exits 0 gpuqd --state "$PWD/state" --make-cert localhost && pin=$(sed -n "s/^pin //p" out) &&
	printf "auth: {kubernetes: {queues: [default]}}\n" >gpuqd.yaml && exits 78 gpuqd --config "$PWD/gpuqd.yaml" --cluster local --check && says err "needs cluster: kube" &&
	printf "version: 1\nqueues:\n- {name: default, secrets: any}\n- {name: closed, secrets: any}\n" >site.yaml &&
	start_kube_gpuqd --site "$PWD/site.yaml" --config "$PWD/gpuqd.yaml" --listen "$address" &&
	echo "{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"lab\"}}" | kube apply -f - >/dev/null &&
	an_account lab trainer && an_account lab other &&
	echo "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"client\", \"namespace\": \"lab\"}, \"spec\": {\"serviceAccountName\": \"trainer\", \"containers\": [{\"name\": \"main\", \"image\": \"x\"}]}}" >pod.json &&
	wait_for 30 kube apply -f pod.json && uid=$(kube get lab/pods/client metadata.uid) && good=$(token lab/trainer gpuq client "$uid") && test -n "$good"
'

test_expect_success 'without the right all are refused, and the right is named' '
	refused "no right to ask whose a token is: etc/kubernetes/optional/identity.yaml" "$good" gpuq whoami && { gpuq doctor >doctor.out || true; } &&
	says doctor.out "tokens of service accounts" && kube apply -f "$test_source/etc/kubernetes/optional/identity.yaml" >/dev/null &&
	wait_for 30 away "$good" gpuq whoami
'

test_expect_success 'a pod submits with the token of its service account: it is its own user, no operator' '
	exits 0 away "$good" gpuq whoami && says out "^k8s:lab:trainer, user, by review; scopes read,submit,control; queues default" &&
	exits 1 away "$good" gpuq drain n1 && says err "is for operators" &&
	id=$(printf "image: %s\ncommand: [sleep, 1000]\ncpus: 0\n" "$kube_image" | away "$good" gpuq submit --parsable -) && job_is "$id" user k8s:lab:trainer &&
	other=$(token lab/other gpuq) && exits 0 away "$other" gpuq whoami && says out "^k8s:lab:other," &&
	exits 1 away "$other" gpuq cancel "$id" && exits 0 away "$good" gpuq cancel "$id" &&
	printf "image: x\ncommand: [a]\ncpus: 0\nqueue: closed\n" >closed.yaml && exits 1 away "$good" gpuq submit closed.yaml && says err "may not use queue closed"
'

test_expect_success 'tokens for the apiserver, of another audience, altered, of a person are refused' '
	refused "not for the audience gpuq" "$(kube token lab/trainer)" gpuq whoami && refused "not for the audience gpuq" "$(token lab/trainer gpuq2)" gpuq whoami &&
	refused "does not know the token" "$(echo "$good" | sed "s/.\{20\}\$/AAAAAAAAAAAAAAAAAAAA/")" gpuq whoami && refused "neither gpuq_" "x.y" gpuq whoami &&
	test_must_fail grep -rF "$good" state gpuqd.log
'

test_expect_success 'after a restart of gpuqd the token is reviewed anew; once the pod is gone it is none, and streams end' '
	stop_gpuqd && start_kube_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address" && exits 0 away "$good" gpuq whoami &&
	{ away "$good" gpuq queue --watch=1 >watch.out 2>watch.err & watch_pid=$!; } && wait_for 30 test -s watch.out &&
	kube delete lab/pods/client --grace 0 >/dev/null && wait_for 150 test -s watch.err && test_must_fail wait "$watch_pid" && says watch.err "its pod or account is gone" &&
	refused "its pod or account is gone" "$good" gpuq whoami && exits 0 away "$other" gpuq whoami
'

test_expect_success 'nothing was overcommitted' nothing_was_overcommitted

test_done
