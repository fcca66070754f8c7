# Pairs per second on 1, 2 and 4 CPUs, by the clock on the wall.
# kernels: stock
# cpus: 4
# mem: 1536
# time: 300
# modules: virtio_pci 9p 9pnet_virtio
. /lib.sh
mount_share bench
. /mnt/guest.sh

MS=700

# scale NAME: with one stack for all, and with one each
scale()
{
	local distinct cpus

	for distinct in 0 1; do
		for cpus in 1 2 4; do
			result "scale.$1.$distinct.$cpus" \
				"$(bench_value pairs_per_second threads $cpus 16 $MS $distinct)"
		done
	done
}

cd /tmp || die "no folder"
cp /mnt/leak /tmp/
settle
load bench_load
load_btlog
scale none
new_log leaks source=slab
enable leaks
scale btlog
disable leaks
unload_btlog
bench probe 3 1
scale depot
bench probe 0 1
/tmp/leak || die "leak"
scale bpf
kill "$(cat leak.pid)"
