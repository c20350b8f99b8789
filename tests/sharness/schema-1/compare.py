#!/usr/bin/env python3
"""compare.py BEFORE AFTER [FIELD...]: are jobs the same, as lines of JSON tell of them?

Fields that are named are left out, as are those that AFTER alone has, also of the objects within.
"""
import json
import sys


def read(path):
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    return {tuple(row.get(k) for k in ("id", "array_index", "user", "queue", "flavor")): row for row in rows}


def same(before, after):
    if isinstance(before, dict) and isinstance(after, dict):
        # Where the kubelet chooses the devices, an index was shown that could be false; now there is none.
        if "uuid" in after and after.get("index", 0) is None:
            before = before | {"index": None}
        return all(key in after and same(value, after[key]) for key, value in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(same, before, after))
    return before == after


def main():
    before, after = read(sys.argv[1]), read(sys.argv[2])
    ignored = set(sys.argv[3:])
    ok = bool(before) and before.keys() == after.keys()
    for key in before.keys() ^ after.keys():
        print(key, "is only", "before" if key in before else "after")
    for key in before.keys() & after.keys():
        for field, value in before[key].items():
            if field not in ignored and not same(value, after[key].get(field)):
                print(key, field, "was", value, "and is", after[key].get(field))
                ok = False
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
