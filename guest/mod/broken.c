// SPDX-License-Identifier: GPL-2.0
/*
 * broken.c - breaks the library in one way, and sees that it knows
 *
 * Test only. Each load takes one of the faults below, by its number or name in
 * fault=, and succeeds if the library noticed, takes nothing new from then on,
 * and still knows what it knew. It stays broken until btlog is loaded again.
 */
#include <linux/err.h>
#include <linux/module.h>

#include "../../kunit/stacks.h"

#undef pr_fmt
#define pr_fmt(fmt) "broken: " fmt

static char *fault = "";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault, "what to do wrong; empty: list the names");

enum {
	KNOWN	= 1,		/* a stack that is there all the time */
	VICTIM	= 0x1234,	/* the one whose record is damaged; 12 frames or less */
};

static btref_t at_granule(u32 granule)
{
	return granule << BTREF_OP_BITS;
}

static void flip(btref_t ref, unsigned int word, u32 bits)
{
	u32 *w = &btlib_record(ref)[word];

	WRITE_ONCE(*w, *w ^ bits);
}

static bool is_caught(void)
{
	return wait_until(btlib_is_broken(), 5000);
}

/* Every bucket is split, and every chain walked, when enough comes. */
static void walk_all_chains(void)
{
	u32 id;

	for (id = 0x10000; id < 0x10000 + 3000 && !btlib_is_broken(); id++)
		btref_put(intern_fake(id, 0));
}

static bool is_reclaimed(btref_t ref)
{
	return wait_until(count_of(ref) < 0, 10000);
}

/* ==== Faults ==== */

static void put_twice(btref_t victim)
{
	btref_put(victim);
	btref_put(victim);
}

static void put_reclaimed(btref_t victim)
{
	btref_put(victim);
	if (is_reclaimed(victim))
		btref_put(victim);
}

static void retain_unreferenced(btref_t victim)
{
	btref_put(victim);
	if (btref_is_stack(btref_retain(victim)))
		pr_err("a dead reference was retained\n");
}

static void retain_reclaimed(btref_t victim)
{
	btref_put(victim);
	if (is_reclaimed(victim) && btref_is_stack(btref_retain(victim)))
		pr_err("a dead reference was retained\n");
}

static void put_out_of_range(btref_t victim)
{
	btref_put(at_granule((1 << BTREF_GRANULE_BITS) - 1));
}

static void retain_out_of_range(btref_t victim)
{
	btref_retain(at_granule((1 << BTREF_GRANULE_BITS) - 1));
}

static void decode_out_of_range(btref_t victim)
{
	u32 frames[BTREF_MAX_FRAMES];

	if (btref_decode(at_granule((1 << BTREF_GRANULE_BITS) - 1), frames, NULL))
		pr_err("no stack has frames\n");
}

/* A record of four granules has no stack in its second. */
static void put_middle_of_record(btref_t victim)
{
	btref_t large = intern_fake(0, 0);

	btref_put(at_granule(btref_granule(large) + 1));
	btref_put(large);
}

/* Memory comes in 1024 granules; the first go to the first stacks. */
static void retain_unused_chunk(btref_t victim)
{
	btref_retain(at_granule(btref_granule(victim) + 200 * 1024));
}

static void retain_unused_record(btref_t victim)
{
	btref_retain(at_granule(btref_granule(victim) | 1023));
}

static void damage_next_wildly(btref_t victim)
{
	flip(victim, WORD_NEXT, 0x5a5a5a5a);
	walk_all_chains();
}

static void damage_next_to_itself(btref_t victim)
{
	WRITE_ONCE(btlib_record(victim)[WORD_NEXT], btref_granule(victim));
	walk_all_chains();
}

/* A record that can't be found in its chain can't be taken out of it. */
static void damage_hash_then_reclaim(btref_t victim)
{
	flip(victim, WORD_HASH, 0x00100401);
	btref_put(victim);
}

static void decode_damaged(btref_t victim)
{
	u32 frames[BTREF_MAX_FRAMES];

	if (btref_decode(victim, frames, NULL))
		pr_err("a damaged record was decoded\n");
}

static void damage_hash(btref_t victim)
{
	flip(victim, WORD_HASH, 1);
	decode_damaged(victim);
}

/* More frames than fit into the record, up to the end of its memory. */
static void damage_length(btref_t victim)
{
	flip(victim, WORD_LENGTH, 0x30);
	decode_damaged(victim);
}

static void damage_flags(btref_t victim)
{
	flip(victim, WORD_LENGTH, 1 << 8);
	decode_damaged(victim);
}

static void damage_frame(btref_t victim)
{
	flip(victim, WORD_FRAMES, 1 << 7);
	decode_damaged(victim);
}

static void damage_count(btref_t victim)
{
	flip(victim, WORD_COUNT, 1U << 31);
	btref_put(victim);
}

static void damage_count_of_free_record(btref_t victim)
{
	btref_put(victim);
	if (!is_reclaimed(victim))
		return;
	msleep(500);		/* the grace period */
	WRITE_ONCE(btlib_record(victim)[WORD_COUNT], 1);
	walk_all_chains();
}

static void damage_next_of_free_record(btref_t victim)
{
	btref_put(victim);
	if (!is_reclaimed(victim))
		return;
	msleep(500);
	flip(victim, WORD_NEXT, 0x5a5a5a5a);
	walk_all_chains();
}

static const struct {
	const char *name;
	void (*commit)(btref_t victim);
} faults[] = {
	{ "put_twice",			put_twice },
	{ "put_reclaimed",		put_reclaimed },
	{ "retain_unreferenced",	retain_unreferenced },
	{ "retain_reclaimed",		retain_reclaimed },
	{ "put_out_of_range",		put_out_of_range },
	{ "retain_out_of_range",	retain_out_of_range },
	{ "decode_out_of_range",	decode_out_of_range },
	{ "put_middle_of_record",	put_middle_of_record },
	{ "retain_unused_chunk",	retain_unused_chunk },
	{ "retain_unused_record",	retain_unused_record },
	{ "damage_next_wildly",		damage_next_wildly },
	{ "damage_next_to_itself",	damage_next_to_itself },
	{ "damage_hash",		damage_hash },
	{ "damage_hash_then_reclaim",	damage_hash_then_reclaim },
	{ "damage_length",		damage_length },
	{ "damage_flags",		damage_flags },
	{ "damage_frame",		damage_frame },
	{ "damage_count",		damage_count },
	{ "damage_count_of_free_record", damage_count_of_free_record },
	{ "damage_next_of_free_record",	damage_next_of_free_record },
};

/* ==== What must come of it ==== */

/* A log goes on, with the reason in place of new stacks. */
static bool log_goes_on(void)
{
	struct btlog_event ev = { .addr = 0x1000, .size = 64 };
	struct btlog_record_copy rec = {};
	struct btlog *log = btlog_create("broken");
	bool good;

	if (IS_ERR(log))
		return false;
	good = !btlog_enable(log) && btlog_wants(log, ev.size);
	if (good)
		btlog_record(log, &ev, intern_fake(0x20000, BTREF_NOWAIT));
	good = good && btlog_find_address(log, ev.addr, &rec, 1) == 1 &&
	       rec.ref == btref_reason(BTR_READ_ONLY);
	btlog_remove(log);
	btlog_release(log);
	return good;
}

static const char *what_is_wrong(btref_t known)
{
	btref_t again;

	if (!is_caught())
		return "nobody noticed";
	if (intern_fake(0x20001, 0) != btref_reason(BTR_READ_ONLY))
		return "a new stack was taken";
	again = intern_fake(KNOWN, BTREF_NOWAIT);
	if (again != known)
		return "a known stack was not found";
	btref_put(again);
	if (!decodes_to(known, KNOWN))
		return "a known stack has changed";
	if (!log_goes_on())
		return "a log does not go on";
	btref_put(known);
	return NULL;
}

static const char *commit(int i)
{
	btref_t known = intern_fake(KNOWN, 0), victim = intern_fake(VICTIM, 0);

	if (!btref_is_stack(known) || !btref_is_stack(victim))
		return "there are no stacks to begin with";
	faults[i].commit(victim);
	return what_is_wrong(known);
}

static int __init broken_init(void)
{
	const char *wrong = "no such fault";
	int i;

	if (btlib_use())
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		if (!*fault)
			pr_info("fault %s\n", faults[i].name);
		else if (!strcmp(fault, faults[i].name))
			wrong = commit(i);
	}
	btlib_unuse();
	if (!*fault || !wrong)
		return 0;
	pr_err("%s: %s\n", fault, wrong);
	return -EBADMSG;
}

static void __exit broken_exit(void)
{
}

module_init(broken_init);
module_exit(broken_exit);
MODULE_IMPORT_NS(BTLOG_TEST);
MODULE_DESCRIPTION("Breaks btlog's library");
MODULE_LICENSE("GPL");
