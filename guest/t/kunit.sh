# The KUnit suites; the host judges their cases from the console.
# kernels: debug
# mem: 2048
# time: 120
# ktap: yes
. /lib.sh

[ -e /ko/btlog_kunit.ko ] || die "there are no suites"
load_btlog lib_max_mb=256
load btlog_kunit
echo "suites $(find /sys/kernel/debug/kunit -mindepth 1 -type d | wc -l)"
