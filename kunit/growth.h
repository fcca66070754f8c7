/* SPDX-License-Identifier: GPL-2.0 */
/*
 * growth.h - the library grows while others look up and release
 *
 * One thread inserts stacks by number; of every four the last is handed over to
 * a thread that releases it, so that the library reclaims it at some time. The
 * others stay, and further threads look them up all the while: an intern must
 * give the reference that the first one gave.
 *
 * Used by a KUnit case, and by a guest test on kernels without KUnit.
 */
#ifndef BTLOG_KUNIT_GROWTH_H
#define BTLOG_KUNIT_GROWTH_H

#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/random.h>

#include "stacks.h"

enum { GROWTH_LOOKERS = 2 };

/**
 * struct growth - a run
 * @n: how many stacks
 * @inserted: so many are in; their references are set
 * @refs: by number
 * @before: stacks that were referenced at the start
 * @looked_up: how many look-ups there were
 * @ms: how long inserting took
 */
struct growth {
	u32 n;
	u32 inserted;
	btref_t *refs;
	s64 before;
	u64 looked_up;
	s64 ms;
};

static inline bool growth_stays(u32 id)
{
	return id % 4 != 3;
}

static void growth_look_up(struct hand *hand)
{
	struct growth *g = hand->arg;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, get_random_u64());
	while (hand_goes_on()) {
		/* Pairs with the release in growth_insert(). */
		u32 n = smp_load_acquire(&g->inserted), id;
		btref_t ref;

		if (!n)
			continue;
		id = prandom_u32_state(&rnd) % n;
		if (!growth_stays(id))
			continue;
		ref = intern_fake(id, BTREF_NOWAIT);
		if (ref != g->refs[id])
			hand->wrong++;
		btref_put(ref);
		/* Leave some time to who inserts. */
		if (++hand->done % 128 == 0)
			usleep_range(1000, 2000);
	}
}

static void growth_release(struct hand *hand)
{
	struct growth *g = hand->arg;
	bool more = true;
	u32 id = 3;

	/* What has come until the end is released after it. */
	while (id < g->n) {
		/* Pairs with the release in growth_insert(). */
		if (id < smp_load_acquire(&g->inserted)) {
			btref_put(g->refs[id]);
			id += 4;
			hand->done++;
		} else if (more) {
			more = hand_goes_on();
		} else {
			break;
		}
	}
}

static const char *growth_insert(struct growth *g)
{
	ktime_t start = ktime_get();
	u32 id;

	for (id = 0; id < g->n; id++) {
		g->refs[id] = intern_fake(id, 0);
		if (!btref_is_stack(g->refs[id]))
			return btlog_reason_name(btref_granule(g->refs[id]) - 1);
		/* Pairs with the acquires of the other threads. */
		smp_store_release(&g->inserted, id + 1);
		cond_resched();
	}
	g->ms = ktime_ms_delta(ktime_get(), start);
	return NULL;
}

/* Each stack that stays is there once, with one reference, and is what it was. */
static const char *growth_check(struct growth *g)
{
	u32 id, stay = 0;

	for (id = 0; id < g->n; id++) {
		if (!growth_stays(id))
			continue;
		stay++;
		if (count_of(g->refs[id]) != 1)
			return "a count is wrong";
		if (!decodes_to(g->refs[id], id))
			return "a stack is not what it was";
		cond_resched();
	}
	if (!wait_until(referenced_stacks() == g->before + stay, 2000))
		return "there are stacks too few or too many";
	return btlib_validate(false);
}

static void growth_put(struct growth *g, u32 n)
{
	u32 id;

	for (id = 0; id < n; id++) {
		if (growth_stays(id))
			btref_put(g->refs[id]);
		cond_resched();
	}
}

static const char *growth_with_hands(struct growth *g)
{
	struct hand lookers[GROWTH_LOOKERS], releaser;
	const char *wrong = "there are no threads";
	unsigned int i;

	if (!start_hands(lookers, GROWTH_LOOKERS, growth_look_up, g))
		return wrong;
	if (start_hands(&releaser, 1, growth_release, g)) {
		wrong = growth_insert(g);
		stop_hands(&releaser, 1);
	}
	stop_hands(lookers, GROWTH_LOOKERS);
	for (i = 0; i < GROWTH_LOOKERS; i++)
		g->looked_up += lookers[i].done;
	if (sum_wrong(lookers, GROWTH_LOOKERS))
		return "a stack that is there was not found, or found twice";
	return wrong;
}

/**
 * grow_library() - insert, check, release
 * @g: with @n set, the rest zero
 *
 * Return: NULL, or what is wrong.
 */
static const char *grow_library(struct growth *g)
{
	const char *wrong;

	g->refs = kvcalloc(g->n, sizeof(*g->refs), GFP_KERNEL);
	if (!g->refs)
		return "no memory";
	g->before = referenced_stacks();
	wrong = growth_with_hands(g);
	if (!wrong)
		wrong = growth_check(g);
	growth_put(g, g->inserted);
	kvfree(g->refs);
	return wrong;
}

#endif
