# SPDX-License-Identifier: GPL-2.0
# For people; what is built and how is in Kbuild, and in the scripts.

KDIR ?= /lib/modules/$(shell uname -r)/build
DESTDIR ?=
PARAMS ?=

.PHONY: all load unload install clean help deps lint kunit guest check demo bench torture

all: ## btlog.ko for the running kernel, or for the one whose build folder is KDIR=
	@test -e $(KDIR)/Makefile || { \
		echo "no kernel to build for in $(KDIR): install its headers, or say KDIR=" >&2; exit 1; }
	@$(MAKE) --no-print-directory -C $(KDIR) M=$(CURDIR) modules

load: all ## load it, with PARAMS='logs=leaks:source=slab'
	insmod ./btlog.ko $(PARAMS)

unload: ## unload it
	rmmod btlog

install: all ## install it for that kernel, under DESTDIR= if given
	@release=$$(cat $(KDIR)/include/config/kernel.release) && \
	install -vD -m 644 btlog.ko "$(DESTDIR)/lib/modules/$$release/updates/btlog.ko" && \
	{ [ -n "$(DESTDIR)" ] || depmod "$$release"; }

clean: ## remove what was built here; the cache of kernels stays
	@rm -rf build
	@find . -path ./.git -prune -o \( -name '*.o' -o -name '*.ko' -o -name '*.mod' \
		-o -name '*.mod.c' -o -name '.*.cmd' -o -name '.*.d' -o -name modules.order \
		-o -name Module.symvers \) -type f -exec rm -f {} +

help: ## show this
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 12
	@echo
	@echo 'K= names one of these kernels, which get fetched or built when needed:'
	@scripts/kernel.sh list | sed 's/^/  /' | paste -s -d ' '

deps: ## install the Debian packages that building and testing need
	@scripts/deps.sh build qemu lint

lint: ## warnings, sparse, checkpatch, shellcheck, documentation comments
	@scripts/check.sh lint

kunit: ## the KUnit suites on the debug kernels, or on K=; only SUITE= if given
	@scripts/check.sh kunit

guest: ## the tests in guests, on all kernels or K=; only test T= if given
	@scripts/check.sh guest

check: ## all of lint, kunit and guest
	@scripts/check.sh

demo: ## see btlog catch a leak in a guest, under K=6.12 or another
	@scripts/demo.sh

bench: ## measure in a guest what btlog costs
	@bench/run.sh

torture: ## everything at once for MIN= minutes (default 5), on K= (default 6.12-kasan)
	@scripts/check.sh torture

# What the targets above take from the command line.
export K T SUITE MIN
