# The kernel's own tracking of slab users, which a boot parameter switches on.
# kernels: stock
# mem: 1536
# time: 600
# append: slub_debug=U
# modules: virtio_pci 9p 9pnet_virtio
. /lib.sh
mount_share bench
. /mnt/guest.sh

set_up_work
settle
load bench_load
warm_up
result pair.slub "$(bench_value pair pair 16 3000)"
work slub
