# BT-03: what interrupts free is seen, also if they come while an event of the
# same CPU is being recorded.
# kernels: 6.1 6.12
# time: 120
. /lib.sh

load_btlog
load tm
new_log a source=slab:kmalloc-64 records=65536 module=tm

rounds=300000
has_config KASAN || has_config LOCKDEP && rounds=30000
tm_may irqfree $rounds || skip "interrupts can't free on this kernel"

hard=$(tm_state hardirq_frees)
soft=$(tm_state softirq_frees)
echo "freed in hardirqs $hard, in softirqs $soft"
expect_eq "frees" $((hard + soft)) $rounds
expect_ge "frees in hardirqs" "$hard" 1
expect_ge "frees in softirqs" "$soft" 1
expect_eq "left" "$(of_site a 9 siteB)" "0 0 0"
expect_eq "refused" "$(counter a refused_recursion)" 0
expect_eq "lost frees" "$(counter a erase_busy)" 0
balanced a
