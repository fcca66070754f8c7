# The sample that leaks is found, first in the list; what it gives back is gone.
# kernels: stock
. /lib.sh

load_btlog
new_log a source=slab module=leaky sort=count

leaked()
{
	awk -v RS= '/ leak_one\+/' $D/a/top | grep -q '^count: 512$'
}

for free in 0 1; do
	load leaky count=512 free=$free
	wait_for 20 leaked
	awk -v RS= '/^count:/ { print; exit }' $D/a/top | grep -q ' leak_one+' ||
		die "$(cat $D/a/top)"
	rmmod leaky
	if [ $free = 0 ]; then
		leaked || die "the leak is gone with the module"
		echo >$D/a/clear
	else
		! grep -q ' leak_one+' $D/a/top || die "$(cat $D/a/top)"
	fi
done
