// SPDX-License-Identifier: GPL-2.0
/*
 * tcapture.c - captures stacks of all shapes, in all contexts
 *
 * Test only; with capture_verify= btlog compares each capture. Loading takes as
 * long as the test does. Meanwhile threads go down through functions that have
 * frames of all kinds, in random order, and capture at the bottom; timers and
 * irq_work do the same in interrupts, NMIs at any point of that. What is wanted
 * changes from one capture to the next: the depth, the cut, and whether the
 * call site is known, unknown or not there.
 *
 * With bench=1 it measures one capture instead, in nanoseconds, which are
 * instructions if the guest's clock counts them.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/stacktrace.h>

#include "../../internal.h"
#include "../../kunit/contexts.h"

#undef pr_fmt
#define pr_fmt(fmt) "tcapture: " fmt

static unsigned int seconds = 10;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "how long it takes");

static bool bench;
module_param(bench, bool, 0444);
MODULE_PARM_DESC(bench, "measure instead");

enum { THREADS = 3, SPREAD = 24, NO_CALL_SITE = 0x1234 };

static const u8 depths[] = { 8, 16, 30, 1, 60, 16, 8, 30 };

static atomic64_t captured, refused;

/* ==== Functions with frames of all kinds ==== */

/**
 * struct descent - a way down
 * @rnd: picks it
 * @call_site: where the stack is to start, if it is below
 */
struct descent {
	struct rnd_state rnd;
	unsigned long call_site;
};

static noinline void capture(struct descent *d)
{
	u32 random = prandom_u32_state(&d->rnd);
	unsigned long call_site = d->call_site;
	btref_t ref;

	if (random & 0x100)
		call_site = random & 0x200 ? 0 : NO_CALL_SITE;
	ref = btref_get(call_site, depths[random % ARRAY_SIZE(depths)],
			BTREF_NOWAIT | (random & 0x400 ? BTREF_CUT_IRQ : 0));
	atomic64_inc(btref_is_stack(ref) ? &captured : &refused);
	btref_put(ref);
}

static void dig(struct descent *d, unsigned int n);

static noinline void plain_frame(struct descent *d, unsigned int n)
{
	dig(d, n);
	barrier();
}

static noinline void large_frame(struct descent *d, unsigned int n)
{
	char room[600];

	barrier_data(room);
	dig(d, n);
	barrier_data(room);
}

/* A frame whose size isn't known to the compiler is found from BP. */
static noinline void bp_frame(struct descent *d, unsigned int n)
{
	char *room = __builtin_alloca(16 + (n & 7) * 8);

	barrier_data(room);
	dig(d, n);
	barrier_data(room);
}

/* A realigned frame is found from where it keeps its caller's SP. */
static noinline void aligned_frame(struct descent *d, unsigned int n)
{
	char room[64] __aligned(64);

	barrier_data(room);
	dig(d, n);
	barrier_data(room);
}

static noinline void busy_frame(struct descent *d, unsigned int n)
{
	unsigned long a = n * 3, b = n * 5, c = n * 7, e = n * 11, f = n * 13;

	OPTIMIZER_HIDE_VAR(a);
	OPTIMIZER_HIDE_VAR(b);
	OPTIMIZER_HIDE_VAR(c);
	OPTIMIZER_HIDE_VAR(e);
	OPTIMIZER_HIDE_VAR(f);
	dig(d, n);
	if (a + b + c + e + f != n * 39)
		pr_err("registers were lost\n");
}

static noinline void start_here(struct descent *d, unsigned int n)
{
	d->call_site = _RET_IP_;
	dig(d, n);
	barrier();
}

static void (*const frames[])(struct descent *d, unsigned int n) = {
	plain_frame, large_frame, bp_frame, aligned_frame, busy_frame,
	plain_frame, start_here, plain_frame,
};

static noinline void dig(struct descent *d, unsigned int n)
{
	u32 random = prandom_u32_state(&d->rnd);

	if (n)
		frames[random % ARRAY_SIZE(frames)](d, n - 1);
	else
		capture(d);
	barrier();
}

/* Not so deep that an interrupt on top of it would need too much stack. */
static void go_down(struct descent *d)
{
	d->call_site = 0;
	dig(d, prandom_u32_state(&d->rnd) % 8);
}

/* ==== Contexts ==== */

static struct interrupts irqs;
static struct task_struct *threads[THREADS];

static int thread(void *unused)
{
	struct descent d;
	unsigned int i;

	prandom_seed_state(&d.rnd, get_random_u64());
	while (!kthread_should_stop()) {
		for (i = 0; i < SPREAD; i++)
			go_down(&d);
		cond_resched();
	}
	return 0;
}

/* Each context goes on from where the last one of its kind was. */
static void interrupt(void *unused)
{
	static atomic_t seed;
	struct descent d;

	prandom_seed_state(&d.rnd, atomic_inc_return(&seed));
	go_down(&d);
}

static void stop_threads(void)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		if (!IS_ERR_OR_NULL(threads[i]))
			kthread_stop(threads[i]);
}

static int start_threads(void)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		threads[i] = kthread_run(thread, NULL, "tcapture/%u", i);
		if (IS_ERR(threads[i])) {
			stop_threads();
			return PTR_ERR(threads[i]);
		}
	}
	return 0;
}

static int stress(void)
{
	int err;

	if (!start_interrupts(&irqs, interrupt, NULL))
		return -EBUSY;
	err = start_threads();
	if (!err) {
		msleep(seconds * 1000);
		stop_threads();
	}
	stop_interrupts(&irqs);
	pr_info("captured %lld, refused %lld, in interrupts %u, of them NMIs %u\n",
		atomic64_read(&captured), atomic64_read(&refused),
		interrupts_in_all(&irqs), atomic_read(&irqs.runs[IN_NMI]));
	return err;
}

/* ==== Measurement ==== */

enum { ROUNDS = 2000 };

static noinline void measure_nothing(struct bt_context *ctx, unsigned int depth)
{
	barrier();
}

static noinline void measure_reference(struct bt_context *ctx,
				       unsigned int depth)
{
	stack_trace_save(ctx->ips, depth, 0);
	barrier();
}

static noinline void measure_here(struct bt_context *ctx, unsigned int depth)
{
	unwind_capture(ctx, 0, depth, BTREF_CUT_IRQ);
	barrier();
}

static noinline void measure_call_site(struct bt_context *ctx,
				       unsigned int depth)
{
	unwind_capture(ctx, _RET_IP_, depth, BTREF_CUT_IRQ);
	barrier();
}

static noinline void at_depth(void (*fn)(struct bt_context *, unsigned int),
			      struct bt_context *ctx, unsigned int depth,
			      unsigned int n)
{
	if (n)
		at_depth(fn, ctx, depth, n - 1);
	else
		fn(ctx, depth);
	barrier();
}

/* With interrupts off, so that nothing else runs; the first run fills caches. */
static u64 measure(void (*fn)(struct bt_context *, unsigned int),
		   unsigned int depth)
{
	struct bt_context *ctx = bt_context_enter();
	unsigned long flags;
	u64 start, end;
	unsigned int i;

	if (!ctx)
		return 0;
	at_depth(fn, ctx, depth, depth + 2);
	local_irq_save(flags);
	start = ktime_get_ns();
	for (i = 0; i < ROUNDS; i++)
		at_depth(fn, ctx, depth, depth + 2);
	end = ktime_get_ns();
	local_irq_restore(flags);
	bt_context_leave(ctx);
	return div_u64(end - start, ROUNDS);
}

static void measure_all(void)
{
	static const u8 some[] = { 8, 16, 30 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(some); i++) {
		u64 nothing = measure(measure_nothing, some[i]);

		pr_info("depth %u: stack_trace_save %llu, unwind_capture %llu, with call_site %llu\n",
			some[i], measure(measure_reference, some[i]) - nothing,
			measure(measure_here, some[i]) - nothing,
			measure(measure_call_site, some[i]) - nothing);
	}
}

static int __init tcapture_init(void)
{
	if (!bench)
		return stress();
	measure_all();
	return 0;
}

static void __exit tcapture_exit(void)
{
}

module_init(tcapture_init);
module_exit(tcapture_exit);
MODULE_DESCRIPTION("Test: captures stacks of all shapes in all contexts");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS(BTLOG_TEST);
