# Allocations fail at random while btlog starts, grows, reports and stops: an
# error each, or a report that is complete, and the next try works.
# kernels: none
# time: 60
. /lib.sh

F=/sys/kernel/debug

# inject PERCENT: into what this shell and its children do
inject()
{
	local what

	for what in failslab fail_page_alloc; do
		[ -e $F/$what ] || skip "no fault injection in this kernel"
		echo 0 >$F/$what/verbose
		echo Y >$F/$what/task-filter
		echo -1 >$F/$what/times
		echo "$1" >$F/$what/probability
	done
	echo N >$F/failslab/ignore-gfp-wait
	echo N >$F/fail_page_alloc/ignore-gfp-wait
	echo 0 >$F/fail_page_alloc/min-order
}

# Only what PROGRAM itself does fails, not what starts it.
failing()
{
	sh -c 'echo 1 >/proc/self/make-it-fail; exec "$@"' sh "$@" 2>/dev/null
}

put()
{
	failing sh -c "echo $1 >$2"
}

# The first slab log makes a cache, to learn from; if that fails, the kernel
# itself prints a call trace and leaks a name. So it is made before.
inject 0
load tm
learn()
{
	percent_now=$(cat $F/failslab/probability)
	echo 0 >$F/failslab/probability
	echo 0 >$F/fail_page_alloc/probability
	echo 0 >$D/a/enable
	echo slab >$D/a/source
	echo 1 >$D/a/enable || die "no slab log"
	echo "$percent_now" >$F/failslab/probability
	echo "$percent_now" >$F/fail_page_alloc/probability
}

started=0 failed=0 reports=0
for percent in 1 5 20 50; do
	echo $percent >$F/failslab/probability
	echo $percent >$F/fail_page_alloc/probability
	i=0
	while [ $i -lt 6 ]; do
		if failing insmod /ko/btlog.ko logs=a:records=4096; then
			started=$((started + 1))
			learn
			put b $D/new && put slab $D/b/source && put 1 $D/b/enable
			put "alloc kmalloc P8 task 256" $TM/cmd
			failing cat $D/a/top >/tmp/top && reports=$((reports + 1))
			put 0 $D/a/enable
			put 1 $D/a/enable
			put b $D/remove
			tm free kmalloc P kfree task 2>/dev/null
			balanced a
			unload_btlog
		else
			failed=$((failed + 1))
			[ ! -e $D ] || die "files are left of a load that failed"
		fi
		i=$((i + 1))
	done
done
echo 0 >$F/failslab/probability
echo 0 >$F/fail_page_alloc/probability
echo "loads: $started, failed loads: $failed, reports: $reports"
expect_ge "failed loads" $failed 1
expect_ge "loads" $started 1

load_btlog
new_log a source=slab records=4096
tm alloc kmalloc B task 100
expect_eq "after all that" "$(of_site a 1 siteB | cut -d' ' -f1)" 100
