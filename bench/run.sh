#!/usr/bin/env bash
# Measures in guests what btlog costs, beside other tools, and prints tables.
#
#   run.sh			on 6.1 and 6.12, or on K=
#
# Costs are instructions: the guest has one CPU and its clock counts them, so
# they come out the same on any machine. Only the scaling over CPUs is timed,
# on an otherwise idle machine. All figures go to bench/results.json, what the
# guests said to build/bench.
#
# A figure over its budget is marked. It fails only if something doesn't run.
set -euo pipefail
. "$(dirname "$0")/../scripts/lib.sh"

read -r -a kernels <<<"${K:-6.1 6.12}"
out=$top/build/bench

# One program for all kernels: BPF looks their structures up when it is loaded.
compile_programs()
{
	local dir=$1

	mkdir -p "$dir"
	clang -O2 -g -Wall -target bpf -I"/usr/include/$(gcc -print-multiarch)" \
		-c "$top/bench/leak.bpf.c" -o "$dir/leak.bpf.o"
	bpftool gen skeleton "$dir/leak.bpf.o" name leak >"$dir/leak.skel.h"
	gcc -O2 -Wall -static -I"$dir" -o "$dir/leak" "$top/bench/leak.c" -lbpf -lelf -lz
	gcc -O2 -Wall -static -o "$dir/work" "$top/bench/work.c"
}

# guest KERNEL TEST ARGUMENT...: results in a file of their own
guest()
{
	local kernel=$1 test=$2
	local share=$out/$1-$2
	shift 2

	mkdir -p "$share"
	cp "$out/bin/leak" "$out/bin/work" "$top/bench/guest.sh" "$share/"
	: >"$share/results"
	"$top/scripts/guest.sh" -k "$kernel" -o "$share" "$@" \
		-x "-virtfs local,path=$share,mount_tag=bench,security_model=none" \
		"$top/bench/t/$test.sh"
}

# By the clock that counts instructions.
count()
{
	local failed=0

	export ICOUNT=1
	guest "$1" measure || failed=1
	guest "$1" slub || failed=1
	return $failed
}

count_all()
{
	local k failed=0
	local -a jobs=()

	for k in "${kernels[@]}"; do
		count "$k" &
		jobs+=($!)
	done
	for k in "${jobs[@]}"; do
		wait "$k" || failed=1
	done
	return $failed
}

# By the clock on the wall, so one after the other.
time_all()
{
	local k failed=0

	for k in "${kernels[@]}"; do
		TCG_THREAD=multi guest "$k" scale || failed=1
	done
	return $failed
}

# Lines `KERNEL NAME VALUE` of all that was measured.
all_results()
{
	local k t

	for k in "${kernels[@]}"; do
		echo "$k release $("$top/scripts/kernel.sh" version "$k" | cut -d' ' -f2)"
		for t in measure slub scale; do
			tr -d '\r' <"$out/$k-$t/results" | sed "s/^/$k /"
		done
	done
}

main()
{
	local failed=0

	"$top/scripts/deps.sh" build qemu bench
	rm -rf "$out"
	compile_programs "$out/bin"
	count_all || failed=1
	time_all || failed=1
	all_results >"$out/results"
	awk -f "$top/bench/json.awk" -v date="$(date -u +%Y-%m-%d)" \
		"$out/results" >"$top/bench/results.json"
	awk -f "$top/bench/tables.awk" -v date="$(date -u +%Y-%m-%d)" "$out/results"
	return $failed
}

# On one line: the script may be edited while it runs.
main; exit
