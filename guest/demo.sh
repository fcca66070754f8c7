# What `make demo` runs in a guest: an ordinary load, a leaking module beside
# it, and btlog's report of what is still allocated.
# time: 180
. /lib.sh

echo "This is Linux $(uname -r). btlog gets loaded and logs every slab allocation:"
load_btlog logs=leaks:source=slab
echo "  insmod btlog.ko logs=leaks:source=slab"
echo

echo "Now an ordinary load: processes, files, an archive ..."
find /proc/self /sys/devices /sys/module >/dev/null 2>&1
i=0
while [ $i -lt 50 ]; do
	(exec cat /proc/self/maps >/dev/null)
	i=$((i + 1))
done
tar -cf archive.tar /bin /ko /t 2>/dev/null
rm archive.tar

echo "... and a module with a leak."
load leaky
sleep 3
sync
echo 3 >/proc/sys/vm/drop_caches
echo

echo "What is outstanding, by bytes. The stack in front is where the most memory was"
echo "taken that nobody gave back; count says how often, age_s for how long it lies there:"
echo
awk 'BEGIN { RS = ""; ORS = "\n\n" } NR <= 4' $D/leaks/top
echo

unload_btlog
rmmod leaky
grep -qE '^(btlog|leaky) ' /proc/modules && die "a module is still there"
echo "Both modules are gone, and the kernel has nothing to say against it."
