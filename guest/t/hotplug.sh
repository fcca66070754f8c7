# CPUs come and go while events are recorded and read.
# kernels: stock
# time: 120
. /lib.sh

C=/sys/devices/system/cpu/cpu1/online
[ -e $C ] || skip "this kernel can't take a CPU off"
load_btlog
load tm
new_log hash source=slab records=65536
new_log ring source=slab type=log records=4096
new_log sampled source=slab sample=bytes:4K records=4096

load_cpus()
{
	while :; do
		ls -lR /sys/class >/dev/null 2>&1
		cat $D/top >/dev/null
	done
}

load_cpus & busy=$!
i=0
while [ $i -lt 12 ]; do
	echo 0 >$C || die "CPU 1 doesn't go"
	tm alloc kmalloc B task 1000
	echo 1 >$C || die "CPU 1 doesn't come"
	tm alloc kmalloc B task 1000
	expect_eq "of tm" "$(of_site hash 1 siteB | cut -d' ' -f1)" 2000
	tm free kmalloc B kfree task
	i=$((i + 1))
done
kill $busy
wait $busy 2>/dev/null
expect_eq "left of tm" "$(of_site hash 1 siteB)" "0 0 0"
for log in hash ring sampled; do
	balanced $log
done
