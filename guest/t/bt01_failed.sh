# BT-01: an allocation that failed is no leak; it is counted apart.
# kernels: stock
. /lib.sh

load_btlog
load tm
new_log a source=slab module=tm

failed_before=$(counter a slab_failed_allocations)
tm alloc kmalloc A task 1000 $((64 << 20))
tm alloc kmalloc_large_node B task 100 $((64 << 20))
tm alloc kmalloc A task 7 64

expect_eq "tm's failures" "$(tm_state failed)" 1100
expect_eq "kept" "$(of_site a 9 siteA)" "7 448 1"
expect_eq "failed at B" "$(of_site a 9 siteB)" "0 0 0"
expect_eq "failures" "$(($(counter a slab_failed_allocations) - failed_before))" 1100
balanced a

# Nothing was recorded under address 0.
exec 3<>$D/a/find
echo 0 >&3
grep -q 'found=0' <&3 || die "a record of address 0"
exec 3>&-
