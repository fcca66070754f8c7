# The same with preempt=none: nested events, all contexts, unloading.
# kernels: 6.1 6.12
# cpus: 4
# time: 400
# append: preempt=none
. /lib.sh

grep -q '(none)' /sys/kernel/debug/sched/preempt ||
	die "the kernel isn't booted with preempt=none"
for t in bt03_nested bt31_contexts bt16_concurrent bt34_unload report; do
	echo "$t"
	sh /t/$t.sh || die "$t"
	for module in tm feed btlog; do
		! is_loaded $module || rmmod $module
	done
done
