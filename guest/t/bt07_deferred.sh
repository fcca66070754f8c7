# BT-07: objects that are freed late or in bulk are no leaks.
# kernels: stock
# time: 180
# mem: 1536
. /lib.sh

load_btlog
load tm
new_log a source=slab records=524288 module=tm

n=100000
has_config KASAN || has_config LOCKDEP && n=10000

# Objects freed by kfree_rcu() wait for some seconds in its batches.
gone()
{
	tm barrier
	[ "$(of_site a 1 siteA)" = "0 0 0" ]
}

# deferred VARIANT FREEVARIANT
deferred()
{
	local bytes

	tm alloc "$1" A task $n
	bytes=$(tm_state "$1.A.bytes")
	expect_eq "$1" "$(of_site a 1 siteA)" "$n $bytes 1"
	tm free "$1" A "$2" task
	wait_for 30 gone
	echo "$1 $2: 0 of $n left"
}

deferred kmalloc kfree_rcu
deferred kmalloc kfree_bulk
deferred kmalloc call_rcu
deferred cache kfree_rcu
deferred cache call_rcu
deferred cache kfree_bulk
deferred cache cache_free_bulk
deferred cache_bulk cache_free_bulk
deferred cache_bulk cache_free
n=$((n / 10))
deferred kmalloc kvfree_rcu
n=2000
deferred kmalloc_large kfree_rcu
deferred kmalloc_large kfree_bulk
balanced a
