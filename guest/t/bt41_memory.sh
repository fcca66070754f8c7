# BT-41: what btlog itself takes is small, bounded, shown, given back, and never
# among the leaks.
# kernels: stock
# mem: 512
# time: 120
. /lib.sh

memory()
{
	value $D/library memory_bytes
}

ram=$(awk '/^MemTotal:/ { print $2 * 1024 }' /proc/meminfo)
load_btlog
at_load=$(memory)
caches=$(($(value $D/library frame_cache_bytes) + $(value $D/library stack_memo_bytes)))
expect_le "memory at load" $((at_load + caches)) $((256 * 1024))
expect_le "its limit" "$(value $D/library memory_limit_bytes)" $((ram / 60))

load tm
new_log a source=slab records=131072
expect_le "with a log, beside its records" "$(memory)" $((ram / 100))
records=$(counter a memory_bytes)
echo "memory per record: $((records * 100 / 131072)) / 100 bytes"
at_start=$(memory)

tm alloc kmalloc P12 task 100000
expect_ge "stacks with 100,000 objects" "$(value $D/library stacks)" 4096
echo "library at load, with a log, with 100,000 objects: $at_load $at_start $(memory)"
expect_le "library" "$(memory)" "$(value $D/library memory_limit_bytes)"
# Thousands of new stacks at once may find no room until the worker has run.
not_kept=$(value $D/a/top not_kept_no_memory_count)
expect_eq "of tm" "$(($(of_site a 1 siteP | cut -d' ' -f1) + ${not_kept:-0}))" 100000
expect_le "without a stack" "${not_kept:-0}" 5000
tm free kmalloc P kfree task

few_stacks()
{
	[ "$(value $D/library stacks)" -lt 2048 ] &&
		[ "$(memory)" -le $((at_start + 512 * 1024)) ]
}

wait_for 30 few_stacks
echo "when all is freed: $(memory)"

# Reports take memory of their own. It is accounted for, and not ranked.
cat $D/a/top $D/a/top >/dev/null
! grep -q '\[btlog\]' $D/a/top || die "btlog takes itself for a leak"
expect_ge "own objects" "$(value $D/a/top own_count)" 1
balanced a
echo 0 >$D/a/enable
gone()
{
	[ "$(memory)" -le "$((at_load + 65536))" ]
}
wait_for 30 gone
