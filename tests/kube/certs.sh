# certs.sh - certificates, keys, tokens and kubeconfigs of a test cluster

# One signed certificate. $1 folder, $2 file name, $3 subject, $4 extensions
sign() {
	openssl req -new -newkey rsa:2048 -nodes -keyout "$1/$2.key" -subj "$3" -out "$1/$2.csr" 2>/dev/null &&
	printf '%s\n' "$4" >"$1/$2.ext" &&
	openssl x509 -req -in "$1/$2.csr" -CA "$1/ca.crt" -CAkey "$1/ca.key" -set_serial "0x$(openssl rand -hex 8)" \
		-days 30 -extfile "$1/$2.ext" -out "$1/$2.crt" 2>/dev/null ||
		die "openssl cannot make the certificate $2"
	rm -f "$1/$2.csr" "$1/$2.ext"
}

# A client is who its subject says: O is the group, CN the user.
sign_client() {
	sign "$1" "$2" "$3" 'extendedKeyUsage=clientAuth'
}

# Everything that the control plane needs, in folder $1. Any more addresses of the server in $node_net.
make_pki() {
	(
	umask 077
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$1/ca.key" -out "$1/ca.crt" -days 30 \
		-subj /CN=gpuq-test-ca 2>/dev/null || die "openssl cannot make a certificate"
	names=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.0.0.1
	[ -z "$node_net" ] || names="$names,IP:$node_net.1"
	sign "$1" apiserver /CN=kube-apiserver "subjectAltName=$names"
	sign_client "$1" admin /O=system:masters/CN=admin
	sign_client "$1" kube-controller-manager /CN=system:kube-controller-manager
	openssl genrsa -out "$1/sa.key" 2048 2>/dev/null
	openssl rsa -in "$1/sa.key" -pubout -out "$1/sa.pub" 2>/dev/null
	# A user whom no role knows, to see refusals.
	echo "nobody-$(openssl rand -hex 12),nobody,1001" >"$1/tokens.csv"
	)
}

# A kubeconfig for client certificate $4 of folder $3, by file names. $1 file, $2 server
write_kubeconfig() {
	cat >"$1" <<-EOF
		apiVersion: v1
		kind: Config
		current-context: test
		clusters:
		- name: test
		  cluster:
		    server: $2
		    certificate-authority: $3/ca.crt
		contexts:
		- name: test
		  context:
		    cluster: test
		    user: $4
		users:
		- name: $4
		  user:
		    client-certificate: $3/$4.crt
		    client-key: $3/$4.key
	EOF
}

# A kubeconfig with the token in file $4, all inline. $1 file, $2 server, $3 CA, $5 namespace
write_kubeconfig_token() {
	(
	umask 077
	cat >"$1" <<-EOF
		apiVersion: v1
		kind: Config
		current-context: test
		clusters:
		- name: test
		  cluster:
		    server: $2
		    certificate-authority-data: $(base64 -w 0 "$3")
		contexts:
		- name: test
		  context:
		    cluster: test
		    user: gpuqd
		    namespace: $5
		users:
		- name: gpuqd
		  user:
		    token: $(cat "$4")
	EOF
	)
}
