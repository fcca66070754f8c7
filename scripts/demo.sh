#!/usr/bin/env bash
# Shows btlog at work in a guest, under the kernel K (default 6.12).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

kernel=${K:-6.12}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Only what the guest's script says, not the rest of the console.
"$top/scripts/guest.sh" -v -k "$kernel" "$top/guest/demo.sh" 2>&1 >"$log" |
	sed -un 's/\r//; s/^\[[ 0-9.]*\] | //p' || {
	cat "$log"
	die "the demo failed"
}
