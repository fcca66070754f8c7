// SPDX-License-Identifier: GPL-2.0
/*
 * blind.c - lets hooks of the bulk functions see empty calls
 *
 * Test only: shows what an accounting of slab objects is worth that doesn't
 * know of bulk allocations and frees. Hooks of one function are called newest
 * first. So one that is older than those in question and one that is younger,
 * registered while the parameter "on" is set, take the arguments out of their
 * sight, with the number of objects among them, and put them back behind them:
 *
 *	caller -> hide -> the others -> restore -> function
 *
 * To be loaded before the log is enabled that is to be blinded.
 */
#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "compat.h"

/* In a register that the functions don't care for: the call is hidden. */
#define HIDDEN 0x626c696e64UL

static void notrace hide(unsigned long ip, unsigned long parent,
			 struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);

	regs->r8 = regs->si;
	regs->r9 = regs->dx;
	regs->r10 = HIDDEN;
	regs->si = 0;
	regs->dx = 0;
}

static void notrace restore(unsigned long ip, unsigned long parent,
			    struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = ftrace_get_regs(fregs);

	if (regs->r10 != HIDDEN)
		return;
	regs->si = regs->r8;
	regs->dx = regs->r9;
	regs->r10 = 0;
}

static struct ftrace_ops hide_ops = {
	.func = hide,
	.flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_RECURSION,
};

static struct ftrace_ops restore_ops = {
	.func = restore,
	.flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_RECURSION,
};

/* Only once for each: ftrace_free_filter() leaves nothing to start again from. */
static int set_filter(struct ftrace_ops *ops)
{
	char free_bulk[] = "kmem_cache_free_bulk", alloc_bulk[] = BT_ALLOC_BULK;

	return ftrace_set_filter(ops, free_bulk, strlen(free_bulk), 0) ?:
	       ftrace_set_filter(ops, alloc_bulk, strlen(alloc_bulk), 0);
}

static void free_filters(void)
{
	ftrace_free_filter(&hide_ops);
	ftrace_free_filter(&restore_ops);
}

static bool is_on;

static int set_on(const char *value, const struct kernel_param *kp)
{
	bool on;
	int err = kstrtobool(value, &on);

	if (err || on == is_on)
		return err;
	if (on)
		err = register_ftrace_function(&hide_ops);
	else
		err = unregister_ftrace_function(&hide_ops);
	if (!err)
		is_on = on;
	return err;
}

static const struct kernel_param_ops on_ops = {
	.set = set_on,
	.get = param_get_bool,
};
module_param_cb(on, &on_ops, &is_on, 0644);
MODULE_PARM_DESC(on, "hide bulk calls (not at load time)");

static int __init blind_init(void)
{
	int err;

	err = set_filter(&hide_ops) ?: set_filter(&restore_ops) ?:
	      register_ftrace_function(&restore_ops);
	if (err)
		free_filters();
	return err;
}

static void __exit blind_exit(void)
{
	if (is_on)
		unregister_ftrace_function(&hide_ops);
	unregister_ftrace_function(&restore_ops);
	free_filters();
}

module_init(blind_init);
module_exit(blind_exit);
MODULE_DESCRIPTION("btlog: hides bulk allocations and frees from their hooks");
MODULE_LICENSE("GPL");
