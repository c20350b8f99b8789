#!/bin/sh
test_description='scopes: every method with a token of each, and nothing else'
. "$(dirname "$0")/lib.sh"

if ! test_have_prereq ROOT; then
	skip_all='several users take root'
	test_done
fi

tokens() {
	mkdir tokens
	for scope in read submit control session manage operate; do
		gpuq token create --for=daemon --scope=$scope >tokens/$scope || return 1
	done
}

test_expect_success 'a token of each scope, of an operator who manages a queue' '
	port=$(free_port) && address=tls://127.0.0.1:$port && exits 0 gpuqd --state "$PWD/state" --make-cert 127.0.0.1 &&
	echo "operators: [daemon]" >gpuqd.yaml && start_gpuqd --config "$PWD/gpuqd.yaml" --listen "$address" &&
	printf "version: 1\nqueues:\n- {name: ml, managers: [daemon]}\n" >site.yaml && gpuq apply -f site.yaml >apply.out && tokens
'

test_expect_success 'each method is denied but with its own scope' '
	exits 0 /usr/bin/python3 "$test_source/tests/sharness/scopes.py" "$test_source/gpuqd/rpc/method/methods.c" "$port" tokens &&
	says out "^[0-9]+ calls" && exits 0 gpuq version
'

test_done
