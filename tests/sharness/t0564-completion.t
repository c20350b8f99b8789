#!/bin/sh
test_description='completion by kind, in bash, zsh and fish, for the names of Slurm, too'
. "$(dirname "$0")/lib.sh"

# In bash: what completes the words given, the last of which is unfinished.
cat >complete.bash <<-\END
	source <(gpuq completion bash)
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_gpuq 2>/dev/null
	printf "%s\n" "${COMPREPLY[@]}"
END
in_bash() {
	bash complete.bash "$@" | sort -u >got
}

in_fish() {
	XDG_CONFIG_HOME=$PWD XDG_DATA_HOME=$PWD fish -c "gpuq completion fish | source; complete -C '$*'" | cut -f 1 | sort -u >got
}

# In zsh only what _gpuq_words offers: the rest is _arguments.
in_zsh() {
	zsh -fc 'autoload -U compinit && compinit -D -u; source <(gpuq completion zsh | sed "\$d"); compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -l -- $@ }; _gpuq_words "$@"' zsh "$@" | sort -u >got
}

# What the words before decide, as the script has it for scontrol.
after_in_zsh() {
	gpuq completion zsh | sed -n "s/.*:word:\(_gpuq_after .show hold.*\)' ;;/\1/p" >after.zsh && test -s after.zsh &&
		zsh -fc 'autoload -U compinit && compinit -D -u; source <(gpuq completion zsh | sed "\$d"); compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -l -- $@ }; words=("$@"); CURRENT=$#words; source ./after.zsh' zsh "$@" | sort -u >got
}

# has WORD...: those are offered, and NOT is not
has() {
	for has_word; do grep -qx -- "$has_word" got || { echo "$has_word is not offered:"; cat got; return 1; }; done
}

lacks() {
	! grep -qx -- "$1" got || { echo "$1 is offered"; return 1; }
}

test_expect_success 'a site with queues, qos and a reservation, and jobs' '
	start_gpuqd && cat >site.yaml <<-END && gpuq apply -f site.yaml && gpuq reserve maint -t 30m -g 1 --users nobody &&
	version: 1
	queues: [{name: vision}, {name: speech}]
	qos: [{name: urgent}]
	END
	ended=$(sh_job "true" -p vision) && exits 0 gpuq wait --timeout 60s "$ended" &&
	id=$(sh_job "true" -p vision --hold --label team=red) && node=$(gpuq nodes -s -h -o NODE | tr -d " ") && me=$(id -un)
'

test_expect_success 'bash: options by kind, lists, jobs only where jobs are' '
	in_bash gpuq submit --queue = "" && has vision speech && lacks "$id" && in_bash gpuq queue -q vision,sp && has vision,speech &&
	in_bash gpuq queue -u "" && has "$me" && in_bash gpuq submit --qos = "" && has urgent && in_bash gpuq submit -w "" && has "$node" &&
	in_bash gpuq submit --flavor "" && has default && in_bash gpuq queue -t "" && has PENDING COMPLETED && in_bash gpuq nodes -t "" && has idle && lacks PENDING &&
	in_bash gpuq queue -l "" && has team=red && in_bash gpuq submit --reservation "" && has maint && in_bash gpuq cancel "" && has "$id" && lacks vision &&
	in_bash gpuq queues "" && has vision set && in_bash gpuq drain "" && has "$node" && lacks "$id" && in_bash gpuq submit --constraint "" && lacks team=red &&
	in_bash gpuq cancel -s "" && lacks "$id" && in_bash gpuq cancel --signal = "" && lacks "$id" && in_bash gpuq drain -r "" && lacks "$node" &&
	in_bash gpuq reserve --pool "" && lacks maint && >plain && in_bash gpuq submit --output "" && has plain && in_bash gpuq submit -J "" && lacks plain &&
	in_bash gpuq logs -f "" && has "$id" && in_bash gpuq queue --st && has "--states=" && in_bash gpuq sub && has submit
'

test_expect_success 'bash: jobs that have ended where they are meant' '
	in_bash gpuq resubmit "" && has "$ended" && lacks "$id" && in_bash gpuq cancel "" && lacks "$ended" && in_bash gpuq logs "" && has "$id" "$ended" &&
	in_bash gpuq usage -j "" && has "$id" "$ended" && in_bash seff "" && has "$ended" && in_bash sacct -j "" && has "$ended" && in_bash squeue -j "" && lacks "$ended"
'

test_expect_success 'bash: the names of Slurm' '
	in_bash squeue -p "" && has vision && in_bash sbatch --partition = s && has speech && lacks vision && in_bash scancel "" && has "$id" &&
	in_bash scontrol "" && has show requeue && lacks "$id" && in_bash scontrol show "" && has job node && in_bash scontrol show job "" && has "$id" && lacks show &&
	in_bash scontrol show node "" && has "$node" && lacks "$id" && in_bash scontrol update "" && lacks "$id" && in_bash sacctmgr show "" && has qos && in_bash sinfo -t "" && has idle && in_bash seff "" && has "$id" && in_bash sacct --us && has "--user="
'

if command -v fish >/dev/null; then
	test_set_prereq FISH
fi
if command -v zsh >/dev/null; then
	test_set_prereq ZSH
fi

test_expect_success FISH 'fish: the same' '
	in_fish "gpuq submit --queue " && has vision speech && lacks "$id" && in_fish "gpuq submit --qos " && has urgent && in_fish "gpuq cancel " && has "$id" &&
	in_fish "gpuq queue -q vision,sp" && has vision,speech && in_fish "gpuq queue -t " && has PENDING && in_fish "squeue -p " && has vision && in_fish "gpuq cancel -s " && lacks "$id" &&
	>plain && in_fish "gpuq submit --output " && has plain && in_fish "gpuq submit -J " && lacks plain && in_fish "scancel " && has "$id" &&
	in_fish "scontrol requeue " && has "$id" && lacks show && in_fish "scontrol " && has show && lacks "$id" && in_fish "scontrol show node " && has "$node" && lacks "$id"
'

test_expect_success ZSH 'zsh: the script is read, and has the words of each kind' '
	gpuq completion zsh >_gpuq && zsh -n _gpuq && says _gpuq "^#compdef gpuq.* squeue" && says _gpuq "partition=.Queue, or several.*:QUEUES:_sequence _gpuq_words queues" &&
	in_zsh queues && has vision speech && in_zsh qos && has urgent && in_zsh -S , nodes && has "$node" && in_zsh states && has PENDING && in_zsh reservations && has maint &&
	after_in_zsh scontrol "" && has show && lacks "$id" && after_in_zsh scontrol show "" && has job && after_in_zsh scontrol show job "" && has "$id" && lacks show && after_in_zsh scontrol show node "" && has "$node" && lacks "$id"
'

test_expect_success 'without a server nothing is offered, and nothing is printed' '
	stop_gpuqd && bash complete.bash gpuq queue -q "" >out 2>err && test ! -s err && test "$(cat out)" = ""
'

test_done
