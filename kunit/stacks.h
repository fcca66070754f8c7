/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stacks.h - made-up stacks, and what can be seen of the library from outside
 *
 * Shared by the KUnit suites and the guests' test modules. A made-up stack is
 * told by its number: two numbers never give the same frames, and from the
 * number alone a test can say what a reference must decode to.
 */
#ifndef BTLOG_KUNIT_STACKS_H
#define BTLOG_KUNIT_STACKS_H

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../internal.h"

enum {
	FAKE_FRAME	= 1 << 30,	/* far beyond what images get */
};

struct fake_stack {
	unsigned int n;
	u32 frames[BTREF_MAX_FRAMES];
};

/* Most stacks are short, as real ones are; every size class comes. */
static inline unsigned int fake_depth(u32 id)
{
	switch (id % 16) {
	case 0:
		return 29 + id / 16 % 32;
	case 1 ... 3:
		return 13 + id / 16 % 16;
	default:
		return 1 + id / 16 % 12;
	}
}

static inline void make_fake(struct fake_stack *fake, u32 id)
{
	unsigned int i;

	fake->n = fake_depth(id);
	fake->frames[0] = FAKE_FRAME + id;
	for (i = 1; i < fake->n; i++)
		fake->frames[i] = FAKE_FRAME + hash_32(id + i, 24);
}

static inline btref_t intern_fake(u32 id, unsigned int flags)
{
	struct fake_stack fake;

	make_fake(&fake, id);
	return btref_intern(fake.frames, fake.n, flags);
}

/* Does a reference lead to just that stack? */
static inline bool decodes_to(btref_t ref, u32 id)
{
	u32 frames[BTREF_MAX_FRAMES];
	struct fake_stack fake;

	make_fake(&fake, id);
	return btref_decode(ref, frames, NULL) == fake.n &&
	       !memcmp(frames, fake.frames, fake.n * sizeof(u32));
}

/* The words of a record, see btlib_record(). */
enum { WORD_NEXT, WORD_HASH, WORD_COUNT, WORD_LENGTH, WORD_FRAMES };

static inline int count_of(btref_t ref)
{
	return READ_ONCE(btlib_record(ref)[WORD_COUNT]);
}

/* The text of the file "library" after a newline; to be freed; may be NULL. */
static inline char *library_text(void)
{
	char *text = kzalloc(PAGE_SIZE, GFP_KERNEL);
	struct seq_file m = { .size = PAGE_SIZE - 1 };

	if (text) {
		text[0] = '\n';
		m.buf = text + 1;
		btlib_show(&m);
	}
	return text;
}

/* A figure out of such a text, -1 if it has none of that name. */
static inline s64 figure_in(const char *text, const char *name)
{
	size_t len = strlen(name);
	const char *line = text;
	s64 figure;

	while (line && (line = strchr(line, '\n'))) {
		line++;
		if (!strncmp(line, name, len) && line[len] == ':' &&
		    sscanf(line + len, ": %lld", &figure) == 1)
			return figure;
	}
	return -1;
}

static inline s64 library_figure(const char *name)
{
	char *text = library_text();
	s64 figure = figure_in(text, name);

	kfree(text);
	return figure;
}

/* Stacks that somebody has a reference to; exact if nobody acts. */
static inline s64 referenced_stacks(void)
{
	char *text = library_text();
	s64 referenced = figure_in(text, "stacks") -
			 figure_in(text, "stacks_unreferenced");

	kfree(text);
	return referenced;
}

/* Poll for a condition; its value at the end. */
#define wait_until(condition, ms) ({					\
	unsigned long end_ = jiffies + msecs_to_jiffies(ms);		\
	bool met_;							\
									\
	for (;;) {							\
		met_ = (condition);					\
		if (met_ || time_after(jiffies, end_))			\
			break;						\
		msleep(20);						\
	}								\
	met_;								\
})

/**
 * struct hand - a thread of a test
 * @task: the thread
 * @begun: @work is being done
 * @work: what it does; if it has no end, until hand_goes_on() is false
 * @nr: its number among those started together
 * @arg: what they share
 * @done: what it did, to be printed or summed up
 * @wrong: what it found wrong
 */
struct hand {
	struct task_struct *task;
	struct completion begun;
	void (*work)(struct hand *hand);
	unsigned int nr;
	void *arg;
	u64 done;
	u64 wrong;
};

/* True until the thread is told to stop. */
static inline bool hand_goes_on(void)
{
	cond_resched();
	return !kthread_should_stop();
}

static inline int hand_thread(void *arg)
{
	struct hand *hand = arg;

	complete(&hand->begun);
	hand->work(hand);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/* Lets hands finish, or stops those that go on for ever. */
static inline void stop_hands(struct hand *hands, unsigned int n)
{
	while (n--) {
		if (!hands[n].task)
			continue;
		/* Who is stopped before it runs would do nothing at all. */
		wait_for_completion(&hands[n].begun);
		kthread_stop(hands[n].task);
		hands[n].task = NULL;
	}
}

/* Returns false, with no thread left, if they could not all be started. */
static inline bool start_hands(struct hand *hands, unsigned int n,
			       void (*work)(struct hand *hand), void *arg)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct task_struct *task;

		hands[i] = (struct hand){ .work = work, .nr = i, .arg = arg };
		init_completion(&hands[i].begun);
		task = kthread_run(hand_thread, &hands[i], "bt_hand/%u", i);
		if (IS_ERR(task)) {
			stop_hands(hands, i);
			return false;
		}
		hands[i].task = task;
	}
	return true;
}

static inline u64 sum_wrong(const struct hand *hands, unsigned int n)
{
	u64 sum = 0;

	while (n--)
		sum += hands[n].wrong;
	return sum;
}

#endif
