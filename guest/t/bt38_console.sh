# BT-38: everything that btlog has to say is said while another CPU floods the
# console, which allocates under its own lock.
# kernels: stock 6.1-lockdep
# time: 90
. /lib.sh

load_btlog
new_log hash source=slab records=16384
new_log ring source=slab type=log records=1024

flood()
{
	while :; do
		echo "<4>| filling the console with a line of some length" >/dev/kmsg
		echo "| and with a line written to it" >/dev/console
	done
}

flood & flood=$!
i=0
while [ $i -lt 60 ]; do
	echo "no such thing" >$D/hash/sort
	echo 99 >$D/hash/depth
	echo hash >$D/new
	echo nobody >$D/remove
	echo "0x" >$D/hash/find
	i=$((i + 1))
done 2>/dev/null
kill $flood
wait $flood 2>/dev/null
said=$(dmesg | grep -c 'btlog: ')
echo "lines of btlog's: $said"
expect_ge "lines" "$said" 5
balanced hash
balanced ring
