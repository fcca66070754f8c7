# The same with preempt=full: nested events, all contexts, unloading.
# kernels: 6.1 6.12
# cpus: 4
# time: 400
# append: preempt=full
. /lib.sh

under_preempt full
