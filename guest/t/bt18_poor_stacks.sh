# BT-18: the whole path to the allocator, in order, and nothing of btlog's or the
# kernel's tracing in front of it.
# kernels: stock
. /lib.sh

load_btlog
load tm

# The stack's functions, from the one that tm's C site is in.
stack()
{
	awk -v RS= '/ siteC\+/ {
		n = split($0, line, "\n")
		for (i = 1; i <= n; i++)
			if (line[i] ~ /^ /) {
				sub(/\+.*/, "", line[i])
				printf "%s", line[i]
			}
		print ""
	}' "$D/$1/top"
}

# check LOG TEXT-IN-FRONT CONTEXT
check()
{
	expect_eq "stacks in $3" "$(stack "$1" | wc -l)" 1
	case $(stack "$1") in
	"$2 siteC siteB siteA call_site alloc_step "*) ;;
	*) die "in $3: $(stack "$1")" ;;
	esac
	! stack "$1" | grep -q 'trampoline\|btlog\|traceiter' ||
		die "in $3: $(stack "$1")"
}

# One probe at a tracepoint is called in another way than two.
for probes in 1 2; do
	new_log a source=slab
	[ $probes = 1 ] || echo 1 >/sys/kernel/tracing/events/kmem/kmalloc/enable
	for c in task work softirq timer rcu preempt_off irqs_off raw_lock hardirq; do
		echo >$D/a/clear
		tm_may alloc kmalloc C $c 10 || continue
		check a "" $c
		tm free kmalloc C kfree task
	done
	for v in kmalloc_const kmalloc_node kstrdup kmemdup krealloc_grow \
		kmalloc_large kmalloc_large_const cache cache_node cache_bulk; do
		echo >$D/a/clear
		tm alloc $v C task 10
		check a "" $v
		tm free $v C kfree task
	done
	echo a >$D/remove
	[ $probes = 1 ] || echo 0 >/sys/kernel/tracing/events/kmem/kmalloc/enable
done

# A stack that was cut at its depth says so.
new_log a source=slab depth=3
tm alloc kmalloc C task 10
expect_eq "cut" "$(stack a)" " siteC siteB siteA ..."
