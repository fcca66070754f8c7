// SPDX-License-Identifier: GPL-2.0
/*
 * unwind_kunit.c - suite "btlog_unwind": where stacks start and end, steps, and
 * whole stacks that are known again
 *
 * That the frame cache gives what the reference gives is tested in a guest, see
 * guest/t/capture_exact.sh; here it has to give what is known beforehand.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/string.h>

#include "../unwind.h"
#include "contexts.h"

enum { DEEP = 40 };

/**
 * struct wish - what is captured at the bottom of a descent
 * @call_site: see unwind_capture()
 * @depth: likewise
 * @flags: likewise
 * @trace: the result
 * @caller: return address of the function that captures
 */
struct wish {
	unsigned long call_site;
	unsigned int depth;
	unsigned int flags;
	struct bt_trace trace;
	unsigned long caller;
};

static noinline void bottom(struct wish *wish)
{
	struct bt_context *ctx = bt_context_enter();

	wish->caller = _RET_IP_;
	wish->trace.nr = 0;
	if (!ctx)
		return;
	unwind_capture(ctx, wish->call_site, wish->depth, wish->flags);
	wish->trace = ctx->trace;
	bt_context_leave(ctx);
}

static noinline void descend(struct wish *wish, unsigned int n)
{
	if (n)
		descend(wish, n - 1);
	else
		bottom(wish);
	barrier();
}

static bool frame_is(const struct wish *wish, unsigned int i, const char *name)
{
	char buf[IMAGE_SYMBOL_LEN];

	if (i >= wish->trace.nr)
		return false;
	image_symbol(buf, wish->trace.frames[i]);
	return str_has_prefix(buf, name) && strchr("+.", buf[strlen(name)]);
}

static unsigned int count_frames(const struct wish *wish, const char *name)
{
	unsigned int i, n = 0;

	for (i = 0; i < wish->trace.nr; i++)
		n += frame_is(wish, i, name);
	return n;
}

/* ==== Start and depth; each case by the cache and by the reference ==== */

static const enum unwind_mode modes[] = { UNWIND_REFERENCE, UNWIND_CACHED };

static void mode_name(const enum unwind_mode *mode, char *name)
{
	strscpy(name, *mode == UNWIND_CACHED ? "cached" : "stack_trace_save",
		KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(mode, modes, mode_name);

static void use_mode(struct kunit *test)
{
	WRITE_ONCE(unwind_mode, *(const enum unwind_mode *)test->param_value);
}

static void starts_at_caller(struct kunit *test)
{
	struct wish wish = { .depth = BTREF_MAX_FRAMES };

	use_mode(test);
	descend(&wish, 3);
	KUNIT_EXPECT_TRUE(test, frame_is(&wish, 0, "bottom"));
	KUNIT_EXPECT_EQ(test, count_frames(&wish, "descend"), 4);
	KUNIT_EXPECT_TRUE(test, frame_is(&wish, 5, "starts_at_caller"));
	KUNIT_EXPECT_FALSE(test, wish.trace.truncated);
}

static void starts_at_call_site(struct kunit *test)
{
	struct wish wish = { .depth = BTREF_MAX_FRAMES };

	use_mode(test);
	descend(&wish, 3);
	wish.call_site = wish.caller;
	descend(&wish, 3);
	KUNIT_EXPECT_EQ(test, image_address(wish.trace.frames[0]), wish.caller);
	KUNIT_EXPECT_TRUE(test, frame_is(&wish, 0, "descend"));
	KUNIT_EXPECT_TRUE(test, frame_is(&wish, 4, "starts_at_call_site"));
}

static void unknown_call_site_is_no_call_site(struct kunit *test)
{
	struct wish wish = { .depth = BTREF_MAX_FRAMES, .call_site = 0x1234 };

	use_mode(test);
	descend(&wish, 3);
	KUNIT_EXPECT_TRUE(test, frame_is(&wish, 0, "bottom"));
	KUNIT_EXPECT_EQ(test, count_frames(&wish, "descend"), 4);
}

static void depth_cuts_and_says_so(struct kunit *test)
{
	struct wish wish = { .depth = BTREF_MAX_FRAMES };
	unsigned int whole, i;

	use_mode(test);
	descend(&wish, 3);
	whole = wish.trace.nr;
	KUNIT_ASSERT_FALSE(test, wish.trace.truncated);
	for (i = 1; i <= whole; i++) {
		wish.depth = i;
		descend(&wish, 3);
		KUNIT_EXPECT_EQ(test, wish.trace.nr, i);
		KUNIT_EXPECT_EQ(test, wish.trace.truncated, i < whole);
	}
	wish.depth = DEEP / 2;
	descend(&wish, DEEP);
	KUNIT_EXPECT_EQ(test, count_frames(&wish, "descend"), DEEP / 2 - 1);
	KUNIT_EXPECT_TRUE(test, wish.trace.truncated);
}

/* ==== Interrupts ==== */

static struct wish hard_wish, soft_wish;

static void capture_in_interrupt(void *unused)
{
	if (in_nmi())
		return;
	descend(in_hardirq() ? &hard_wish : &soft_wish, 2);
}

static void wish_from_interrupts(struct kunit *test, unsigned int flags)
{
	static struct interrupts irqs;

	hard_wish = (struct wish){ .depth = BTREF_MAX_FRAMES, .flags = flags };
	soft_wish = hard_wish;
	KUNIT_ASSERT_TRUE(test, start_interrupts(&irqs, capture_in_interrupt,
						 NULL));
	msleep(100);
	stop_interrupts(&irqs);
	KUNIT_ASSERT_GT(test, hard_wish.trace.nr, 0);
	KUNIT_ASSERT_GT(test, soft_wish.trace.nr, 0);
}

/* Timers come from the local APIC or as a device's interrupt; then irq_work. */
static bool ends_at_interrupt(struct wish *wish)
{
	unsigned int last = wish->trace.nr - 1;

	return frame_is(wish, last, "asm_sysvec_apic_timer_interrupt") ||
	       frame_is(wish, last, "asm_sysvec_irq_work") ||
	       frame_is(wish, last, "asm_common_interrupt");
}

static void interrupts_can_be_cut(struct kunit *test)
{
	use_mode(test);
	wish_from_interrupts(test, BTREF_CUT_IRQ);
	KUNIT_EXPECT_TRUE(test, ends_at_interrupt(&hard_wish));
	KUNIT_EXPECT_FALSE(test, hard_wish.trace.truncated);
	KUNIT_EXPECT_TRUE(test, frame_is(&soft_wish, soft_wish.trace.nr - 1,
					 "handle_softirqs"));
	KUNIT_EXPECT_FALSE(test, soft_wish.trace.truncated);
}

static void interrupts_need_not_be_cut(struct kunit *test)
{
	use_mode(test);
	wish_from_interrupts(test, 0);
	KUNIT_EXPECT_FALSE(test, frame_is(&soft_wish, soft_wish.trace.nr - 1,
					  "handle_softirqs"));
	KUNIT_EXPECT_EQ(test, count_frames(&soft_wish, "handle_softirqs"), 1);
	KUNIT_EXPECT_EQ(test, count_frames(&hard_wish, "descend"), 3);
}

/* ==== Steps ==== */

static unsigned long returned_to;

static noinline void note_caller(void)
{
	WRITE_ONCE(returned_to, _RET_IP_);
}

static noinline void call_from_plain_frame(unsigned int n)
{
	note_caller();
	barrier();
}

static noinline void call_from_bp_frame(unsigned int n)
{
	char *room = __builtin_alloca(16 + n * 8);

	barrier_data(room);
	note_caller();
	barrier_data(room);
}

static noinline void call_from_aligned_frame(unsigned int n)
{
	char room[64] __aligned(64);

	barrier_data(room);
	note_caller();
	barrier_data(room);
}

static struct unwind_step decode(unsigned long ip)
{
	struct unwind_step step = {};

#ifdef CONFIG_UNWINDER_ORC
	preempt_disable();
	unwind_decode(&step, ip, STEP_GENERATION);
	preempt_enable();
#endif
	return step;
}

static void expect_kind(struct kunit *test, void (*fn)(unsigned int n),
			unsigned int kinds)
{
	struct unwind_step step;

	fn(3);
	step = decode(returned_to);
	KUNIT_EXPECT_NE(test, BIT(step_kind(&step)) & kinds, 0);
	KUNIT_EXPECT_EQ(test, step_role(&step), 0);
	KUNIT_EXPECT_EQ(test, step.ip + TEXT_BASE, returned_to);
	KUNIT_EXPECT_EQ(test, image_address(step.frame), returned_to);
}

static void steps_are_understood(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_UNWINDER_ORC))
		kunit_skip(test, "this kernel has no ORC");
	expect_kind(test, call_from_plain_frame, BIT(STEP_SP));
	expect_kind(test, call_from_bp_frame, BIT(STEP_BP));
	/* Realigned by way of another register, or of BP itself. */
	expect_kind(test, call_from_aligned_frame,
		    BIT(STEP_BP_INDIRECT) | BIT(STEP_BP));
}

static unsigned long no_text;

static void other_words_have_no_step(struct kunit *test)
{
	unsigned long words[] = {
		(unsigned long)&no_text,		/* data of a module */
		(unsigned long)&jiffies,		/* and of the kernel */
		(unsigned long)call_from_plain_frame,	/* no call before it */
		TEXT_BASE,
		ULONG_MAX,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(words); i++) {
		struct unwind_step step = decode(words[i]);

		KUNIT_EXPECT_EQ(test, step_kind(&step), STEP_OTHER);
	}
}

static void own_text_leads(struct kunit *test)
{
	preempt_disable();
	KUNIT_EXPECT_EQ(test, unwind_role((unsigned long)btref_put + 5),
			UNWIND_LEAD);
	KUNIT_EXPECT_EQ(test, unwind_role((unsigned long)schedule + 5), 0);
	preempt_enable();
}

/* ==== Whole stacks ==== */

#ifdef CONFIG_UNWINDER_ORC

/* One call site for all ways that lead here. */
static noinline btref_t get_here(void)
{
	btref_t ref = btref_get(_RET_IP_, 16, BTREF_NOWAIT | BTREF_CUT_IRQ);

	barrier();
	return ref;
}

static noinline btref_t common_way(void)
{
	btref_t ref = get_here();

	barrier();
	return ref;
}

static noinline btref_t left_way(void)
{
	btref_t ref = common_way();

	barrier();
	return ref;
}

static noinline btref_t right_way(void)
{
	btref_t ref = common_way();

	barrier();
	return ref;
}

/* From here on the CPU stays the same, and with it what is remembered. */
static void begin_to_remember(void)
{
	WRITE_ONCE(unwind_mode, UNWIND_CACHED);
	migrate_disable();
}

static unsigned int remembered_in(btref_t (*way)(void))
{
	u64 before = unwind_count(UWC_REMEMBERED);

	btref_put(way());
	return unwind_count(UWC_REMEMBERED) - before;
}

/* One place in the code, so that all its stacks are the same. */
static unsigned int remembered(btref_t (*way)(void), unsigned int rounds)
{
	unsigned int n = 0;

	while (rounds--)
		n += remembered_in(way);
	return n;
}

static void known_again(struct kunit *test)
{
	begin_to_remember();
	/* Seen, seen again and learnt, known; and whatever interrupts may do. */
	KUNIT_EXPECT_GE(test, remembered(left_way, 1000), 900);
	migrate_enable();
}

static void ways_are_told_apart(struct kunit *test)
{
	unsigned int i, known = 0;
	u32 left[BTREF_MAX_FRAMES], right[BTREF_MAX_FRAMES];

	begin_to_remember();
	for (i = 0; i < 1000; i++) {
		u64 before = unwind_count(UWC_REMEMBERED);
		btref_t a = left_way(), b = right_way();

		known += unwind_count(UWC_REMEMBERED) - before;
		KUNIT_EXPECT_NE(test, a, b);
		KUNIT_EXPECT_GT(test, btref_decode(a, left, NULL), 3);
		KUNIT_EXPECT_GT(test, btref_decode(b, right, NULL), 3);
		/* get_here() is left out: it begins in common_way(). */
		KUNIT_EXPECT_EQ(test, left[0], right[0]);
		KUNIT_EXPECT_NE(test, left[1], right[1]);
		btref_put(a);
		btref_put(b);
	}
	KUNIT_EXPECT_GE(test, known, 1800);
	migrate_enable();
}

static void forgotten_when_stacks_die(struct kunit *test)
{
	unsigned int i, known = 0;

	begin_to_remember();
	remembered(right_way, 10);
	for (i = 0; i < 100; i++) {
		unwind_forget();
		known += remembered(right_way, 1);
	}
	KUNIT_EXPECT_EQ(test, known, 0);
	migrate_enable();
}

#endif

static int unwind_suite_init(struct kunit *test)
{
	test->priv = (void *)(long)unwind_mode;
	return btlib_use();
}

static void unwind_suite_exit(struct kunit *test)
{
	WRITE_ONCE(unwind_mode, (long)test->priv);
	btlib_unuse();
}

static struct kunit_case unwind_cases[] = {
	KUNIT_CASE_PARAM(starts_at_caller, mode_gen_params),
	KUNIT_CASE_PARAM(starts_at_call_site, mode_gen_params),
	KUNIT_CASE_PARAM(unknown_call_site_is_no_call_site, mode_gen_params),
	KUNIT_CASE_PARAM(depth_cuts_and_says_so, mode_gen_params),
	KUNIT_CASE_PARAM(interrupts_can_be_cut, mode_gen_params),
	KUNIT_CASE_PARAM(interrupts_need_not_be_cut, mode_gen_params),
	KUNIT_CASE(steps_are_understood),
	KUNIT_CASE(other_words_have_no_step),
	KUNIT_CASE(own_text_leads),
#ifdef CONFIG_UNWINDER_ORC
	KUNIT_CASE(known_again),
	KUNIT_CASE(ways_are_told_apart),
	KUNIT_CASE(forgotten_when_stacks_die),
#endif
	{}
};

static struct kunit_suite unwind_suite = {
	.name = "btlog_unwind",
	.init = unwind_suite_init,
	.exit = unwind_suite_exit,
	.test_cases = unwind_cases,
};

kunit_test_suite(unwind_suite);
