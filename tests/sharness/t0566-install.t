#!/bin/sh
test_description='make install prefix=DIR writes nothing outside DIR'
. "$(dirname "$0")/lib.sh"

# value NAME: of a variable of make, with prefix=/elsewhere
value() {
	printf 'include Makefile\nprint-value:\n\t@echo "$(%s)"\n' "$1" | make -s --no-print-directory -C "$test_build" -f - prefix=/elsewhere print-value
}

test_expect_success 'each folder that is written follows the prefix' '
	grep -o "DESTDIR)\$([a-z0-9_]*)" "$test_build/Makefile" | sed "s/.*(//; s/)//" | sort -u >names && grep -qx bindir names && grep -qx man1dir names && test "$(wc -l <names)" -gt 10 &&
	while read -r name; do
		case $(value "$name") in
		/elsewhere/*) ;;
		*) grep -q -- "--with-$name=" "$test_build/config.status" || { echo "$name is $(value "$name")" && return 1; } ;;
		esac
	done <names
'

test_expect_success 'and nothing is written but below these' '
	! grep -nE "(INSTALL[A-Z_]*\)|MKDIR_P\)|LN_S\)|mkdir -p|ln -s|cp -p).* (\"?/|\"?\\$\(DESTDIR\)/)" "$test_build/Makefile"
'

test_expect_success 'what was installed with another prefix than it was configured for finds its own programs there' '
	mkdir -p moved/bin moved/libexec/gpuq moved/lib/gpuq project && echo hello >project/file &&
	cp "$test_build/gpuq/gpuq" moved/bin/gpuq && cp "$test_build/gpuq/gpuq-pack" moved/libexec/gpuq/ && start_gpuqd &&
	moved/bin/gpuq submit --code project --dry-run --wrap true >out && rm moved/libexec/gpuq/gpuq-pack &&
	exits 1 moved/bin/gpuq submit --code project --dry-run --wrap true
'

test_done
