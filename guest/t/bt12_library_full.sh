# BT-12: a full library loses stacks, never counts, and takes new stacks when
# old ones have gone.
# kernels: stock
. /lib.sh

load_btlog lib_max_stacks=64
load tm
new_log a source=slab:kmalloc-1k records=131072 depth=12

of_path()
{
	of_site a 1 siteP
}

total()
{
	awk -F ': ' '/^(shown|below_top|filtered|own|not_kept_[a-z_]*)_'"$1"':/ {
		sum += $2 } END { printf "%d\n", sum }' $D/a/top
}

tm alloc kmalloc P8 task 200 1024
tm alloc kmalloc C task 65536 1024
expect_eq "records" "$(counter a outstanding)" "$(total count)"
expect_ge "records" "$(counter a outstanding)" $((200 + 65536))
expect_ge "bytes" "$(total bytes)" $(((200 + 65536) * 1024))
not_kept=$(value $D/a/top not_kept_library_full_count)
echo "without a stack: $not_kept"
expect_ge "not kept" "$not_kept" 65536
expect_eq "the hot path" "$(of_site a 1 siteC)" "0 0 0"
expect_le "stacks" "$(value $D/library stacks)" 64
expect_ge "refused" "$(value $D/library refused_library_full)" 65536
balanced a

# Old stacks go, new ones come in.
tm free kmalloc P kfree task
room_again()
{
	tm alloc kmalloc B task 10 1024
	set -- $(of_site a 1 siteB)
	[ "$1" -gt 0 ]
}
wait_for 20 room_again
balanced a
