#!/usr/bin/env bash
# Runs the tests and counts them: one for each lint check, each KUnit case, each
# guest test on each kernel. The last line is the sum; the exit status is 0 only
# if something passed and nothing failed.
#
#   check.sh [lint|kunit|guest|torture]      default: the first three
#
# In the environment: K=kernel, T=test, SUITE=glob, MIN=minutes, and JOBS=2 for
# how much runs at a time.
set -euo pipefail
: "${JOBS:=2}"
jobs=$JOBS
. "$(dirname "$0")/lib.sh"

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
trap 'stop_jobs; exit 130' INT TERM
began=$SECONDS
declare -A expected=()

progress()
{
	printf '# %4d s  %s\n' $((SECONDS - began)) "$*"
}

kernels()
{
	if [ -n "${K:-}" ]; then
		tr -s ', ' '\n' <<<"$K"
	else
		"$top/scripts/kernel.sh" list
	fi
}

is_debug()
{
	[[ $1 == *-kasan || $1 == *-kcsan || $1 == *-lockdep ]]
}

# --- Jobs: each writes to a file of its own, shown when it is finished ---

# A job that fails without saying what failed counts as one failure.
job()
{
	local name=$1 out pid status=0
	out=$results/${name// /-}
	shift

	setsid "$@" >"$out.part" 2>&1 </dev/null &
	pid=$!
	trap 'kill -TERM -- -$pid; exit 1' TERM
	wait $pid || status=$?
	if [ $status != 0 ] && ! grep -q '^FAIL' "$out.part"; then
		echo "FAIL $name: exit $status" >>"$out.part"
	fi
	mv "$out.part" "$out.done"
}

stop_jobs()
{
	local pid

	for pid in $(jobs -rp); do
		kill "$pid"
	done
}

show_finished()
{
	local f name

	for f in "$results"/*.done; do
		[ -e "$f" ] || continue
		name=${f##*/}
		add_missing "$f" "${name%.done}"
		progress "$(summary "$f" "${name%.done}")"
		cat "$f"
		mv "$f" "${f%.done}.shown"
	done
}

# Whatever becomes of a guest, each of its tests counts.
add_missing()
{
	local t

	for t in ${expected[$2]-}; do
		grep -qE "^(PASS|FAIL|SKIP) guest [^ ]+ ${t}[ :]" "$1" ||
			echo "FAIL guest ${2#guest-} $t (- s): no result" >>"$1"
	done
}

summary()
{
	echo "$2: $(grep -c '^PASS' "$1" || true) passed, $(grep -c '^FAIL' "$1" || true) failed"
}

# start NAME COMMAND...: waits for room first.
start()
{
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
		wait -n || true
		show_finished
	done
	progress "$1 ..."
	job "$@" &
}

finish()
{
	while [ -n "$(jobs -rp)" ]; do
		wait -n || true
		show_finished
	done
	wait
	show_finished
}

# --- Steps ---

# All that needs the network or all cores comes before what needs time limits.
prepare()
{
	local k

	progress "packages ..."
	"$top/scripts/deps.sh" "$@"
	for k in $(kernels); do
		[ -n "$(tests_of "$k")" ] || continue
		progress "kernel $k ..."
		"$top/scripts/kernel.sh" fetch "$k" || echo "FAIL kernel $k" | tee "$results/kernel-$k.shown"
	done
}

# tests_of KERNEL: which tests this run does there.
tests_of()
{
	case $what in
	guest) guest_tests "$1" ;;
	kunit) ! is_debug "$1" || echo kunit ;;
	torture) echo torture ;;
	all) "$top/scripts/guest.sh" -k "$1" -l ;;
	esac
}

# A test that is named runs on each kernel that is named, wanted or not.
guest_tests()
{
	if [ -n "${T:-}" ] && [ -n "${K:-}" ]; then
		echo "$T"
	elif [ -n "${T:-}" ]; then
		"$top/scripts/guest.sh" -k "$1" -l | grep -xF "${T// /$'\n'}" || true
	else
		"$top/scripts/guest.sh" -k "$1" -l | grep -vx kunit || true
	fi
}

# The debug kernels are slow, so they begin.
guests()
{
	local k
	local -a tests

	for k in $(kernels | grep -E -- '-(kasan|kcsan|lockdep)$') \
		$(kernels | grep -vE -- '-(kasan|kcsan|lockdep)$'); do
		mapfile -t tests < <(tests_of "$k" | tr ' ' '\n')
		if [ ${#tests[@]} = 0 ] || [ -e "$results/kernel-$k.shown" ]; then
			continue
		fi
		expected["guest-$k"]=${tests[*]}
		start "guest $k" env JOBS=1 "$top/scripts/guest.sh" -k "$k" "$@" "${tests[@]}"
	done
}

torture()
{
	local minutes=${MIN:-5}

	: "${K:=6.12-kasan}"
	prepare build qemu
	guests -t $((minutes * 60 + 120)) -e "MINUTES=$minutes"
}

main()
{
	what=${1:-all}
	rm -rf "$top/build/log"
	case $what in
	lint)
		progress "packages ..."
		start lint "$top/scripts/lint.sh"
		;;
	kunit)
		prepare build qemu
		guests ${SUITE:+-a "kunit.filter_glob=$SUITE"}
		;;
	guest)
		prepare build qemu
		guests
		;;
	torture) torture ;;
	all)
		prepare build qemu lint
		start lint env JOBS=1 "$top/scripts/lint.sh"
		guests
		;;
	*) die "no step $what" ;;
	esac
	finish
	total
}

total()
{
	local passed failed skipped

	passed=$(cat "$results"/*.shown 2>/dev/null | grep -c '^PASS' || true)
	failed=$(cat "$results"/*.shown 2>/dev/null | grep -c '^FAIL' || true)
	skipped=$(cat "$results"/*.shown 2>/dev/null | grep -c '^SKIP' || true)
	progress "end"
	if [ "$failed" != 0 ]; then
		cat "$results"/*.shown | grep '^FAIL'
	fi
	if [ "$skipped" = 0 ]; then
		echo "$passed passed, $failed failed"
	else
		echo "$passed passed, $failed failed, $skipped skipped"
	fi
	[ "$failed" = 0 ] && [ "$passed" != 0 ]
}

# On one line: the script may be edited while it runs.
main "$@"; exit
