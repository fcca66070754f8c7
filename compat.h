/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compat.h - every difference between the supported kernels, and nothing else
 *
 * The code is written for the newest kernel; each block says which kernel made
 * it needed, so that it can be deleted with that kernel.
 */
#ifndef BTLOG_COMPAT_H
#define BTLOG_COMPAT_H

#include <linux/version.h>
#include <linux/fprobe.h>
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/slab.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "btlog supports kernels from 6.1 on"
#endif

struct bt_text {
	unsigned long start;
	unsigned int size;
};

/* 6.4 split the memory of a module by kind. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
static inline struct bt_text module_core_text(const struct module *mod)
{
	return (struct bt_text){ (unsigned long)mod->core_layout.base,
				 mod->core_layout.text_size };
}

static inline struct bt_text module_init_text(const struct module *mod)
{
	return (struct bt_text){ (unsigned long)mod->init_layout.base,
				 mod->init_layout.text_size };
}
#else
static inline struct bt_text module_core_text(const struct module *mod)
{
	return (struct bt_text){ (unsigned long)mod->mem[MOD_TEXT].base,
				 mod->mem[MOD_TEXT].size };
}

static inline struct bt_text module_init_text(const struct module *mod)
{
	return (struct bt_text){ (unsigned long)mod->mem[MOD_INIT_TEXT].base,
				 mod->mem[MOD_INIT_TEXT].size };
}
#endif

/* 6.1: the arguments lie open in struct ftrace_regs. */
#ifndef ftrace_regs_get_argument
#define ftrace_regs_get_argument(fregs, n) \
	regs_get_kernel_argument(&(fregs)->regs, n)
#endif

/* 6.1: likewise. */
#ifndef ftrace_regs_get_stack_pointer
#define ftrace_regs_get_stack_pointer(fregs) \
	kernel_stack_pointer(&(fregs)->regs)
#endif

/* 6.1: likewise. Where the BP of the function's caller is, saved on each entry. */
#ifdef arch_ftrace_regs
#define ftrace_regs_bp(fregs) (&arch_ftrace_regs(fregs)->regs.bp)
#else
#define ftrace_regs_bp(fregs) (&(fregs)->regs.bp)
#endif

/* 6.1: functions that allocate had no wrapper macros and no _noprof names. */
#ifdef kmem_cache_alloc_bulk
#define BT_ALLOC_BULK "kmem_cache_alloc_bulk_noprof"
#else
#define BT_ALLOC_BULK "kmem_cache_alloc_bulk"
#endif

/**
 * struct bt_return - a hook at the return of a kernel function
 * @symbol: its name
 * @data_size: bytes that entry may hand over to exit
 * @slots: how many calls may be under way at once; more are missed
 * @entry: called at the entry, preemption off
 * @exit: called at the return, preemption off, with the caller's address
 * @probe: the kernel's side of it
 */
struct bt_return {
	const char *symbol;
	size_t data_size;
	int slots;
	void (*entry)(struct pt_regs *regs, void *data);
	void (*exit)(unsigned long caller, struct pt_regs *regs, void *data);
#ifdef CONFIG_FPROBE
	struct fprobe probe;
#else
	struct kretprobe probe;
#endif
};

#ifdef CONFIG_FPROBE

static inline int bt_return_entry(struct fprobe *probe, unsigned long ip,
				  unsigned long caller, struct pt_regs *regs,
				  void *data)
{
	container_of(probe, struct bt_return, probe)->entry(regs, data);
	return 0;
}

static inline void bt_return_exit(struct fprobe *probe, unsigned long ip,
				  unsigned long caller, struct pt_regs *regs,
				  void *data)
{
	container_of(probe, struct bt_return, probe)->exit(caller, regs, data);
}

static inline int bt_return_register(struct bt_return *hook)
{
	hook->probe = (struct fprobe) {
		.entry_handler = bt_return_entry,
		.exit_handler = bt_return_exit,
		.entry_data_size = hook->data_size,
		.nr_maxactive = hook->slots,
		.ops.flags = FTRACE_OPS_FL_PERMANENT,
	};
	return register_fprobe(&hook->probe, hook->symbol, NULL);
}

static inline void bt_return_unregister(struct bt_return *hook)
{
	unregister_fprobe(&hook->probe);
}

static inline unsigned long bt_return_missed(const struct bt_return *hook)
{
	return READ_ONCE(hook->probe.nmissed);
}

#else /* 6.1: stock kernels have no fprobes */

static inline int bt_return_entry(struct kretprobe_instance *ri,
				  struct pt_regs *regs)
{
	struct kretprobe *probe = get_kretprobe(ri);

	container_of(probe, struct bt_return, probe)->entry(regs, ri->data);
	return 0;
}

static inline int bt_return_exit(struct kretprobe_instance *ri,
				 struct pt_regs *regs)
{
	struct kretprobe *probe = get_kretprobe(ri);

	container_of(probe, struct bt_return, probe)->exit(get_kretprobe_retaddr(ri),
							   regs, ri->data);
	return 0;
}

static inline int bt_return_register(struct bt_return *hook)
{
	hook->probe = (struct kretprobe) {
		.kp.symbol_name = hook->symbol,
		.entry_handler = bt_return_entry,
		.handler = bt_return_exit,
		.data_size = hook->data_size,
		.maxactive = hook->slots,
	};
	return register_kretprobe(&hook->probe);
}

static inline void bt_return_unregister(struct bt_return *hook)
{
	unregister_kretprobe(&hook->probe);
}

/* A kprobe that is hit inside another one's handler is missed as well. */
static inline unsigned long bt_return_missed(const struct bt_return *hook)
{
	return READ_ONCE(hook->probe.nmissed) +
	       READ_ONCE(hook->probe.kp.nmissed);
}

#endif /* CONFIG_FPROBE */

#endif
