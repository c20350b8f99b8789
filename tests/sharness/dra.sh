# dra.sh - objects of dynamic resource allocation on a real control plane; sourced after kube.sh

# class NAME EXPRESSION [MORE]: a DeviceClass; MORE of its spec, as "extendedResourceName: example.com/gpu"
class() {
	kube apply -f - >/dev/null <<-END
	apiVersion: resource.k8s.io/v1
	kind: DeviceClass
	metadata: {name: $1}
	spec: {selectors: [{cel: {expression: "$2"}}]${3:+, $3}}
	END
}
