# The guest comes up, and btlog loads and unloads.
# kernels: stock
. /lib.sh

load_btlog
is_loaded btlog || die "no trace of btlog"
unload_btlog
