// SPDX-License-Identifier: GPL-2.0
/*
 * btlib_kunit.c - suite "btlog_lib": the library of stacks
 *
 * To be loaded after btlog.ko, with no log on. What breaks the library, such as
 * putting a reference twice, isn't here but in guest/mod/broken.c, since it
 * stays broken.
 */
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/sort.h>

#include "helpers.h"

static unsigned long seed;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "of the random operations (default: a new one)");

static int lib_case_init(struct kunit *test)
{
	library_begin(test);
	return 0;
}

static void lib_case_exit(struct kunit *test)
{
	btlib_hash_mask = U32_MAX;
	WRITE_ONCE(btlib_max_stacks, 0);
	library_end(test);
}

/* ==== Taking stacks ==== */

/* First of all: later on, permanent stacks keep some memory in use. */
static void room_is_made_by_waiting_only(struct kunit *test)
{
	btref_t nowait, waited;

	btlib_unuse();
	KUNIT_EXPECT_TRUE(test, wait_until(library_figure("memory_bytes") ==
					   library_figure("table_bytes"), 15000));

	nowait = intern_fake(1, BTREF_NOWAIT);
	waited = intern_fake(1, 0);
	KUNIT_EXPECT_EQ(test, nowait, btref_reason(BTR_NO_MEMORY));
	KUNIT_EXPECT_TRUE(test, decodes_to(waited, 1));

	btref_put(waited);
	KUNIT_EXPECT_EQ(test, btlib_use(), 0);
}

/* The edges of the size classes. */
static const unsigned int depths[] = { 1, 2, 12, 13, 28, 29, 59, 60 };

static void describe_depth(const unsigned int *depth, char *text)
{
	sprintf(text, "%u frames", *depth);
}

KUNIT_ARRAY_PARAM(depth, depths, describe_depth);

static void a_stack_is_kept_once(struct kunit *test)
{
	const unsigned int n = *(const unsigned int *)test->param_value;
	u32 in[BTREF_MAX_FRAMES], out[BTREF_MAX_FRAMES];
	bool truncated = true;
	btref_t first, again;
	unsigned int i;

	for (i = 0; i < n; i++)
		in[i] = FAKE_FRAME + n * 100 + i;
	first = btref_intern(in, n, 0);
	again = btref_intern(in, n, BTREF_NOWAIT);

	KUNIT_EXPECT_TRUE(test, btref_is_stack(first));
	KUNIT_EXPECT_EQ(test, first, again);
	KUNIT_EXPECT_EQ(test, count_of(first), 2);
	KUNIT_EXPECT_EQ(test, btref_decode(first, out, &truncated), n);
	KUNIT_EXPECT_EQ(test, memcmp(in, out, n * sizeof(u32)), 0);
	KUNIT_EXPECT_FALSE(test, truncated);
	btref_put(first);
	btref_put(again);
}

static void a_cut_stack_is_another_one(struct kunit *test)
{
	u32 frames[BTREF_MAX_FRAMES] = { FAKE_FRAME + 1, FAKE_FRAME + 2 };
	btref_t whole = btref_intern(frames, 2, 0);
	btref_t cut = btref_intern(frames, 2, BTREF_TRUNCATED);
	bool truncated = false;

	KUNIT_EXPECT_NE(test, whole, cut);
	KUNIT_EXPECT_EQ(test, btref_decode(cut, frames, &truncated), 2);
	KUNIT_EXPECT_TRUE(test, truncated);
	btref_put(whole);
	btref_put(cut);
}

static void a_bad_depth_is_no_stack(struct kunit *test)
{
	static const u32 frames[BTREF_MAX_FRAMES + 1];

	KUNIT_EXPECT_EQ(test, btref_intern(frames, 0, 0),
			btref_reason(BTR_NO_STACK));
	KUNIT_EXPECT_EQ(test, btref_intern(frames, BTREF_MAX_FRAMES + 1, 0),
			btref_reason(BTR_NO_STACK));
}

static noinline btref_t take_here(void)
{
	btref_t ref = btref_get(0, 16, 0);

	barrier();	/* no tail call */
	return ref;
}

static void the_current_stack_is_taken(struct kunit *test)
{
	u32 frames[BTREF_MAX_FRAMES];
	btref_t refs[2], elsewhere = take_here();
	int i, n = 2;

	OPTIMIZER_HIDE_VAR(n);		/* one call, not two */
	for (i = 0; i < n; i++)
		refs[i] = take_here();

	KUNIT_EXPECT_TRUE(test, btref_is_stack(elsewhere));
	KUNIT_EXPECT_GT(test, btref_decode(refs[0], frames, NULL), 1);
	KUNIT_EXPECT_EQ(test, refs[0], refs[1]);
	KUNIT_EXPECT_NE(test, refs[0], elsewhere);
	btref_put(refs[0]);
	btref_put(refs[1]);
	btref_put(elsewhere);
}

static void recursion_is_refused(struct kunit *test)
{
	struct bt_context *ctx = bt_context_enter();
	btref_t ref = btref_get(0, 16, BTREF_NOWAIT);

	if (ctx)
		bt_context_leave(ctx);
	KUNIT_EXPECT_NOT_NULL(test, ctx);
	KUNIT_EXPECT_EQ(test, ref, btref_reason(BTR_RECURSION));
}

/* ==== Equality ==== */

enum { TWINS = 1000 };

/*
 * Of four stacks, the second has one frame more than the first, the third is
 * the first one, cut, and the fourth differs from the first in its last frame.
 */
static unsigned int make_twin(u32 *frames, u32 nr, unsigned int *flags)
{
	u32 group = FAKE_FRAME + 100 + 2 * (nr / 4);
	unsigned int i, n = 12;

	for (i = 0; i < n - 1; i++)
		frames[i] = FAKE_FRAME + i;
	frames[n - 1] = group;
	*flags = BTREF_NOWAIT;
	if (nr % 4 == 1)
		frames[n++] = group;
	else if (nr % 4 == 2)
		*flags |= BTREF_TRUNCATED;
	else if (nr % 4 == 3)
		frames[n - 1] = group + 1;
	return n;
}

static int compare_refs(const void *a, const void *b)
{
	btref_t x = *(const btref_t *)a, y = *(const btref_t *)b;

	return x < y ? -1 : x > y;
}

static u32 count_distinct(btref_t *refs, u32 n)
{
	u32 i, distinct = !!n;

	sort(refs, n, sizeof(*refs), compare_refs, NULL);
	for (i = 1; i < n; i++)
		distinct += refs[i] != refs[i - 1];
	return distinct;
}

static const u32 masks[] = { 0, 0x7, 0xff000000 };

static void describe_mask(const u32 *mask, char *text)
{
	sprintf(text, "hash & 0x%x", *mask);
}

KUNIT_ARRAY_PARAM(mask, masks, describe_mask);

/* BT-14 */
static void same_hash_stays_apart(struct kunit *test)
{
	btref_t *refs = kunit_kcalloc(test, TWINS, sizeof(*refs), GFP_KERNEL);
	unsigned int flags, n, i, turn, wrong = 0;
	u32 frames[BTREF_MAX_FRAMES];

	KUNIT_ASSERT_NOT_NULL(test, refs);
	KUNIT_ASSERT_TRUE(test, library_emptied());
	btlib_hash_mask = *(const u32 *)test->param_value;

	/* Each comes 1 to 3 times. */
	for (turn = 0; turn < 3; turn++) {
		for (i = 0; i < TWINS; i++) {
			if (i % 3 < turn)
				continue;
			n = make_twin(frames, i, &flags);
			refs[i] = btref_intern(frames, n, flags);
		}
	}
	for (i = 0; i < TWINS; i++)
		wrong += count_of(refs[i]) != 1 + i % 3;
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_NULL(test, btlib_validate(false));

	for (i = 0; i < TWINS; i++)
		for (turn = 0; turn <= i % 3; turn++)
			btref_put(refs[i]);
	KUNIT_EXPECT_EQ(test, count_distinct(refs, TWINS), TWINS);
	KUNIT_EXPECT_TRUE(test, library_emptied());
}

enum { SAME_THREADS = 4, SAME_STACKS = 100, SAME_TIMES = 500 };

static void intern_the_same(struct hand *hand)
{
	u32 i, id;

	for (i = 0; i < SAME_TIMES; i++) {
		for (id = 0; id < SAME_STACKS; id++)
			hand->done += btref_is_stack(intern_fake(id, BTREF_NOWAIT));
		hand_goes_on();
	}
}

/* BT-14, BT-16 */
static void same_stacks_at_once_are_one(struct kunit *test)
{
	struct hand hands[SAME_THREADS];
	u32 id, i, wrong = 0;
	btref_t ref;

	KUNIT_ASSERT_TRUE(test, library_emptied());
	KUNIT_ASSERT_TRUE(test, start_hands(hands, SAME_THREADS,
					    intern_the_same, NULL));
	stop_hands(hands, SAME_THREADS);

	KUNIT_EXPECT_EQ(test, referenced_stacks() - referenced_before,
			SAME_STACKS);
	for (id = 0; id < SAME_STACKS; id++) {
		ref = intern_fake(id, BTREF_NOWAIT);
		wrong += count_of(ref) != SAME_THREADS * SAME_TIMES + 1;
		for (i = 0; i < SAME_THREADS * SAME_TIMES + 1; i++)
			btref_put(ref);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

/* ==== Counts ==== */

static void retain_and_put_are_pairs(struct kunit *test)
{
	btref_t ref = intern_fake(1, 0);
	int i;

	for (i = 0; i < 100; i++)
		KUNIT_EXPECT_EQ(test, btref_retain(ref), ref);
	KUNIT_EXPECT_EQ(test, count_of(ref), 101);
	for (i = 0; i < 100; i++)
		btref_put(ref);
	KUNIT_EXPECT_EQ(test, count_of(ref), 1);
	btref_put(ref);
}

static void the_operation_is_ignored(struct kunit *test)
{
	btref_t ref = intern_fake(1, 0);

	KUNIT_EXPECT_EQ(test, btref_retain(ref | 63), ref | 63);
	KUNIT_EXPECT_TRUE(test, decodes_to(ref | 17, 1));
	btref_put(ref | 5);
	btref_put(ref);
}

static void an_unreferenced_stack_is_revived(struct kunit *test)
{
	btref_t ref = intern_fake(1, 0);

	btref_put(ref);
	KUNIT_EXPECT_EQ(test, count_of(ref), 0);
	KUNIT_EXPECT_EQ(test, intern_fake(1, 0), ref);
	KUNIT_EXPECT_EQ(test, count_of(ref), 1);
	btref_put(ref);
}

static void a_reason_is_not_counted(struct kunit *test)
{
	u32 frames[BTREF_MAX_FRAMES];
	int reason;

	for (reason = 0; reason < BTR_NR; reason++) {
		btref_t ref = btref_reason(reason);
		bool truncated = true;

		KUNIT_EXPECT_FALSE(test, btref_is_stack(ref));
		KUNIT_EXPECT_EQ(test, btref_retain(ref), ref);
		btref_put(ref);
		KUNIT_EXPECT_EQ(test, btref_decode(ref, frames, &truncated), 0);
		KUNIT_EXPECT_FALSE(test, truncated);
		KUNIT_EXPECT_FALSE(test, btref_is_own(ref));
	}
	btref_put(0);
	KUNIT_EXPECT_EQ(test, btref_decode(0, frames, NULL), 0);
}

/* Numbers that no other case has: these two leave a stack behind for good. */
enum { PERMANENT = 5000000 };

static void a_permanent_stack_stays(struct kunit *test)
{
	btref_t ref = intern_fake(PERMANENT, BTREF_PERMANENT), counted;

	KUNIT_EXPECT_TRUE(test, ref & BTREF_PERMANENT_BIT);
	btref_put(ref);
	counted = intern_fake(PERMANENT, 0);
	btref_put(counted);
	KUNIT_EXPECT_EQ(test, counted, ref & ~BTREF_PERMANENT_BIT);
	KUNIT_EXPECT_GT(test, count_of(counted), 1 << 30);
	KUNIT_EXPECT_TRUE(test, decodes_to(ref, PERMANENT));
	referenced_before++;
}

static void a_count_at_its_limit_is_permanent(struct kunit *test)
{
	btref_t ref = intern_fake(PERMANENT + 1, 0);
	int i;

	atomic_set((atomic_t *)&btlib_record(ref)[WORD_COUNT], (1 << 30) - 2);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_EQ(test, btref_retain(ref), ref);
	for (i = 0; i < 10; i++)
		btref_put(ref);
	KUNIT_EXPECT_GT(test, count_of(ref), 1 << 30);
	KUNIT_EXPECT_TRUE(test, decodes_to(ref, PERMANENT + 1));
	referenced_before++;
}

/* ==== Memory ==== */

static s64 stack_memory(void)
{
	return library_figure("memory_bytes") - library_figure("table_bytes");
}

static void put_fakes(const btref_t *refs, u32 n)
{
	while (n--)
		btref_put(refs[n]);
}

/* Returns how many were taken. */
static u32 intern_fakes(btref_t *refs, u32 first, u32 n)
{
	u32 i, taken = 0;

	for (i = 0; i < n; i++) {
		refs[i] = intern_fake(first + i, 0);
		taken += btref_is_stack(refs[i]);
	}
	return taken;
}

enum { MANY = 20000 };

/* BT-41 */
static void memory_comes_back(struct kunit *test)
{
	btref_t *refs = kunit_kcalloc(test, MANY, sizeof(*refs), GFP_KERNEL);
	s64 before, at_most;

	KUNIT_ASSERT_NOT_NULL(test, refs);
	KUNIT_ASSERT_TRUE(test, library_emptied());
	before = stack_memory();
	KUNIT_EXPECT_EQ(test, intern_fakes(refs, 0, MANY), MANY);
	at_most = stack_memory();
	put_fakes(refs, MANY);

	/* Where a chunk for each class may be kept beyond what is ready. */
	KUNIT_EXPECT_TRUE(test, library_emptied());
	KUNIT_EXPECT_TRUE(test, wait_until(stack_memory() <=
					   before + 3 * 65536, 5000));
	kunit_info(test, "%lld KiB before, %lld with %u stacks, %lld after\n",
		   before / 1024, at_most / 1024, MANY, stack_memory() / 1024);
}

/**
 * struct watch - a reader that stands at a record that dies
 * @id: the stack's number
 * @ref: it
 * @died: the reader saw it die
 */
struct watch {
	u32 id;
	btref_t ref;
	bool died;
};

/* Preemption is off all the time, so that no grace period can end. */
static void watch_record(struct hand *hand)
{
	struct watch *w = hand->arg;
	unsigned long end = jiffies + 3 * HZ;

	rcu_read_lock();
	while (count_of(w->ref) >= 0 && time_before(jiffies, end))
		cpu_relax();
	WRITE_ONCE(w->died, count_of(w->ref) < 0);
	end = jiffies + HZ / 5;
	while (time_before(jiffies, end))
		if (count_of(w->ref) >= 0 || !decodes_to(w->ref, w->id))
			hand->wrong++;
	rcu_read_unlock();
}

static void a_record_is_reused_after_a_grace_period(struct kunit *test)
{
	btref_t *refs = kunit_kcalloc(test, MANY, sizeof(*refs), GFP_KERNEL);
	struct watch w = { .id = MANY };
	struct hand hand;
	u32 turn;

	KUNIT_ASSERT_NOT_NULL(test, refs);
	KUNIT_ASSERT_TRUE(test, library_emptied());
	w.ref = intern_fake(w.id, 0);
	KUNIT_EXPECT_EQ(test, intern_fakes(refs, 0, 4000), 4000);
	KUNIT_ASSERT_TRUE(test, start_hands(&hand, 1, watch_record, &w));
	btref_put(w.ref);
	put_fakes(refs, 4000);
	/* What is dead weight is swept, and new stacks look for records. */
	for (turn = 1; turn < 10; turn++) {
		KUNIT_EXPECT_EQ(test, intern_fakes(refs, turn * MANY, 4000), 4000);
		put_fakes(refs, 4000);
		msleep(20);
	}
	stop_hands(&hand, 1);
	KUNIT_EXPECT_TRUE(test, w.died);
	KUNIT_EXPECT_EQ(test, hand.wrong, 0);
}

/* BT-12 */
static void a_full_library_refuses_and_recovers(struct kunit *test)
{
	u64 refused = library_figure("refused_library_full");
	btref_t refs[200];
	u32 room, i;

	KUNIT_ASSERT_TRUE(test, library_emptied());
	room = 64;
	WRITE_ONCE(btlib_max_stacks, btlib_stacks() + room);

	KUNIT_EXPECT_EQ(test, intern_fakes(refs, 0, 200), room);
	for (i = room; i < 200; i++)
		KUNIT_EXPECT_EQ(test, refs[i], btref_reason(BTR_LIBRARY_FULL));
	KUNIT_EXPECT_EQ(test, library_figure("refused_library_full") - refused,
			200 - room);
	KUNIT_EXPECT_EQ(test, intern_fake(3, BTREF_NOWAIT), refs[3]);
	btref_put(refs[3]);

	put_fakes(refs, 200);
	KUNIT_EXPECT_TRUE(test, library_emptied());
	KUNIT_EXPECT_EQ(test, intern_fakes(refs, 1000, 200), room);
	put_fakes(refs, 200);
}

/* ==== Everything at once ==== */

enum { MODEL_STACKS = 600, MODEL_OPS = 200000 };

/**
 * struct model - the library as a plain list
 * @refs: by number; 0: not seen yet
 * @counts: references that the case has
 * @rnd: what comes next
 * @wrong: answers that the list would not have given
 */
struct model {
	btref_t refs[MODEL_STACKS];
	u32 counts[MODEL_STACKS];
	struct rnd_state rnd;
	u32 wrong;
};

static void model_intern(struct model *m, u32 id)
{
	btref_t ref = intern_fake(id, 0);

	/* Without a reference it may have been reclaimed, and be elsewhere. */
	if (!btref_is_stack(ref) || (m->counts[id] && ref != m->refs[id]))
		m->wrong++;
	m->refs[id] = ref;
	m->counts[id]++;
}

static void model_release(struct model *m, u32 id)
{
	btref_put(m->refs[id]);
	m->counts[id]--;
}

static void model_step(struct model *m)
{
	u32 id = prandom_u32_state(&m->rnd) % MODEL_STACKS;

	switch (prandom_u32_state(&m->rnd) % 8) {
	case 0 ... 2:
		model_intern(m, id);
		break;
	case 3:
		if (!m->counts[id])
			break;
		m->wrong += btref_retain(m->refs[id]) != m->refs[id];
		m->counts[id]++;
		break;
	case 4 ... 6:
		if (m->counts[id])
			model_release(m, id);
		break;
	default:
		if (m->counts[id])
			m->wrong += !decodes_to(m->refs[id], id);
	}
}

/* Each stack of the list is in the library, and no other is referenced. */
static void model_compare(struct kunit *test, struct model *m)
{
	u32 id, live = 0;

	for (id = 0; id < MODEL_STACKS; id++) {
		if (!m->counts[id])
			continue;
		live++;
		m->wrong += count_of(m->refs[id]) != m->counts[id];
		m->wrong += !decodes_to(m->refs[id], id);
		m->wrong += intern_fake(id, BTREF_NOWAIT) != m->refs[id];
		btref_put(m->refs[id]);
	}
	KUNIT_EXPECT_EQ(test, m->wrong, 0);
	KUNIT_EXPECT_TRUE(test, library_has(referenced_before + live));
	KUNIT_EXPECT_NULL(test, btlib_validate(false));
}

static void random_operations_match_a_list(struct kunit *test)
{
	struct model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	u64 start = seed ?: get_random_u64();
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	kunit_info(test, "seed=%llu\n", start);
	prandom_seed_state(&m->rnd, start);
	/* Chains are to be long: 600 stacks in 256 buckets. */
	KUNIT_ASSERT_TRUE(test, library_emptied());
	btlib_hash_mask = 0xff;

	for (i = 1; i <= MODEL_OPS; i++) {
		model_step(m);
		if (i % (MODEL_OPS / 20) == 0)
			model_compare(test, m);
		cond_resched();
	}
	for (i = 0; i < MODEL_STACKS; i++)
		while (m->counts[i])
			model_release(m, i);
	KUNIT_EXPECT_TRUE(test, library_emptied());
}

/* Of a thousand stacks, from contexts that interrupt one another. */
static void intern_some(void *arg)
{
	atomic_t *next = arg;
	u32 id = (u32)atomic_inc_return(next) % 1000;
	btref_t ref = intern_fake(id, BTREF_NOWAIT);

	if (btref_is_stack(ref) && !decodes_to(ref, id))
		btlib_break("a stack is not what it was");
	btref_put(ref);
}

static void all_contexts_take_stacks(struct kunit *test)
{
	struct interrupts *irqs = kunit_kzalloc(test, sizeof(*irqs), GFP_KERNEL);
	unsigned long end = jiffies + HZ;
	atomic_t next = ATOMIC_INIT(0);
	int in;

	KUNIT_ASSERT_NOT_NULL(test, irqs);
	KUNIT_ASSERT_TRUE(test, start_interrupts(irqs, intern_some, &next));
	while (time_before(jiffies, end)) {
		intern_some(&next);
		cond_resched();
	}
	stop_interrupts(irqs);
	kunit_info(test, "%d stacks, %u of them in interrupts\n",
		   atomic_read(&next), interrupts_in_all(irqs));
	for (in = 0; in < TEST_CONTEXTS; in++)
		KUNIT_EXPECT_GT(test, atomic_read(&irqs->runs[in]), 10);
}

static void note_frame(u32 frame, void *arg)
{
	u8 *seen = arg;

	seen[frame - FAKE_FRAME] = 1;
}

static void all_frames_are_visited(struct kunit *test)
{
	enum { N = 3000 };
	btref_t *refs = kunit_kcalloc(test, N, sizeof(*refs), GFP_KERNEL);
	u8 *seen = kunit_kzalloc(test, N, GFP_KERNEL);
	u32 i, missed = 0;

	KUNIT_ASSERT_NOT_NULL(test, refs);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	KUNIT_EXPECT_EQ(test, intern_fakes(refs, 0, N), N);
	btlib_visit_frames(FAKE_FRAME, FAKE_FRAME + N, note_frame, seen);
	for (i = 0; i < N; i++)
		missed += !seen[i];
	KUNIT_EXPECT_EQ(test, missed, 0);
	put_fakes(refs, N);
}

static struct kunit_case lib_cases[] = {
	KUNIT_CASE(room_is_made_by_waiting_only),
	KUNIT_CASE_PARAM(a_stack_is_kept_once, depth_gen_params),
	KUNIT_CASE(a_cut_stack_is_another_one),
	KUNIT_CASE(a_bad_depth_is_no_stack),
	KUNIT_CASE(the_current_stack_is_taken),
	KUNIT_CASE(recursion_is_refused),
	KUNIT_CASE_PARAM(same_hash_stays_apart, mask_gen_params),
	KUNIT_CASE(same_stacks_at_once_are_one),
	KUNIT_CASE(retain_and_put_are_pairs),
	KUNIT_CASE(the_operation_is_ignored),
	KUNIT_CASE(an_unreferenced_stack_is_revived),
	KUNIT_CASE(a_reason_is_not_counted),
	KUNIT_CASE(memory_comes_back),
	KUNIT_CASE(a_record_is_reused_after_a_grace_period),
	KUNIT_CASE(a_full_library_refuses_and_recovers),
	KUNIT_CASE(random_operations_match_a_list),
	KUNIT_CASE(all_contexts_take_stacks),
	KUNIT_CASE(all_frames_are_visited),
	KUNIT_CASE(a_permanent_stack_stays),
	KUNIT_CASE(a_count_at_its_limit_is_permanent),
	{}
};

static struct kunit_suite lib_suite = {
	.name = "btlog_lib",
	.init = lib_case_init,
	.exit = lib_case_exit,
	.test_cases = lib_cases,
};

kunit_test_suite(lib_suite);

MODULE_IMPORT_NS(BTLOG_TEST);
MODULE_DESCRIPTION("KUnit suites of btlog");
MODULE_LICENSE("GPL");
