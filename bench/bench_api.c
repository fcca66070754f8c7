// SPDX-License-Identifier: GPL-2.0
/*
 * bench_api.c - what calls into btlog cost
 *
 * The logs are made and set up by the script: "bench" is a HASH log without a
 * source, "ring" a LOG, "sampled" takes one event of very many.
 */
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/stackdepot.h>
#include <linux/stacktrace.h>
#include <linux/vmalloc.h>

#include "../internal.h"
#include "bench.h"

MODULE_IMPORT_NS(BTLOG_TEST);

enum {
	MAX_ROUNDS	= 1024,
	DEPTH		= 16,
	OBJECT_SIZE	= 64,
	GROW_FRAMES	= 12,
	TEXT_SPREAD	= 4 << 20,	/* bytes of kernel text that frames are of */
};

/* Addresses as a slab hands them out; @half tells two sets apart. */
static u64 address(unsigned int i, unsigned int half)
{
	return 0xffff888012340000ULL + ((u64)half << 32) + i * OBJECT_SIZE;
}

static struct btlog *bench_log, *ring_log, *sampled_log;
static u32 frames[BTREF_MAX_FRAMES];
static unsigned long ips[BTREF_MAX_FRAMES];
static unsigned int capture_depth;
static btref_t refs[MAX_ROUNDS];
static unsigned int rounds;
static unsigned int first;		/* address of round 0 */

/* ==== What is measured: one call each ==== */

static noinline void do_wants(unsigned int i)
{
	btlog_wants(bench_log, OBJECT_SIZE);
}

static noinline void do_sampled_out(unsigned int i)
{
	btlog_wants(sampled_log, OBJECT_SIZE);
}

static noinline void do_intern(unsigned int i)
{
	refs[i] = btref_intern(frames, DEPTH, BTREF_NOWAIT);
}

static noinline void do_put(unsigned int i)
{
	btref_put(refs[i]);
}

static __always_inline void record(struct btlog *log, unsigned int i,
				   btref_t ref)
{
	const struct btlog_event event = {
		.addr = address(first + i, 0),
		.size = OBJECT_SIZE,
	};

	btlog_record(log, &event, ref);
}

static noinline void do_record(unsigned int i)
{
	record(bench_log, i, refs[i]);
}

static noinline void do_whole(unsigned int i)
{
	if (btlog_wants(bench_log, OBJECT_SIZE))
		record(bench_log, i, btref_intern(frames, DEPTH, BTREF_NOWAIT));
}

static noinline void do_ring(unsigned int i)
{
	if (btlog_wants(ring_log, OBJECT_SIZE))
		record(ring_log, i, btref_intern(frames, DEPTH, BTREF_NOWAIT));
}

static noinline void do_erase(unsigned int i)
{
	btlog_erase(bench_log, address(first + i, 0));
}

static noinline void do_miss(unsigned int i)
{
	btlog_erase(bench_log, address(i, 1));
}

static noinline void do_depot(unsigned int i)
{
	stack_depot_save(ips, DEPTH, GFP_NOWAIT | __GFP_NOWARN);
}

static noinline void do_save(unsigned int i)
{
	stack_trace_save(ips, capture_depth, 0);
}

/* As a hook does, the next two begin at the caller of what they observe. */
static noinline void capture_here(void)
{
	struct bt_context *ctx = bt_context_enter();

	if (!ctx)
		return;
	unwind_capture(ctx, _RET_IP_, capture_depth, BTREF_CUT_IRQ);
	bt_context_leave(ctx);
}

static noinline void do_capture(unsigned int i)
{
	capture_here();
	barrier();
}

static noinline void get_here(unsigned int i)
{
	refs[i] = btref_get(_RET_IP_, capture_depth,
			    BTREF_NOWAIT | BTREF_CUT_IRQ);
}

static noinline void do_get(unsigned int i)
{
	get_here(i);
	barrier();
}

/* ==== Logs and stacks to work with ==== */

static void forget_logs(void)
{
	struct btlog **logs[] = { &bench_log, &ring_log, &sampled_log };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(logs); i++) {
		if (*logs[i])
			btlog_release(*logs[i]);
		*logs[i] = NULL;
	}
}

static int find_logs(void)
{
	bench_log = btlog_find("bench");
	ring_log = btlog_find("ring");
	sampled_log = btlog_find("sampled");
	if (bench_log && ring_log && sampled_log)
		return 0;
	forget_logs();
	return -ENOENT;
}

static int begin(long wanted_rounds)
{
	if (wanted_rounds < 1 || wanted_rounds > MAX_ROUNDS)
		return -ERANGE;
	rounds = wanted_rounds;
	return find_logs();
}

/* The current stack, as frames and as addresses. */
static noinline void take_stack(void *ref)
{
	*(btref_t *)ref = btref_get(0, DEPTH, BTREF_CUT_IRQ);
	btref_decode(*(btref_t *)ref, frames, NULL);
	stack_trace_save(ips, DEPTH, 0);
	barrier();
}

/* ==== Commands ==== */

static void print_cost(const char *name, void (*op)(unsigned int i))
{
	bench_print("%s: %ld", name, bench_cost(op, rounds));
}

static void measure_records(void)
{
	print_cost("wants", do_wants);
	print_cost("lookup", do_intern);
	print_cost("put", do_put);
	bench_cost(do_intern, rounds);
	print_cost("record", do_record);
	print_cost("erase", do_erase);
	print_cost("record_whole", do_whole);
	print_cost("replace_whole", do_whole);
	bench_cost(do_erase, rounds);
	print_cost("erase_untracked", do_miss);
	print_cost("sampled_out", do_sampled_out);
	print_cost("ring_whole", do_ring);
	print_cost("ring_whole_again", do_ring);
	print_cost("stack_depot_save", do_depot);
}

/* records ROUNDS: costs without capture, of a log that is nearly empty */
static int run_records(const long *args)
{
	btref_t ref;
	int err = begin(args[0]);

	if (err)
		return err;
	first = 0;
	bench_descend(bench_levels(DEPTH + 2), 0, take_stack, &ref);
	bench_print("frames: %u", btref_decode(ref, frames, NULL));
	/* The first time of all is not what an event usually costs. */
	do_depot(0);
	bench_cost(do_whole, rounds);
	bench_cost(do_erase, rounds);
	measure_records();
	btref_put(ref);
	forget_logs();
	return 0;
}

/* filled RECORDS ROUNDS: the same, with RECORDS in the log already */
static int run_filled(const long *args)
{
	btref_t ref;
	int err = begin(args[1]);

	if (err)
		return err;
	bench_descend(bench_levels(DEPTH + 2), 0, take_stack, &ref);
	for (first = 0; first + rounds <= args[0]; first += rounds)
		bench_cost(do_whole, rounds);
	print_cost("record_whole", do_whole);
	print_cost("erase", do_erase);
	print_cost("erase_untracked", do_miss);
	btlog_clear(bench_log);
	btref_put(ref);
	forget_logs();
	return 0;
}

static void measure_capture(void *arg)
{
	unsigned int i;

	for (i = 0; i < 16; i++) {
		do_capture(0);
		do_get(0);
		btref_put(refs[0]);
	}
	print_cost("stack_trace_save", do_save);
	print_cost("capture", do_capture);
	print_cost("get", do_get);
	for (i = 0; i < rounds; i++)
		btref_put(refs[i]);
}

/* capture DEPTH ROUNDS: of DEPTH frames of a stack that has some more */
static int run_capture(const long *args)
{
	int err;

	if (args[0] < 1 || args[0] > BTREF_MAX_FRAMES)
		return -ERANGE;
	err = begin(args[1]);
	if (err)
		return err;
	capture_depth = args[0];
	bench_descend(bench_levels(capture_depth + 2), 0, measure_capture,
		      NULL);
	forget_logs();
	return 0;
}

/*
 * Different stacks of real text: the addresses lie behind kthread(), which is
 * near the beginning of the kernel.
 */
static void make_stack(u32 *to, unsigned int n, u32 base, u32 number)
{
	unsigned int i;
	u64 x = number;

	for (i = 0; i < n; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		to[i] = base + (u32)(x >> 33) % TEXT_SPREAD;
	}
	/* The generator's first number alone tells the stacks apart. */
	to[n - 1] = base + number;
}

static noinline u32 kernel_frame(void)
{
	btref_t ref = btref_get(0, BTREF_MAX_FRAMES, 0);
	unsigned int n = btref_decode(ref, frames, NULL);

	btref_put(ref);
	/* ... kthread, ret_from_fork, ret_from_fork_asm */
	return n > 3 ? min(frames[n - 2], frames[n - 3]) : 0;
}

/* fill RECORDS STACKS: so many records of the log, over so many stacks */
static int run_fill(const long *args)
{
	u32 base = kernel_frame(), stack[DEPTH];
	unsigned int i;
	int err = find_logs();

	if (err)
		return err;
	btlog_clear(bench_log);
	first = 0;
	for (i = 0; i < args[0]; i++) {
		make_stack(stack, DEPTH, base, i % args[1]);
		if (btlog_wants(bench_log, OBJECT_SIZE))
			record(bench_log, i, btref_intern(stack, DEPTH, 0));
		if (i % 1024 == 0)
			cond_resched();
	}
	bench_print("outstanding: %llu", btlog_outstanding(bench_log));
	forget_logs();
	return 0;
}

/* grow STACKS: so many stacks, all held, then all given back */
static int run_grow(const long *args)
{
	u32 base = kernel_frame(), stack[GROW_FRAMES];
	btref_t *held = vzalloc(array_size(args[0], sizeof(*held)));
	u64 start = get_cycles();
	unsigned int i;

	if (!held)
		return -ENOMEM;
	for (i = 0; i < args[0]; i++) {
		make_stack(stack, GROW_FRAMES, base, i);
		held[i] = btref_intern(stack, GROW_FRAMES, 0);
		if (i % 256 == 0)
			cond_resched();
	}
	bench_print("ticks_per_stack: %llu",
		    div_u64(get_cycles() - start, args[0]));
	bench_print("stacks: %u", btlib_stacks());
	for (i = 0; i < args[0]; i++) {
		btref_put(held[i]);
		if (i % 1024 == 0)
			cond_resched();
	}
	vfree(held);
	return 0;
}

static const struct bench_command commands[] = {
	{ "capture", 2, run_capture },
	{ "fill", 2, run_fill },
	{ "filled", 2, run_filled },
	{ "grow", 1, run_grow },
	{ "records", 1, run_records },
	{ }
};

static int __init bench_api_init(void)
{
	bench_add_commands(commands);
	return 0;
}

static void __exit bench_api_exit(void)
{
	bench_remove_commands(commands);
}

module_init(bench_api_init);
module_exit(bench_api_exit);
MODULE_DESCRIPTION("Calls of btlog for its bench");
MODULE_LICENSE("GPL");
