"""check_json.py PAGE SECTION: objects on standard input, one a line, are what the section of
the manual page gpuq-json(5) says: every key is described, has its type, and none is missing."""
import json
import re
import sys

KINDS = {
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "time": lambda v: isinstance(v, str)
        and bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", v)),
    "list": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
    "null": lambda v: v is None,
    "any": lambda v: True,
}
KINDS["amount"] = lambda v: KINDS["number"](v) or v == "unlimited" or (
    isinstance(v, dict) and all(KINDS["amount"](x) for x in v.values()))


def rows_of(page, section):
    """{path: (kinds, optional)} of one .Ss"""
    text = open(page).read()
    part = re.search(r"^\.Ss %s\n(.*?)(?=^\.S[sh] )" % section, text, re.S | re.M)
    rows = {}
    for path, types in re.findall(r"^\.It Cm (\S+) Pq (.*)$", part.group(1), re.M):
        words = re.split(r", | or ", types)
        rows[path.replace("\\&", "")] = ([w for w in words if w != "optional"],
                                         "optional" in words)
    return rows


def inside(rows, path):
    """The rows of the members of what is at path: {key: row}."""
    return {p[len(path):]: r for p, r in rows.items()
            if p.startswith(path) and p != path and not re.search(r"[.\[]", p[len(path):])}


def check(rows, obj, path, where):
    known = inside(rows, path)
    for key, (kinds, optional) in known.items():
        if key not in obj and key != "*" and not optional:
            yield "%s: %s%s is missing" % (where, path, key)
    for key, v in obj.items():
        if path == "" and key == "v":
            if v != 1:
                yield "%s: version %r" % (where, v)
            continue
        row = known.get(key) or known.get("*")
        if not row:
            yield "%s: %s%s is not described" % (where, path, key)
            continue
        if not any(KINDS[k](v) for k in row[0]):
            yield "%s: %s%s is %r, not %s" % (where, path, key, v, " or ".join(row[0]))
        if isinstance(v, dict) and inside(rows, path + key + "."):
            yield from check(rows, v, path + key + ".", where)
        for one in v if isinstance(v, list) else ():
            if isinstance(one, dict) and inside(rows, path + key + "[]."):
                yield from check(rows, one, path + key + "[].", where)


def main():
    rows = rows_of(sys.argv[1], sys.argv[2])
    lines = [x for x in sys.stdin.read().splitlines() if x.strip()]
    bad = [] if lines and rows else ["%s: nothing to look at" % sys.argv[2]]
    for n, line in enumerate(lines, 1):
        bad += check(rows, json.loads(line), "", "%s line %d" % (sys.argv[2], n))
    for text in bad[:20]:
        print(text)
    return 1 if bad else 0


sys.exit(main())
