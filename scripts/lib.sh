# shellcheck shell=bash
# Shared by the scripts of this folder, which source it: where things are, how
# to fail, how to wait for one another.

# A failure inside of $(...) counts.
shopt -s inherit_errexit

# shellcheck disable=SC2034 # for those who source it
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
: "${HOME:=/root}"
cache=${BTLOG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/btlog}
: "${JOBS:=$(nproc)}"

die()
{
	echo "${0##*/}: $*" >&2
	exit 1
}

note()
{
	echo "${0##*/}: $*" >&2
}

# locked NAME COMMAND...: runs COMMAND while no other script holds NAME. Where
# COMMAND is a function that relies on `set -e`, no `||` may follow.
locked()
{
	local name=$1
	shift
	mkdir -p "$cache/lock"
	(
		flock 9
		"$@" 9>&-
	) 9>"$cache/lock/$name"
}

# quietly LOG COMMAND...: COMMAND's output goes to LOG; its end is shown if
# COMMAND fails.
quietly()
{
	local log=$1
	shift
	mkdir -p "$(dirname "$log")"
	"$@" >"$log" 2>&1 </dev/null && return
	note "failed: $*; the end of $log:"
	tail -n 25 "$log" >&2
	return 1
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}
