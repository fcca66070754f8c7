# BT-09: every way to allocate from the slab allocator, every legal way to free
# it again, in every context: as many records as objects, of the right size, then
# none.
# kernels: all
# time: 300
. /lib.sh

load_btlog
load tm
new_log a source=slab records=65536

n=40
cells=0 skipped=0

contexts="task work softirq timer rcu preempt_off irqs_off raw_lock hardirq"
kmallocs="kmalloc kmalloc_const kzalloc kmalloc_node kstrdup kmemdup
	krealloc_grow krealloc_shrink kmalloc_large kmalloc_large_const
	kmalloc_large_node kvmalloc"
caches="cache cache_zalloc cache_node cache_bulk"
kfrees="kfree kfree_sensitive kvfree kfree_rcu kvfree_rcu kfree_bulk call_rcu"
cache_frees="$kfrees cache_free cache_free_bulk"

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

is_empty()
{
	[ "$(of_site a 2 siteC)" = "0 0 0" ]
}

# What RCU frees is waited for at the end, for all cells at once.
emptied()
{
	case $2 in
	*_rcu) ;;
	*) is_empty || die "$1 $2 in $3: left $(of_site a 2 siteC)" ;;
	esac
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
		emptied "$1" "$2" "$4"
	fi
}

wait_rcu()
{
	tm barrier
	is_empty
}

# Each variant with each free, both in a task.
for v in $kmallocs; do
	for f in $kfrees; do
		cell $v $f task task
		case $f in
		*_rcu) wait_for 30 wait_rcu ;;
		esac
	done
done
for v in $caches; do
	for f in $cache_frees; do
		cell $v $f task task
		case $f in
		*_rcu) wait_for 30 wait_rcu ;;
		esac
	done
done

# Each variant and each free in each context.
for c in $contexts; do
	for v in $kmallocs $caches; do
		cell $v kfree $c task
	done
	for f in $cache_frees; do
		cell cache $f task $c
	done
	wait_for 30 wait_rcu
done

expect_eq "tm's objects" "$(tm_state objects)" 0
balanced a
echo "$cells cells, $skipped not possible on this kernel"
expect_ge cells $cells 100
