#!/bin/bash
#SBATCH -o args.out
for a; do echo "<$a>"; done
echo "$# from $(basename "$0" | tr -dc a-z | head -c 4)"
# args: --lr 0.1 'two words' -n 4
# check: test "$(sed -n 3p args.out)" = '<two words>' && grep -q '^5 from' args.out && test "$(sed -n 4p args.out)" = '<-n>'
