# Readers and writers of every file are killed in mid-call.
# kernels: stock 6.12-kasan
# time: 90
. /lib.sh

load_btlog
new_log a source=slab records=65536
new_log b source=slab type=log records=65536

reader()
{
	while :; do cat $D/top $D/a/stats $D/images $D/library >/dev/null; done
}

writer()
{
	while :; do
		echo 1 >$D/b/clear
		echo 0 >$D/b/enable
		echo 1 >$D/b/enable
		echo 0xffff888000000000 >$D/a/find
		echo x >$D/new
		echo x >$D/remove
	done 2>/dev/null
}

rounds=60
has_config KASAN || has_config LOCKDEP && rounds=20
i=0
while [ $i -lt $rounds ]; do
	reader & r=$!
	writer & w=$!
	usleep $((20000 + i % 10 * 10000))
	kill -9 $r $w
	wait $r $w 2>/dev/null
	i=$((i + 1))
done
[ ! -e $D/x ] || echo x >$D/remove
echo 1 >$D/b/enable
cat $D/top >/dev/null
balanced a
balanced b
unload_btlog
