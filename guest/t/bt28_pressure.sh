# BT-28: recording goes on while memory runs out: processes come and go, files
# fill memory, a hog is killed for want of it, the library grows meanwhile.
# kernels: 6.1 6.12
# mem: 384
# expect-splat: Call Trace:
# time: 240
. /lib.sh

load_btlog
load tm
new_log hash source=slab records=131072
new_log ring source=slab type=log records=16384 depth=30

forks()
{
	while :; do
		ls -lR /sys/class >/dev/null 2>&1
		dd if=/dev/zero of=/tmp/fill bs=64k count=200 2>/dev/null
		rm -f /tmp/fill
	done
}

grow()
{
	while :; do
		echo "alloc kmalloc P12 task 8192" >$TM/cmd
		echo "free kmalloc P kfree task" >$TM/cmd
	done
}

# A string that doubles until the kernel kills its process.
hog()
{
	awk 'BEGIN { s = "0123456789abcdef"; while (1) s = s s }' 2>/dev/null
}

killed()
{
	awk '/^oom_kill /{ print $2 }' /proc/vmstat
}

forks & a=$!
grow & b=$!
before=$(killed)
tries=0
while [ $tries -lt 12 ] && [ $(($(killed) - before)) -lt 1 ]; do
	hog
	cat $D/top >/dev/null
	tries=$((tries + 1))
done
echo "killed for want of memory: $(($(killed) - before))"
expect_ge "kills" $(($(killed) - before)) 1
kill $a $b 2>/dev/null
wait $a $b 2>/dev/null
echo "free kmalloc P kfree task" >$TM/cmd 2>/dev/null

for log in hash ring; do
	balanced $log
	expect_eq "$log: refused because of recursion" \
		"$(counter $log refused_recursion)" 0
done
expect_eq "library" "$(value $D/library state)" ok
expect_ge "stacks that came" "$(value $D/library inserted)" 4096
