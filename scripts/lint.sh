#!/usr/bin/env bash
# Checks that need no guest. Each prints one line, PASS or FAIL, and what it
# found.
#
#   lint.sh [CHECK]...       default: all
set -euo pipefail
. "$(dirname "$0")/lib.sh"

stock=(6.1 6.12 6.1-rt 6.12-rt)

# sources GLOB...: our files of that kind, built ones left out.
sources()
{
	local -a names=()
	local glob

	for glob; do
		names+=(-o -name "$glob")
	done
	(cd "$top" && find . \( -name .git -o -path ./build \) -prune -o \
		-type f ! -name '*.mod.c' \( "${names[@]:1}" \) -printf '%P\n' | sort)
}

# What the compiler (W=1) and sparse say about our files. What they think of the
# kernel's headers is not for us to mend. Every file has to be compiled to be
# seen.
compile()
{
	local kernel=$1 log

	log=$(mktemp)
	rm -rf "$cache/mod/$kernel-lint"
	if VARIANT=lint "$top/scripts/build.sh" "$kernel" '' \
		W=1 C=1 CF=-D__CHECK_ENDIAN__ >"$log" 2>&1; then
		sed -nE "s,^$cache/mod/$kernel-lint/([^ ]*: (warning|error):),\1,p" "$log"
	else
		cat "$log"
	fi
	rm -f "$log"
}

checkpatch()
{
	local source
	local -a files

	source=$("$top/scripts/kernel.sh" source 6.12)
	mapfile -t files < <(sources '*.[ch]')
	cd "$top"
	printf '%s\0' "${files[@]}" | xargs -0 -n 8 -P "$JOBS" \
		perl "$source/scripts/checkpatch.pl" --no-summary --terse --show-types -f 2>&1 || true
}

# Scripts that run here are bash and say so. Those of the guest are for busybox,
# which knows `local` and substrings as bash does; what they leave unquoted is
# numbers and words of their own.
shell()
{
	local -a ours guests

	cd "$top"
	mapfile -t ours < <(sources '*.sh' | xargs grep -l '^#!/usr/bin/env bash')
	mapfile -t guests < <(sources '*.sh' | xargs grep -L '^#!/usr/bin/env bash')
	shellcheck -x "${ours[@]}" .ci/run 2>&1 || true
	shellcheck -s bash -S warning -e SC2034,SC2046,SC2154 guest/init "${guests[@]}" 2>&1 || true
}

# Each difference between kernel versions has its place.
versions()
{
	cd "$top"
	sources '*.[ch]' | grep -v '^\(.*/\)\{0,1\}compat\.h$' |
		xargs -r grep -nE 'LINUX_VERSION_CODE|KERNEL_VERSION' || true
}

# That a comment names the function it stands before, and all its parameters.
documentation()
{
	local source
	local -a files

	source=$("$top/scripts/kernel.sh" source 6.12)
	cd "$top"
	mapfile -t files < <(sources '*.[ch]' | xargs -r grep -lE '^/\*\*$' || true)
	[ ${#files[@]} -gt 0 ] || return 0
	perl "$source/scripts/kernel-doc" -none "${files[@]}" 2>&1 || true
}

# run NAME FUNCTION ARGUMENT...: passes if there is nothing to say.
run()
{
	local name=$1 found start=$SECONDS
	shift

	found=$("$@") || found+=" failed: $*"
	if [ -z "$found" ]; then
		echo "PASS lint $name ($((SECONDS - start)) s)"
	else
		echo "FAIL lint $name ($((SECONDS - start)) s): $(wc -l <<<"$found") lines"
		head -n 40 <<<"$found" | sed 's/^/    /'
		failed=1
	fi
}

check()
{
	local k

	case $1 in
	compile)
		for k in "${stock[@]}"; do
			run "$1-$k" "$1" "$k"
		done
		;;
	checkpatch | shell | versions | documentation) run "$1" "$1" ;;
	*) die "no check $1" ;;
	esac
}

main()
{
	local c

	"$top/scripts/deps.sh" build lint
	failed=0
	[ $# -gt 0 ] || set -- shell versions documentation checkpatch compile
	for c; do
		check "$c"
	done
	exit $failed
}

# On one line: the script may be edited while it runs.
main "$@"; exit
