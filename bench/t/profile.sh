# Runs what bench/profile.sh watches instruction by instruction: first all of
# it, to warm up, then a few rounds of each, of which the last one counts.
# kernels: stock
# mem: 1024
# time: 3000
# modules: virtio_pci 9p 9pnet_virtio
. /lib.sh
mount_share bench
. /mnt/guest.sh

# Asks the host for something and waits until it is so. The file is there from
# the start: to create one while the host removes another fails at times.
ask_host()
{
	echo "$1" >/mnt/ask
	wait_for 600 test ! -s /mnt/ask
}

watched()
{
	ask_host watch
	bench "$@"
	ask_host rest
}

load bench_load
load_btlog
load bench_api
make_api_logs
new_log leaks source=slab
new_log events type=log source=slab
grep ' [tTwW] ' /proc/kallsyms >/mnt/symbols

bench records 1024
watched records 2
bench capture 16 16
watched capture 16 2
bench pair 16 20
watched pair 16 6
new_log always source=slab sample=bytes:512K
for log in leaks events always; do
	enable $log
	bench pair 16 20
	watched pair 16 6
	disable $log
done
ask_host end
