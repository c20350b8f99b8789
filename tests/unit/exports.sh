#!/bin/sh
# The installed library exports exactly what its installed headers declare.
: "${srcdir:=.}"
lib=libgpuq/.libs/libgpuq.so
test -f "$lib" || { echo "$lib is missing"; exit 99; }
command -v nm >/dev/null || { echo "nm is not installed"; exit 77; }
out=$(mktemp -d) || exit 99
trap 'rm -rf "$out"' EXIT

nm -D --defined-only "$lib" | awk '$2 ~ /^[TDRB]$/ { sub(/@.*/, "", $3); print $3 }' |
	sort -u >"$out/exported"

# Declarations: comments and directives off, then a name before a parenthesis, or data.
for h in "$srcdir"/libgpuq/*.h; do
	case ${h##*/} in
	duplex.h | mp.h | pattern.h | selector.h | wire.h | transport.h | utf8.h | yaml_plain.h | *_priv.h | *_kind.h | *_kinds.h) ;;
	*) sed -e '/^[[:space:]]*#/d' "$h" ;;
	esac
done | tr '\n' ' ' | sed -e 's:/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/::g' | tr ';{}' '\n\n\n' |
	sed -n -e 's/^.*extern const struct [a-z_]* \(gpuq_.*\)$/\1/p' \
		-e 's/^.*extern const char \*const \(gpuq_.*\)$/\1/p' \
		-e 's/^[^(]*[ *]\(gpuq_[a-z0-9_]*\)(.*$/\1/p' |
	tr ',' '\n' | tr -d ' []' | grep -v '_fn$' | sort -u >"$out/declared"

test -s "$out/declared" || exit 99
diff "$out/declared" "$out/exported" && exit 0
echo "the headers declare what is marked <, the library exports what is marked >"
exit 1
