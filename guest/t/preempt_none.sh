# The same with preempt=none: nested events, all contexts, unloading.
# kernels: 6.1 6.12
# cpus: 4
# time: 400
# append: preempt=none
. /lib.sh

under_preempt none
