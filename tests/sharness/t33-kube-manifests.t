#!/bin/sh
test_description='real control plane: manifests are faithful, and wrong fields are refused at submit'
. "$(dirname "$0")/lib.sh"
. "$test_source/tests/sharness/kube.sh"

manifests=$test_source/tests/manifests

cat >site.yaml <<'END'
version: 1
topology: [cloud.provider.com/topology-rack]
queues:
- {name: default, secrets: any}
- {name: user-queue}
- {name: team-a, service_account: runner}
- {name: team-b, service_accounts: [train*]}
- {name: research}
- {name: main}
- {name: dws-queue}
END

cluster_for_gpuqd

# a_node NAME PRODUCT [option]...
a_node() {
	node_name=$1 node_product=$2
	shift 2
	cluster node "$node_name" gpus=16 cpu=128 memory=1024Gi rdma/ib=16 "product=$node_product" \
		label=cloud.google.com/gke-nodepool=dws-pool label=cloud.provider.com/topology-rack=r1 "$@"
}

# submit_manifest FILE: prints the ids, one a line; no line where gpuq refuses it
submit_manifest() {
	set -- "$1" $(sed -n '1s/^# submit: //p' "$1")
	gpuq submit --parsable "$@" 2>>submit.err
}

test_expect_success 'nodes with enough of everything' '
	a_node n1 NVIDIA-A100-SXM4-80GB && a_node n2 NVIDIA-A100-SXM4-80GB && a_node n3 NVIDIA-A100-SXM4-80GB && bound_claim datasets &&
	cluster node mig gpus=0 label=nvidia.com/gpu.product=A100-SXM4-40GB nvidia.com/mig-1g.5gb=2 &&
	start_kube_gpuqd --site "$PWD/site.yaml" && wait_for 60 node_is n3 idle
'

test_expect_success 'a wrong field of a pod is refused at submit, with its path; nothing is stored' '
	exits 1 gpuq submit "$manifests/13-pod-typo-nodeselector.yaml" &&
	says err "unknown field \"spec.nodeSelektor\"" && gpuq queue -h >queue && test ! -s queue
'

test_expect_success 'so is a value that the apiserver does not take, also by a dry run and in a gang' '
	cat >bad.yaml <<-"END" &&
	apiVersion: batch/v1
	kind: Job
	metadata: {name: bad}
	spec:
	  parallelism: 2
	  template:
	    spec:
	      restartPolicy: Never
	      containers:
	      - {name: main, image: a, imagePullPolicy: Sometimes}
	END
	exits 1 gpuq submit bad.yaml && says err "imagePullPolicy" && says err "Sometimes" &&
	exits 1 gpuq submit --dry-run bad.yaml && says err "imagePullPolicy" && gpuq queue -h >queue && test ! -s queue
'

test_expect_success 'warnings of the apiserver are passed on, and the job is taken' '
	cat >old.yaml <<-"END" &&
	apiVersion: v1
	kind: Pod
	metadata: {name: old}
	spec:
	  nodeSelector: {beta.kubernetes.io/os: linux}
	  containers: [{name: main, image: a}]
	END
	exits 0 gpuq submit old.yaml && says err "warning: .*beta.kubernetes.io/os.* deprecated"
'

test_expect_success 'a repeated key is not judged again' '
	gpuq submit --parsable --key k1 old.yaml >first 2>err && gpuq submit --parsable --key k1 old.yaml >second 2>err &&
	test_cmp first second && ! grep deprecated err && gpuq cancel --me
'

test_expect_success 'a service account that a manifest names: used where the queue says so, else said' '
	kube create gpuq-jobs/serviceaccounts - <<-"END" &&
	{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "trainer"}}
	END
	gpuq submit "$manifests/16-pod-serviceaccount.yaml" -p team-a 2>err && says err "trainer is not used: .*runner" &&
	says err "automountServiceAccountToken is not used" &&
	sed "s/trainer/admin/" "$manifests/16-pod-serviceaccount.yaml" >admin.yaml &&
	exits 1 gpuq submit -p team-b admin.yaml && says err "serviceAccountName: .*does not let manifests name admin; it allows train" &&
	id=$(gpuq submit --parsable -p team-b "$manifests/16-pod-serviceaccount.yaml" 2>err) && ! grep "trainer is not" err &&
	wait_for 60 n_pods "$id" 1 && test "$(pods_of "$id" spec.serviceAccountName)" = trainer && gpuq cancel --me
'

test_expect_success 'every manifest of the collection is taken or refused as it says' '
	: >ids && for file in "$manifests"/*.yaml; do
		case $file in */13-*) continue ;; esac
		want=${file%.yaml}.want
		if ids=$(submit_manifest "$file"); then
			grep -q "^{" "$want" || { echo "$file was taken"; return 1; }
			printf "%s\n" "$ids" | sed "s|\$| $file|" >>ids
		else
			grep -q "^refused" "$want" || { echo "$file was refused"; tail -n 2 submit.err; return 1; }
		fi
	done && test "$(wc -l <ids)" -ge 38
'

# compare_all: the pods of those that have any, beside a dry run of their templates
compare_all() {
	export KUBECONFIG="$TMPDIR/k/admin.kubeconfig"
	compared=0
	while read -r id file; do
		[ -n "$(pods_of "$id")" ] || { echo "no pods: $file" && continue; }
		"$kube_tools/manifest-diff" "$file" gpuq-jobs "$id" || return 1
		compared=$((compared + 1))
	done <ids
	echo "$compared jobs compared"
	[ "$compared" -ge 36 ]
}

test_expect_success 'the pods of those that start are what the apiserver makes of their templates' '
	sleep 5 && compare_all
'

index="annotations.[batch.kubernetes.io/job-completion-index]"

test_expect_success 'an Indexed Job: index, labels and host names as Kubernetes gives them' '
	id=$(sed -n "s/ .*26-job.*//p" ids) && n_pods "$id" 3 &&
	pods_of "$id" spec.hostname | sort >hosts && printf "example-job-%d\n" 0 1 2 | test_cmp - hosts &&
	pods_of "$id" "metadata.labels.job-name,spec.subdomain" | sort -u >names &&
	printf "example-job\theadless-svc\n" | test_cmp - names &&
	pods_of "$id" "metadata.$index" | sort >indexes && printf "%d\n" 0 1 2 | test_cmp - indexes &&
	kube list "gpuq-jobs/pods?labelSelector=batch.kubernetes.io/job-completion-index=2,gpuq.io/job=$id" >one && test "$(wc -l <one)" = 1
'

test_expect_success 'without an apiserver a manifest is taken, with a word' '
	gpuq cancel --me && cluster stop-apiserver && wait_for 60 cluster_is_stale &&
	exits 0 gpuq submit "$manifests/21-job-pi.yaml" && says err "does not answer" && cluster start-apiserver && wait_for 120 cluster_is_fresh
'

test_done
