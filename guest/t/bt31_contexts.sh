# BT-31: events with preemption off, interrupts off or a raw lock held, in both
# kinds of log, while somebody reads: right counts, and nothing that sleeps.
# kernels: stock 6.1-lockdep
# time: 120
. /lib.sh

load_btlog
load tm
new_log hash source=slab:kmalloc-192 records=65536
new_log ring source=slab:kmalloc-192 type=log records=65536

reader()
{
	while :; do
		cat $D/ring/top $D/hash/stats >/dev/null
	done
}

reader & reader=$!
all=0 skipped=
for context in preempt_off irqs_off raw_lock hardirq softirq timer rcu; do
	if ! tm_may alloc kmalloc B $context 500 192; then
		skipped="$skipped $context"
		continue
	fi
	all=$((all + 500))
	expect_eq "in $context" "$(of_site hash 1 siteB | cut -d' ' -f1)" 500
	tm_may free kmalloc B kfree $context || tm free kmalloc B kfree task
	expect_eq "left in $context" "$(of_site hash 1 siteB)" "0 0 0"
done
kill $reader
wait $reader 2>/dev/null
echo "not allowed here:${skipped:- none}"
expect_ge "events" $all 500
expect_eq "events of allocation" "$(of_site ring 1 siteB alloc | cut -d' ' -f1)" $all
balanced hash
balanced ring
