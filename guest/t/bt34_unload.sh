# BT-34: unloading with everything on and hooked functions busy, again and
# again; failing to load half way through; nothing is left each time.
# kernels: stock
# time: 240
. /lib.sh

T=/sys/kernel/tracing
cycles=${CYCLES:-4}

nothing_left()
{
	[ ! -e $D ] || die "files are left"
	! grep -q 'btlog' $T/enabled_functions /sys/kernel/debug/kprobes/list ||
		die "hooks are left"
	! grep -q 'btlog' /proc/slabinfo /proc/vmallocinfo || die "memory is left"
	! ps | grep -v grep | grep -q '\[btlog' || die "a thread is left"
}

# All the hooked functions, bulk ones included.
busy()
{
	while :; do
		ls -lR /sys/class >/dev/null 2>&1
		echo "alloc cache_bulk A task 64" >$TM/cmd
		echo "free cache_bulk A cache_free_bulk task" >$TM/cmd
		echo "alloc kmalloc B task 64" >$TM/cmd
		echo "free kmalloc B kfree_rcu task" >$TM/cmd
	done
}

# What fails after the first log has been started.
bad_parameter()
{
	case $(($1 % 6)) in
	0) echo "logs=h:source=slab;l:records=1" ;;
	1) echo "logs=h:source=slab;h:" ;;
	2) echo "logs=h:source=slab;l:source=nowhere" ;;
	3) echo "logs=h:source=slab;l:nonsense" ;;
	4) echo "logs=h:source=slab;:source=slab" ;;
	5) echo "logs=h:source=slab;l:depth=61" ;;
	esac
}

load tm
busy & busy=$!
i=0
while [ $i -lt $cycles ]; do
	load_btlog "logs=h:source=slab,records=4096;l:type=log,source=slab"
	new_log s source=slab:kmalloc-* sample=10 records=1024
	cat $D/top >/dev/null
	# Half of the times the logs are still on.
	[ $((i % 2)) = 0 ] || for log in h l s; do echo 0 >$D/$log/enable; done
	unload_btlog
	nothing_left
	bad=$(bad_parameter $i)
	expect_fail insmod /ko/btlog.ko "$bad"
	nothing_left
	i=$((i + 1))
done
kill $busy
wait $busy 2>/dev/null
tm barrier
