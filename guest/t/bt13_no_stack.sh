# BT-13: what has no stack is a line of its own, never a stack among the others;
# and the shallowest stack there can be is one.
# kernels: stock
. /lib.sh

load_btlog lib_max_stacks=1
load tm
new_log none source=slab:kmalloc-512 records=4096
new_log one source=slab:kmalloc-512 records=4096 depth=1
tm alloc kmalloc P6 task 640 512

blank_stacks()
{
	awk -v RS= '/^count: / && !/\n [^ ]/' "$1" | wc -l
}

stacks()
{
	grep -c '^count: ' "$1"
}

for log in none one; do
	expect_eq "$log: stacks without a frame" "$(blank_stacks $D/$log/top)" 0
	expect_le "$log: stacks" "$(stacks $D/$log/top)" 1
	expect_ge "$log: without a stack" \
		"$(value $D/$log/top not_kept_library_full_count)" 630
	expect_eq "$log: lines of that reason" \
		"$(grep -c '^not_kept_library_full_count' $D/$log/top)" 1
	balanced $log
done
tm free kmalloc P kfree task
unload_btlog

# With room, a depth of 1 gives one frame, marked as cut.
load_btlog
new_log one source=slab:kmalloc-512 records=4096 depth=1
tm alloc kmalloc C task 640 512
expect_eq "stacks without a frame" "$(blank_stacks $D/one/top)" 0
awk -v RS= '/^count: / { n = gsub(/\n [^.]/, ""); if (n != 1) bad++ }
	END { exit bad > 0 }' $D/one/top || die "a stack of more than one frame"
grep -q '^ \.\.\.' $D/one/top || die "no stack is marked as cut"
expect_eq "of tm" "$(of_site one 1 siteC)" "640 $((640 * 512)) 1"
tm free kmalloc C kfree task
