#!/usr/bin/env bash
# Builds the modules for one kernel, apart from the checkout, so that any
# number of kernels can be built from it at the same time and none of them sees
# another's objects.
#
#   build.sh KERNEL [DEST [MAKE-ARGUMENT...]]
#
# DEST gets a copy of the modules. VARIANT=name builds in a folder of its own.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# Only what changed gets a new time stamp, so that make compiles only that.
sync_sources()
{
	rsync -rlpc --delete --prune-empty-dirs \
		--exclude='.*' --exclude=/build --exclude='*.mod.c' \
		--include='*/' --include='*.[chS]' --include=Kbuild --exclude='*' \
		"$top/" "$1/"
}

# Objects made for another version of the kernel are of no use.
forget_other_kernel()
{
	[ "$(cat "$1/.kdir" 2>/dev/null)" = "$2" ] && return
	rm -rf "$1"
	mkdir -p "$1"
	echo "$2" >"$1/.kdir"
}

# modules.order names .ko files in 6.1 and .o files in 6.12.
copy_modules()
{
	local line

	mkdir -p "$2"
	while read -r line; do
		line=${line#"$1"/}
		cp "$1/${line%.*}.ko" "$2/"
	done <"$1/modules.order"
}

build()
{
	local dir=$1 kdir=$2 source=$3 dest=$4
	shift 4

	forget_other_kernel "$dir" "$kdir"
	sync_sources "$dir"
	make -s -C "$kdir" M="$dir" -j"$JOBS" BTLOG_TESTS=1 BTLOG_SOURCE="$source" \
		"$@" modules \
		>"$dir/.log" 2>&1 </dev/null || {
		cat "$dir/.log" >&2
		die "the modules for ${dir##*/} do not build"
	}
	grep -v 'Skipping BTF generation' "$dir/.log" >&2 || true
	[ -z "$dest" ] || copy_modules "$dir" "$dest"
}

main()
{
	local name=${1:?which kernel} dest=${2:-} kdir source target
	shift $(($# > 1 ? 2 : 1))

	kdir=$("$top/scripts/kernel.sh" kdir "$name")
	source=$("$top/scripts/kernel.sh" source "${name%%-*}")
	target=$name${VARIANT:+-$VARIANT}
	locked "mod-$target" build "$cache/mod/$target" "$kdir" "$source" "$dest" "$@"
}

# On one line: the script may be edited while it runs.
main "$@"; exit
