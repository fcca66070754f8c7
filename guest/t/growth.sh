# The library grows to a million stacks while others look up and release.
# kernels: 6.1 6.12
# mem: 2048
# time: 300
. /lib.sh

load_btlog lib_max_mb=512 lib_timing=1
load torture seconds=0 grow=1000000
dmesg | grep 'torture: '
expect_fail rmmod btlog
rmmod torture
unload_btlog
