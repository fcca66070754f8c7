#!/usr/bin/env bash
# Installs the Debian packages that the other scripts need and this machine
# lacks. Says nothing unless it fails.
#
#   deps.sh [build|qemu|lint|bench]...      default: build qemu lint
set -euo pipefail
. "$(dirname "$0")/lib.sh"

packages()
{
	case $1 in
	build) echo build-essential gcc-12 bc bison flex libelf-dev libssl-dev \
		dwarves perl kmod rsync xz-utils ;;
	qemu) echo qemu-system-x86 busybox-static cpio kmod xz-utils zstd gcc libc6-dev ;;
	lint) echo sparse shellcheck perl ;;
	bench) echo clang llvm libbpf-dev bpftool linux-perf ;;
	*) die "no group $1; there are build, qemu, lint and bench" ;;
	esac
}

missing()
{
	local p
	for p in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
			echo "$p"
	done
}

install_missing()
{
	local log=$cache/log/deps.log
	local -a want

	mapfile -t want < <(missing "$@")
	[ ${#want[@]} -gt 0 ] || return 0
	quietly "$log" as_root apt-get -q update || note "apt-get update failed; trying without"
	quietly "$log" as_root env DEBIAN_FRONTEND=noninteractive apt-get -qy \
		-o DPkg::Lock::Timeout=600 install --no-install-recommends "${want[@]}" ||
		die "could not install ${want[*]}"
}

main()
{
	local group list=

	[ $# -gt 0 ] || set -- build qemu lint
	for group; do
		list+=" $(packages "$group")"
	done
	# shellcheck disable=SC2086 # a list of words
	locked deps install_missing $list
}

# On one line: the script may be edited while it runs.
main "$@"; exit
