# BT-19: a leak in an interrupt isn't as many stacks as there are places that it
# interrupts; without the cut it is. The kernel's own entry code has two ways to
# the handler, of which one changes to the interrupt stack.
# kernels: 6.1 6.12
# time: 120
. /lib.sh

load_btlog
load tm
new_log cut source=slab:kmalloc-64
new_log whole source=slab:kmalloc-64 cut=none depth=32

n=10000

# Something else to be interrupted in every now and then.
load_cpus()
{
	while :; do
		ls -lR /proc/1 /sys/kernel/debug
		dd if=/dev/zero bs=4096 count=2000 | md5sum
		grep -r nothing /proc/sys
	done >/dev/null 2>&1
}

load_cpus &
tm alloc kmalloc C hardirq $n
set -- $(of_site cut 1 siteC)
echo "hardirq: $n objects, cut: $3 stacks, whole: $(of_site whole 1 siteC | cut -d' ' -f3)"
expect_eq "cut" "$1 $2" "$n $((n * 64))"
expect_le "stacks, cut" "$3" 2
set -- $(of_site whole 1 siteC)
expect_eq "whole" "$1 $2" "$n $((n * 64))"
expect_ge "stacks, whole" "$3" 3
tm free kmalloc C kfree task

# Softirqs run on the way out of interrupts and in a thread of their own.
tm alloc kmalloc C timer 2000
set -- $(of_site cut 1 siteC)
expect_eq "softirqs, cut" "$1 $2" "2000 $((2000 * 64))"
# run_timer_softirq() has a call for each of the CPU's timer wheels.
expect_le "softirqs, stacks, cut" "$3" 2
set -- $(of_site whole 1 siteC)
expect_eq "softirqs, whole" "$1" 2000
kill $!
balanced cut
balanced whole
