# BT-09: every way to allocate from the slab allocator, every legal way to free
# it again, in every context: as many records as objects, of the right size, then
# none.
# kernels: stock 6.1-lockdep
# time: 300
. /lib.sh

load_btlog
load tm
new_log a source=slab records=65536 module=tm

n=40
cells=0 skipped=0

contexts="task work softirq timer rcu preempt_off irqs_off raw_lock hardirq"
kmallocs="kmalloc kmalloc_const kzalloc kmalloc_node kstrdup kmemdup
	krealloc_grow krealloc_shrink kmalloc_large kmalloc_large_const
	kmalloc_large_node kvmalloc"
caches="cache cache_zalloc cache_node cache_bulk"
kfrees="kfree kfree_sensitive kvfree kfree_bulk"
cache_frees="$kfrees cache_free cache_free_bulk"
rcu_frees="kfree_rcu kvfree_rcu call_rcu"

# kvmalloc() calls the allocator itself.
frames()
{
	[ "$1" = kvmalloc ] && echo 2 || echo 1
}

# filled VARIANT CONTEXT: false if it can't be
filled()
{
	tm_may alloc "$1" C "$2" $n || return
	expect_eq "$1 in $2: tm's objects" "$(tm_state "$1.C.objects")" $n
	expect_eq "$1 in $2" "$(of_site a "$(frames "$1")" siteC | cut -d' ' -f1-2)" \
		"$n $(tm_state "$1.C.bytes")"
}

# cell VARIANT FREEVARIANT CONTEXT-OF-ALLOC CONTEXT-OF-FREE
cell()
{
	if ! filled "$1" "$3"; then
		skipped=$((skipped + 1))
	elif ! tm_may free "$1" C "$2" "$4"; then
		skipped=$((skipped + 1))
		tm free "$1" C kfree task
	else
		cells=$((cells + 1))
		expect_eq "$1 in $3, $2 in $4" "$(of_site a 2 siteC)" "0 0 0"
	fi
}

# What RCU frees takes seconds to go, so it has a site of its own.
b_is_empty()
{
	tm barrier
	[ "$(of_site a 2 siteB)" = "0 0 0" ]
}

# all_freed_by FREEVARIANT: all variants at once
all_freed_by()
{
	local objects=0 v

	for v in $kmallocs $caches; do
		tm alloc "$v" B task $n
		objects=$((objects + n))
	done
	expect_eq "objects to $1" "$(of_site a 2 siteB | cut -d' ' -f1)" $objects
	for v in $kmallocs $caches; do
		tm free "$v" B "$1" task
		cells=$((cells + 1))
	done
	wait_for 30 b_is_empty
}

for v in $kmallocs; do
	for f in $kfrees; do
		cell "$v" "$f" task task
	done
done
for v in $caches; do
	for f in $cache_frees; do
		cell "$v" "$f" task task
	done
done
for f in $rcu_frees; do
	all_freed_by "$f"
done

# Each variant and each free in each context.
for c in $contexts; do
	for v in $kmallocs $caches; do
		cell "$v" kfree "$c" task
	done
	for f in $cache_frees; do
		cell cache "$f" task "$c"
	done
	for f in $rcu_frees; do
		tm alloc cache B task $n
		if tm_may free cache B "$f" "$c"; then
			cells=$((cells + 1))
		else
			skipped=$((skipped + 1))
			tm free cache B kfree task
		fi
	done
done
wait_for 30 b_is_empty

expect_eq "tm's objects" "$(tm_state objects)" 0
balanced a
echo "$cells cells, $skipped not possible on this kernel"
expect_ge cells $cells 150
