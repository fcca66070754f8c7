#!/usr/bin/env bash
# Where the instructions go: runs each kind of event in a guest, step by step,
# and prints for each how many instructions every function took.
#
#   profile.sh [KERNEL]		default: 6.12
#
# Functions that the compiler put into others count with those.
set -euo pipefail
. "$(dirname "$0")/../scripts/lib.sh"

kernel=${1:-6.12}
work=$(mktemp -d)
guest=

finish()
{
	[ -z "$guest" ] || kill "$guest" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT

monitor()
{
	echo "$*" >"$work/monitor.in"
}

answer()
{
	case $1 in
	watch)
		monitor "logfile $work/trace"
		monitor "singlestep on"
		monitor "log exec,nochain"
		;;
	rest)
		monitor "log none"
		monitor "singlestep off"
		;;
	esac
}

# The guest asks by a word in a file and waits until the file is empty.
serve()
{
	local word

	while kill -0 "$guest" 2>/dev/null; do
		word=$(cat "$work/share/ask")
		if [ -n "$word" ]; then
			answer "$word"
			: >"$work/share/ask"
			[ "$word" != end ] || return 0
		fi
		sleep 0.1
	done
	cat "$work/guest.log" >&2
	die "the guest has ended"
}

start_guest()
{
	mkdir -p "$work/share"
	: >"$work/share/ask"
	cp "$top/bench/guest.sh" "$work/share/"
	mkfifo "$work/monitor.in" "$work/monitor.out"
	ICOUNT=1 "$top/scripts/guest.sh" -k "$kernel" \
		-x "-virtfs local,path=$work/share,mount_tag=bench,security_model=none -monitor pipe:$work/monitor" \
		"$top/bench/t/profile.sh" >"$work/guest.log" 2>&1 &
	guest=$!
	exec 3<>"$work/monitor.out"
}

main()
{
	start_guest
	serve
	sort "$work/share/symbols" >"$work/symbols"
	awk -f "$top/bench/profile.awk" "$work/symbols" "$work/trace"
}

main
