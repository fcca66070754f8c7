// SPDX-License-Identifier: GPL-2.0
/*
 * image_kunit.c - suite "btlog_image": addresses to frames to names
 *
 * What happens when modules come and go takes a guest, see guest/t.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "../internal.h"
#include "contexts.h"

/* Where no text can be; nobody reads it. */
#define NOWHERE 0xdeaf000000000000UL

static u32 frame_of(unsigned long addr)
{
	u32 frame;

	preempt_disable();
	frame = image_frame(addr);
	preempt_enable();
	return frame;
}

static u32 known_frame_of(unsigned long addr)
{
	u32 frame;

	preempt_disable();
	frame = image_known_frame(addr);
	preempt_enable();
	return frame;
}

/* Is the frame's name @prefix and then something? */
static bool is_named(u32 frame, const char *prefix)
{
	char buf[IMAGE_SYMBOL_LEN];
	int len = image_symbol(buf, frame);

	return len == strlen(buf) && str_has_prefix(buf, prefix);
}

static void kernel_text_is_one_image(struct kunit *test)
{
	unsigned long a = (unsigned long)schedule, b = (unsigned long)wake_up_process;
	u32 frame = frame_of(a);

	KUNIT_EXPECT_NE(test, frame, 0);
	KUNIT_EXPECT_EQ(test, frame, known_frame_of(a));
	KUNIT_EXPECT_EQ(test, frame + 1, frame_of(a + 1));
	KUNIT_EXPECT_EQ(test, frame_of(b) - frame, (u32)(b - a));
	KUNIT_EXPECT_EQ(test, image_address(frame), a);
	KUNIT_EXPECT_TRUE(test, is_named(frame + 5, "schedule+0x5/0x"));
	KUNIT_EXPECT_TRUE(test, image_in_module(frame, "kernel"));
	KUNIT_EXPECT_FALSE(test, image_in_module(frame, "btlog"));
	KUNIT_EXPECT_FALSE(test, image_is_own(frame));
}

/* A call at a function's end returns into the next one, and isn't its. */
static void names_are_those_of_the_call(struct kunit *test)
{
	struct bt_range symbol;

	KUNIT_ASSERT_TRUE(test, image_find_symbol("schedule", &symbol));
	KUNIT_EXPECT_EQ(test, symbol.start, (unsigned long)schedule);
	KUNIT_EXPECT_TRUE(test, is_named(frame_of(symbol.start + symbol.size),
					 "schedule+0x"));
	KUNIT_EXPECT_FALSE(test, image_find_symbol("btlog_no_such_symbol", &symbol));
}

static void modules_are_told_apart(struct kunit *test)
{
	u32 own = frame_of((unsigned long)btref_put);
	u32 here = frame_of((unsigned long)modules_are_told_apart);
	char buf[IMAGE_SYMBOL_LEN];

	KUNIT_EXPECT_EQ(test, image_address(own), (unsigned long)btref_put);
	KUNIT_EXPECT_TRUE(test, image_is_own(own));
	KUNIT_EXPECT_TRUE(test, image_in_module(own, "btlog"));
	KUNIT_EXPECT_TRUE(test, is_named(own + 5, "btref_put+0x5/0x"));
	image_symbol(buf, own + 5);
	KUNIT_EXPECT_NOT_NULL(test, strstr(buf, " [btlog]"));

	KUNIT_EXPECT_FALSE(test, image_is_own(here));
	KUNIT_EXPECT_TRUE(test, image_in_module(here, THIS_MODULE->name));
	KUNIT_EXPECT_EQ(test, known_frame_of((unsigned long)modules_are_told_apart),
			here);
}

static void other_text_gets_pages(struct kunit *test)
{
	u32 frame = frame_of(NOWHERE + 0x10);

	KUNIT_EXPECT_NE(test, frame, 0);
	KUNIT_EXPECT_EQ(test, known_frame_of(NOWHERE + 0x10), 0);
	KUNIT_EXPECT_EQ(test, frame_of(NOWHERE + 0x10), frame);
	KUNIT_EXPECT_EQ(test, frame_of(NOWHERE + 0x18), frame + 8);
	KUNIT_EXPECT_NE(test, frame_of(NOWHERE + PAGE_SIZE) / PAGE_SIZE,
			frame / PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, image_address(frame), NOWHERE + 0x10);
	KUNIT_EXPECT_TRUE(test, is_named(frame, "[text +0xdeaf000000000010]"));
	KUNIT_EXPECT_FALSE(test, image_is_own(frame));
	KUNIT_EXPECT_FALSE(test, image_in_module(frame, "kernel"));
}

static void bad_frames_have_no_address(struct kunit *test)
{
	static const u32 bad[] = { 0, 2, U32_MAX / 2, U32_MAX };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_EQ(test, image_address(bad[i]), 0);
		KUNIT_EXPECT_TRUE(test, is_named(bad[i], "[frame 0x"));
		KUNIT_EXPECT_FALSE(test, image_is_own(bad[i]));
		KUNIT_EXPECT_FALSE(test, image_in_module(bad[i], "kernel"));
	}
}

/* ==== Many at once; the last ones use all pages up ==== */

enum { SHARED_PAGES = 200, TOO_MANY = 3000 };

static u32 shared[SHARED_PAGES];
static atomic_t disagreements;

/* Whoever meets a page first, all get the same frame. */
static void meet_pages(void *unused)
{
	unsigned int i;

	for (i = 0; i < SHARED_PAGES; i++) {
		u32 frame, old;

		frame = image_frame(NOWHERE + (0x1000 + i) * PAGE_SIZE);
		/* In an NMI there may be no image to be had. */
		if (frame < PAGE_SIZE)
			continue;
		old = cmpxchg(&shared[i], 0, frame);
		if (old && old != frame)
			atomic_inc(&disagreements);
	}
}

static void all_contexts_agree(struct kunit *test)
{
	static struct interrupts irqs;

	KUNIT_ASSERT_TRUE(test, start_interrupts(&irqs, meet_pages, NULL));
	msleep(300);
	stop_interrupts(&irqs);
	KUNIT_EXPECT_GT(test, interrupts_in_all(&irqs), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&disagreements), 0);
	KUNIT_EXPECT_NE(test, shared[0], 0);
	KUNIT_EXPECT_EQ(test, shared[0],
			frame_of(NOWHERE + 0x1000 * PAGE_SIZE));
}

static void frames_are_not_lost_without_pages(struct kunit *test)
{
	unsigned int i, lost = 0;
	u32 frame = 0;

	for (i = 0; i < TOO_MANY; i++) {
		frame = frame_of(NOWHERE + (0x10000UL + i) * PAGE_SIZE);
		lost += !frame;
	}
	KUNIT_EXPECT_EQ(test, lost, 0);
	KUNIT_EXPECT_TRUE(test, is_named(frame, "[unknown text]"));
	KUNIT_EXPECT_EQ(test, image_address(frame), 0);
	/* What has a page keeps it. */
	KUNIT_EXPECT_EQ(test, shared[0],
			frame_of(NOWHERE + 0x1000 * PAGE_SIZE));
}

static struct kunit_case image_cases[] = {
	KUNIT_CASE(kernel_text_is_one_image),
	KUNIT_CASE(names_are_those_of_the_call),
	KUNIT_CASE(modules_are_told_apart),
	KUNIT_CASE(other_text_gets_pages),
	KUNIT_CASE(bad_frames_have_no_address),
	KUNIT_CASE(all_contexts_agree),
	KUNIT_CASE(frames_are_not_lost_without_pages),
	{}
};

static struct kunit_suite image_suite = {
	.name = "btlog_image",
	.test_cases = image_cases,
};

kunit_test_suite(image_suite);
