// SPDX-License-Identifier: GPL-2.0
/*
 * feed.c - makes up events for a log, so that tests know what is in it
 *
 * The parameters say what to make up; `run` takes "record", "erase" or "unknown"
 * and does it, in the process that writes it. Stacks are numbered: a
 * number gives the same stack each time. Addresses go up from `addr` by 64.
 *
 *	record		`records` events; event i has stack `first` + i % `stacks`
 *	erase		the addresses that "record" would have
 *	unknown		as record, but without a stack, for `reason`
 */
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "../../btlog.h"

static char *log = "";
module_param(log, charp, 0644);
static ulong addr = 0xffff888000000000;
module_param(addr, ulong, 0644);
static uint records = 1;
module_param(records, uint, 0644);
static uint stacks = 1;
module_param(stacks, uint, 0644);
static uint first;
module_param(first, uint, 0644);
static uint size = 64;
module_param(size, uint, 0644);
static uint tag;
module_param(tag, uint, 0644);
static uint op;
module_param(op, uint, 0644);
static uint reason;
module_param(reason, uint, 0644);
static uint depth = 3;
module_param(depth, uint, 0644);
static bool truncated;
module_param(truncated, bool, 0644);
static bool in_module;
module_param(in_module, bool, 0644);

static u32 kernel_frame;
static u32 module_frame;

static btref_t make_stack(u32 number)
{
	u32 frames[BTREF_MAX_FRAMES];
	unsigned int i, n = min_t(u32, depth, BTREF_MAX_FRAMES);

	for (i = 0; i < n; i++)
		frames[i] = kernel_frame + i;
	frames[0] = in_module ? module_frame : kernel_frame + number % 4096;
	if (n > 1)
		frames[1] += number / 4096;
	if (n > 2)
		frames[2] += number % 4096;
	return btref_intern(frames, n, truncated ? BTREF_TRUNCATED : 0);
}

static void record_one(struct btlog *to, u32 i, bool unknown)
{
	struct btlog_event ev = {
		.addr = addr + (u64)i * 64, .size = size, .op = op, .tag = tag,
	};

	if (btlog_wants(to, size))
		btlog_record(to, &ev, unknown ? btref_reason(reason) :
			     make_stack(first + i % max(stacks, 1U)));
}

static void feed_log(struct btlog *to, const char *what)
{
	u32 i;

	for (i = 0; i < records; i++) {
		if (!strcmp(what, "erase"))
			btlog_erase(to, addr + (u64)i * 64);
		else
			record_one(to, i, !strcmp(what, "unknown"));
		cond_resched();
	}
}

static int run(const char *value, const struct kernel_param *kp)
{
	char what[16], name[32];
	struct btlog *to;

	strscpy(what, value, sizeof(what));
	strscpy(name, log, sizeof(name));
	to = btlog_find(strim(name));
	if (!to)
		return -ENOENT;
	feed_log(to, strim(what));
	btlog_release(to);
	return 0;
}

static const struct kernel_param_ops run_ops = { .set = run };
module_param_cb(run, &run_ops, NULL, 0200);

/*
 * Not in the init section, whose frames are gone when they are printed. The
 * caller's frame is in it, the next one is the kernel's.
 */
static noinline int learn_frames(void)
{
	u32 frames[BTREF_MAX_FRAMES];
	btref_t ref = btref_get(0, BTREF_MAX_FRAMES, 0);
	unsigned int n = btref_decode(ref, frames, NULL);

	btref_put(ref);
	if (n < 3)
		return -EIO;
	module_frame = frames[0];
	kernel_frame = frames[2];
	return 0;
}

static int __init feed_init(void)
{
	return learn_frames();
}

static void __exit feed_exit(void)
{
}

module_init(feed_init);
module_exit(feed_exit);
MODULE_DESCRIPTION("Made-up events for btlog's tests");
MODULE_LICENSE("GPL");
