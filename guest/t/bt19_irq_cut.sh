# BT-19: a leak in an interrupt is one stack, whatever it interrupts; without
# the cut it is many.
# kernels: 6.1 6.12 6.12-kasan
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
expect_eq "cut" "$*" "$n $((n * 64)) 1"
set -- $(of_site whole 1 siteC)
expect_eq "whole" "$1 $2" "$n $((n * 64))"
expect_ge "stacks in the whole" "$3" 2
tm free kmalloc C kfree task

# Softirqs run on the way out of interrupts and in a thread of their own.
tm alloc kmalloc C timer 2000
set -- $(of_site cut 1 siteC)
expect_eq "softirqs, cut" "$*" "2000 $((2000 * 64)) 1"
set -- $(of_site whole 1 siteC)
expect_eq "softirqs, whole" "$1" 2000
kill %1 2>/dev/null || kill $!
balanced cut
balanced whole
