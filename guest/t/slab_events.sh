# What is an event of the slab source and what is not; its caches by name.
# kernels: stock
. /lib.sh

load_btlog
load tm

# Nothing at all is allocated: kfree(NULL), kmalloc(0) and its free.
nulls()
{
	new_log a source=slab
	tm nulls 1000
	expect_eq "records without an address" "$(of_site a 9 siteA)" "0 0 0"
	# A shell allocates as well, but never a hundred objects for one line.
	expect_le "events of nothing" "$(counter a seen)" 5000
	echo a >$D/remove
}

# One record and one event for each object that has pages of its own, though
# the kernel may tell of it twice.
large()
{
	local v

	for v in kmalloc_large kmalloc_large_node kmalloc_large_const; do
		new_log a source=slab:kmalloc-large
		tm alloc $v A task 100
		expect_eq "$v" "$(of_site a 1 siteA)" "100 $(tm_state $v.A.bytes) 1"
		expect_eq "$v seen" "$(counter a seen)" "$(counter a recorded)"
		expect_eq "$v replaced" "$(counter a replaced)" 0
		# Others allocate pages now and then, but not so many.
		expect_le "$v seen" "$(counter a seen)" 150
		tm free $v A kfree task
		expect_eq "$v" "$(of_site a 1 siteA)" "0 0 0"
		echo a >$D/remove
	done
}

caches_of()
{
	sed -n 's/^cache: //p' "$D/$1/top" | sed 's/ x[0-9]*//g; s/, /\n/g' | sort -u
}

# Several logs at once, each with its own caches, type and depth.
filters()
{
	new_log all source=slab
	new_log small "source=slab:kmalloc-64,kmalloc-128" depth=4
	new_log tm "source=slab:tm_*"
	new_log none source=slab:no-such-cache
	new_log events type=log "source=slab:tm_cache"
	tm alloc kmalloc A task 100 64
	tm alloc kmalloc_node B task 50 100
	tm alloc kmalloc C task 20 1024
	tm alloc cache A task 30
	expect_eq "all A" "$(of_site all 1 siteA)" "130 12400 2"
	expect_eq "all B" "$(of_site all 1 siteB)" "50 5000 1"
	expect_eq "all C" "$(of_site all 1 siteC)" "20 20480 1"
	expect_eq "small A" "$(of_site small 1 siteA)" "100 6400 1"
	expect_eq "small B" "$(of_site small 1 siteB)" "50 5000 1"
	expect_eq "small C" "$(of_site small 1 siteC)" "0 0 0"
	expect_eq "tm A" "$(of_site tm 1 siteA)" "30 6000 1"
	expect_eq "tm" "$(counter tm recorded)" 30
	expect_eq "none" "$(counter none seen)" 0
	expect_eq "caches of tm" "$(caches_of tm)" tm_cache
	! caches_of small | grep -qvx 'kmalloc-64\|kmalloc-128' ||
		die "small has $(caches_of small)"
	tm free kmalloc A kfree task
	tm free kmalloc_node B kfree task
	tm free kmalloc C kfree task
	tm free cache A cache_free task
	for log in all small tm; do
		expect_eq "$log left" "$(of_site $log 1 siteA)" "0 0 0"
		balanced $log
	done
	expect_eq "tm erased" "$(counter tm erased)" 30
	expect_eq "tm untracked" "$(counter tm untracked_free)" 0
	expect_eq "events" "$(counter events recorded)" 60
	expect_eq "allocations" "$(of_site events 1 siteA alloc)" "30 6000 1"
	balanced events
	for log in all small tm none events; do
		echo $log >$D/remove
	done
}

bad_names()
{
	echo a >$D/new
	expect_fail sh -c "echo slab:a,,b >$D/a/source"
	expect_fail sh -c "echo slab:, >$D/a/source"
	echo a >$D/remove
}

# A cache's name stays with its records, whatever is made at its address.
recycled()
{
	new_log a type=log records=4096 "source=slab:tm_one*,tm_two*"
	for i in 1 2 3 4 5 6 7 8; do
		tm cache tm_one$i 3
		tm cache tm_two$i 5
	done
	for i in 1 2 3 4 5 6 7 8; do
		for name in tm_one$i tm_two$i; do
			echo $name
		done
	done | sort >names
	caches_of_records >seen
	cmp names seen || die "caches: $(cat seen)"
	expect_eq "events" "$(counter a recorded)" $((8 * 2 * (3 + 5)))
	echo a >$D/remove
}

# Report by cache, since a stack's line shows the first few only.
caches_of_records()
{
	for i in 1 2 3 4 5 6 7 8; do
		for name in tm_one$i tm_two$i; do
			echo $name >$D/a/cache
			caches_of a
		done
	done | sort -u
	echo >$D/a/cache
}

# Frees in bulk are events of each object, with the stack of the caller.
bulk()
{
	new_log a type=log records=4096 "source=slab:tm_cache,kmalloc-64"
	tm alloc cache_bulk A task 100
	tm free cache_bulk A cache_free_bulk task
	tm alloc kmalloc A task 50
	tm free kmalloc A kfree_bulk task
	echo tm >$D/a/module
	expect_eq "allocated" "$(of_site a 1 siteA alloc)" "150 23200 2"
	expect_eq "freed" "$(frees_by a free_many)" 150
	expect_eq "missed" "$(counter a missed_return)" 0
	balanced a
	echo a >$D/remove
}

# frees_by LOG FUNCTION: records of frees whose stack starts there
frees_by()
{
	awk -v RS= -v first="$2" '
		/^op: free/ && match($0, /\n [^\n]*/) &&
		index(substr($0, RSTART + 2), first "+") == 1 {
			sub(/.*\ncount: /, "")
			n += $1
		}
		END { print n + 0 }' "$D/$1/top"
}

# All hooks or none: what frees unseen would look leaked.
all_or_none()
{
	echo 0 >/proc/sys/kernel/ftrace_enabled
	echo a >$D/new
	echo slab >$D/a/source
	expect_fail sh -c "echo 1 >$D/a/enable"
	dmesg | tail -20 | grep -q 'slab: no hook at kmem_cache_free_bulk' ||
		die "nothing said of the missing hook"
	echo 1 >/proc/sys/kernel/ftrace_enabled
	echo 1 >$D/a/enable || die "can't be enabled"
	expect_fail sh -c "echo 0 >/proc/sys/kernel/ftrace_enabled"
	expect_eq "hooks" "$(counter a slab_hooks)" "6 of 6"
	echo a >$D/remove
}

hooks_are_gone()
{
	[ ! -e /sys/kernel/tracing/enabled_functions ] ||
		! grep -q kmem_cache /sys/kernel/tracing/enabled_functions ||
		die "$(cat /sys/kernel/tracing/enabled_functions)"
}

nulls
large
filters
bad_names
recycled
bulk
all_or_none
hooks_are_gone
