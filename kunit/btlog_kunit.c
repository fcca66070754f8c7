// SPDX-License-Identifier: GPL-2.0
/*
 * btlog_kunit.c - suite "btlog_log": the logs
 *
 * Most cases use one log, made by make_log() and removed at the end of the case
 * whatever became of it, and compare its counters with what they expect
 * (expect_counts()). Events carry a number in every field, so that a reader can
 * tell if a record is whole.
 */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/math64.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/smp.h>

#include "helpers.h"

/**
 * struct fixture - of a case
 * @log: the log under test, removed at the end; may be NULL
 * @irqs: for contexts
 * @stack: a stack of which the case has one reference
 */
struct fixture {
	struct btlog *log;
	struct interrupts irqs;
	btref_t stack;
};

static int log_case_init(struct kunit *test)
{
	struct fixture *fx = kunit_kzalloc(test, sizeof(*fx), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fx);
	library_begin(test);
	fx->stack = intern_fake(1, 0);
	test->priv = fx;
	return 0;
}

static void drop_log(struct fixture *fx)
{
	if (!fx->log)
		return;
	btlog_remove(fx->log);
	btlog_release(fx->log);
	fx->log = NULL;
}

static void log_case_exit(struct kunit *test)
{
	struct fixture *fx = test->priv;

	if (!fx)
		return;
	drop_log(fx);
	KUNIT_EXPECT_EQ(test, count_of(fx->stack), 1);
	btref_put(fx->stack);
	library_end(test);
}

/* The log of the case, enabled, with settings as "key=value,key=value". */
static struct btlog *make_log(struct kunit *test, const char *settings)
{
	struct fixture *fx = test->priv;
	char *spec = kunit_kzalloc(test, 256, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, spec);
	snprintf(spec, 256, "kunit:%s", settings);
	KUNIT_ASSERT_EQ(test, btlog_apply(spec), 0);
	fx->log = btlog_find("kunit");
	KUNIT_ASSERT_NOT_NULL(test, fx->log);
	return fx->log;
}

/* ==== Events ==== */

enum { ADDRESSES = 1 << 20 };

/* Bytes of event number nr; the address says the same. */
static u32 size_of(u32 nr)
{
	return 1 + nr % 4096;
}

static struct btlog_event make_event(u32 nr)
{
	return (struct btlog_event){
		.addr = 0xffff888000000000ULL + 64ULL * nr,
		.size = size_of(nr),
		.op = nr % 2,
		.tag = nr,
	};
}

static u32 nr_of(const struct btlog_record_copy *rec)
{
	return (rec->addr - 0xffff888000000000ULL) / 64;
}

static bool is_whole(const struct btlog_record_copy *rec)
{
	u32 nr = nr_of(rec);

	return rec->size == size_of(nr) && rec->tag == (u16)nr &&
	       (rec->ref & BTREF_OP_MASK) == nr % 2;
}

/* The ordinary way of an event; returns if it was wanted. */
static bool record_nr(struct btlog *log, u32 nr, btref_t ref)
{
	struct btlog_event ev = make_event(nr);

	if (!btlog_wants(log, ev.size))
		return false;
	btlog_record(log, &ev, btref_retain(ref));
	return true;
}

static void record_range(struct btlog *log, u32 from, u32 to, btref_t ref)
{
	for (; from < to; from++)
		record_nr(log, from, ref);
}

static void erase_nr(struct btlog *log, u32 nr)
{
	btlog_erase(log, make_event(nr).addr);
}

static bool has_nr(struct btlog *log, u32 nr)
{
	struct btlog_record_copy rec;
	unsigned int n = btlog_find_address(log, make_event(nr).addr, &rec, 1);

	if (n)
		btref_put(rec.ref);
	return n && is_whole(&rec);
}

/* How many of the numbers from..to - 1 are in the log. */
static u32 has_range(struct btlog *log, u32 from, u32 to)
{
	u32 n = 0;

	for (; from < to; from++)
		n += has_nr(log, from);
	return n;
}

/* ==== Counters ==== */

struct counts {
	u64 recorded;
	u64 erased;
	u64 replaced;
	u64 overwritten;
	u64 cleared;
	u64 untracked;
};

static void expect_counts(struct kunit *test, struct btlog *log,
			  const struct counts *want)
{
	KUNIT_EXPECT_EQ(test, btlog_count(log, BTC_RECORDED), want->recorded);
	KUNIT_EXPECT_EQ(test, btlog_count(log, BTC_ERASED), want->erased);
	KUNIT_EXPECT_EQ(test, btlog_count(log, BTC_REPLACED), want->replaced);
	KUNIT_EXPECT_EQ(test, btlog_count(log, BTC_OVERWRITTEN),
			want->overwritten);
	KUNIT_EXPECT_EQ(test, btlog_count(log, BTC_CLEARED), want->cleared);
	KUNIT_EXPECT_EQ(test, btlog_count(log, BTC_UNTRACKED_FREE),
			want->untracked);
}

static u64 refused(struct btlog *log, enum btlog_reason reason)
{
	return btlog_count(log, BTC_REFUSED + reason);
}

static u64 refused_in_all(struct btlog *log)
{
	u64 sum = 0;
	int reason;

	for (reason = 0; reason < BTR_NR; reason++)
		sum += refused(log, reason);
	return sum;
}

/* What must hold whenever no event is in flight. */
static void expect_balance(struct kunit *test, struct btlog *log)
{
	KUNIT_EXPECT_EQ(test, btlog_count(log, BTC_SEEN),
			btlog_count(log, BTC_RECORDED) + refused_in_all(log));
}

static void count_record(const struct btlog_record_copy *rec, void *arg)
{
	u64 *wrong = arg;

	*wrong += !is_whole(rec);
}

/* All records are whole and as many as the counters say. */
static void expect_records(struct kunit *test, struct btlog *log, u64 n)
{
	u64 wrong = 0;

	KUNIT_EXPECT_EQ(test, btlog_visit_records(log, count_record, &wrong),
			n);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_EQ(test, btlog_outstanding(log), n);
	expect_balance(test, log);
}

/* ==== HASH ==== */

static void hash_keeps_what_is_outstanding(struct kunit *test)
{
	struct btlog *log = make_log(test, "type=hash,records=64");
	btref_t ref = ((struct fixture *)test->priv)->stack;

	record_range(log, 0, 40, ref);
	erase_nr(log, 3);
	erase_nr(log, 39);
	erase_nr(log, 39);		/* is gone */
	erase_nr(log, 1000);		/* never was there */

	expect_counts(test, log, &(struct counts){
		.recorded = 40, .erased = 2, .untracked = 2 });
	expect_records(test, log, 38);
	KUNIT_EXPECT_EQ(test, has_range(log, 0, 40), 38);
	KUNIT_EXPECT_FALSE(test, has_nr(log, 3));
	KUNIT_EXPECT_EQ(test, count_of(ref), 1 + 38);
}

static void hash_replaces_the_same_address(struct kunit *test)
{
	struct btlog *log = make_log(test, "type=hash,records=64");
	struct fixture *fx = test->priv;
	btref_t other = intern_fake(2, 0);
	struct btlog_record_copy rec;

	record_nr(log, 7, fx->stack);
	record_nr(log, 7, other);

	expect_counts(test, log, &(struct counts){ .recorded = 2, .replaced = 1 });
	expect_records(test, log, 1);
	KUNIT_EXPECT_EQ(test, count_of(fx->stack), 1);
	KUNIT_EXPECT_EQ(test, btlog_find_address(log, make_event(7).addr,
						 &rec, 1), 1);
	KUNIT_EXPECT_EQ(test, rec.ref & ~BTREF_OP_MASK, other);
	btref_put(rec.ref);
	btref_put(other);
}

static void hash_overwrites_the_oldest(struct kunit *test)
{
	struct btlog *log = make_log(test, "type=hash,records=16");
	btref_t ref = ((struct fixture *)test->priv)->stack;

	record_range(log, 0, 16, ref);
	record_nr(log, 0, ref);		/* is the newest now */
	record_range(log, 16, 20, ref);

	expect_counts(test, log, &(struct counts){
		.recorded = 21, .replaced = 1, .overwritten = 4 });
	expect_records(test, log, 16);
	KUNIT_EXPECT_TRUE(test, has_nr(log, 0));
	KUNIT_EXPECT_EQ(test, has_range(log, 1, 5), 0);
	KUNIT_EXPECT_EQ(test, has_range(log, 5, 20), 15);
	KUNIT_EXPECT_EQ(test, count_of(ref), 1 + 16);
}

/* ---- a plain list: what is outstanding, oldest first ---- */

enum { LIST_MAX = 64 };

struct plain_list {
	u32 n;
	u32 nr[LIST_MAX];
};

static void list_drop(struct plain_list *l, u32 i)
{
	memmove(&l->nr[i], &l->nr[i + 1], (--l->n - i) * sizeof(*l->nr));
}

static bool list_remove(struct plain_list *l, u32 nr)
{
	u32 i;

	for (i = 0; i < l->n; i++) {
		if (l->nr[i] != nr)
			continue;
		list_drop(l, i);
		return true;
	}
	return false;
}

static void list_append(struct plain_list *l, u32 nr)
{
	if (!list_remove(l, nr) && l->n == LIST_MAX)
		list_drop(l, 0);
	l->nr[l->n++] = nr;
}

static void hash_matches_a_list(struct kunit *test)
{
	struct btlog *log = make_log(test, "type=hash,records=64");
	btref_t ref = ((struct fixture *)test->priv)->stack;
	struct plain_list list = {};
	struct rnd_state rnd;
	u32 step, nr, i;

	prandom_seed_state(&rnd, get_random_u64());
	for (step = 0; step < 20000; step++) {
		nr = prandom_u32_state(&rnd) % 100;
		if (prandom_u32_state(&rnd) % 8 < 5) {
			record_nr(log, nr, ref);
			list_append(&list, nr);
		} else {
			erase_nr(log, nr);
			list_remove(&list, nr);
		}
	}
	for (i = 0; i < list.n; i++)
		KUNIT_EXPECT_TRUE(test, has_nr(log, list.nr[i]));
	expect_records(test, log, list.n);
}

/**
 * struct pattern - of addresses
 * @name: for the report
 * @stride: between neighbours; 0: random
 */
struct pattern {
	const char *name;
	u32 stride;
};

static const struct pattern patterns[] = {
	{ "random",		0 },
	{ "32 bytes apart",	32 },
	{ "192 bytes apart",	192 },
	{ "pages",		4096 },
	{ "16 KiB apart",	16384 },
};

static void describe_pattern(const struct pattern *pattern, char *text)
{
	strscpy(text, pattern->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(pattern, patterns, describe_pattern);

/* However the addresses spread over the shards, nothing has to make room. */
static void hash_holds_what_was_asked_for(struct kunit *test)
{
	const struct pattern *pattern = test->param_value;
	struct btlog *log = make_log(test, "type=hash,records=65536");
	struct btlog_event ev = { .size = 64 };
	struct rnd_state rnd;
	u32 i;

	prandom_seed_state(&rnd, get_random_u64());
	for (i = 0; i < 65536; i++) {
		ev.addr = 0xffff888100000000ULL;
		if (pattern->stride)
			ev.addr += (u64)i * pattern->stride;
		else
			ev.addr += 64ULL * (prandom_u32_state(&rnd) >> 6);
		if (btlog_wants(log, ev.size))
			btlog_record(log, &ev, btref_reason(BTR_NO_STACK));
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, btlog_count(log, BTC_OVERWRITTEN), 0);
	KUNIT_EXPECT_EQ(test, btlog_outstanding(log),
			65536 - btlog_count(log, BTC_REPLACED));
}

/* ==== LOG ==== */

static void log_keeps_the_last(struct kunit *test)
{
	struct btlog *log = make_log(test, "type=log,records=16");
	btref_t ref = ((struct fixture *)test->priv)->stack;

	record_range(log, 0, 40, ref);
	erase_nr(log, 39);		/* does nothing to a LOG */

	expect_counts(test, log, &(struct counts){
		.recorded = 40, .overwritten = 24 });
	expect_records(test, log, 16);
	KUNIT_EXPECT_EQ(test, has_range(log, 24, 40), 16);
	KUNIT_EXPECT_EQ(test, count_of(ref), 1 + 16);
}

static void find_gives_the_newest_first(struct kunit *test)
{
	struct btlog *log = make_log(test, "type=log,records=64");
	btref_t ref = ((struct fixture *)test->priv)->stack;
	struct btlog_record_copy recs[4];
	u32 i;

	for (i = 0; i < 30; i++)
		record_nr(log, i % 5, ref);

	/* Number 3 came as event 3, 8, ... 28. */
	KUNIT_ASSERT_EQ(test, btlog_find_address(log, make_event(3).addr,
						 recs, 4), 4);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, recs[i].seq, 28 - 5 * i);
		KUNIT_EXPECT_TRUE(test, is_whole(&recs[i]));
		btref_put(recs[i].ref);
	}
	KUNIT_EXPECT_EQ(test, btlog_find_address(log, 1, recs, 4), 0);
}

static void write_ring(void *arg)
{
	static atomic_t next;
	struct btlog *log = arg;

	record_nr(log, (u32)atomic_inc_return(&next) % ADDRESSES,
		  btref_reason(BTR_NO_STACK));
}

static void write_ring_for_ever(struct hand *hand)
{
	while (hand_goes_on()) {
		write_ring(hand->arg);
		hand->done++;
	}
}

/**
 * struct ring_view - what a pass over a LOG saw
 * @oldest: records before this position don't belong to the last ones
 * @stale: how many of those there are
 * @torn: records that are not whole
 */
struct ring_view {
	u32 oldest;
	u64 stale;
	u64 torn;
};

static void view_record(const struct btlog_record_copy *rec, void *arg)
{
	struct ring_view *view = arg;

	view->torn += !is_whole(rec);
	view->stale += (s32)(rec->seq - view->oldest) < 0;
}

static void no_record_of_a_ring_is_torn(struct kunit *test)
{
	struct btlog *log = make_log(test, "type=log,records=16");
	struct fixture *fx = test->priv;
	struct ring_view view = {};
	struct hand hands[3];
	u64 read = 0;
	int pass;

	KUNIT_ASSERT_TRUE(test, start_interrupts(&fx->irqs, write_ring, log));
	KUNIT_EXPECT_TRUE(test, start_hands(hands, 3, write_ring_for_ever, log));
	for (pass = 0; pass < 2000; pass++)
		read += btlog_visit_records(log, view_record, &view);
	stop_hands(hands, 3);
	stop_interrupts(&fx->irqs);
	KUNIT_EXPECT_EQ(test, view.torn, 0);
	KUNIT_EXPECT_GT(test, read, 1000);

	/* Each event has taken a position, those refused as well. */
	view = (struct ring_view){
		.oldest = btlog_count(log, BTC_SEEN) - 16
	};
	btlog_visit_records(log, view_record, &view);
	KUNIT_EXPECT_LE(test, view.stale, refused(log, BTR_LOG_BUSY));
	kunit_info(test, "%llu events, %llu read, %llu found the slot busy\n",
		   btlog_count(log, BTC_SEEN), read,
		   refused(log, BTR_LOG_BUSY));
	expect_balance(test, log);
}

/* ==== Sampling ==== */

struct draws {
	struct btlog *log;
	u32 size;
	u32 n;
	u32 wanted;
};

static void draw(void *arg)
{
	struct draws *d = arg;
	u32 i;

	d->wanted = 0;
	for (i = 0; i < d->n; i++) {
		if (!btlog_wants(d->log, d->size))
			continue;
		d->wanted++;
		btlog_refuse(d->log, BTR_NO_STACK);
	}
}

/* From a random phase on, so each CPU's share is exact over whole periods. */
static void one_in_n_is_exact_on_each_cpu(struct kunit *test)
{
	struct draws d = { .size = 64, .n = 700 };
	int cpu;

	d.log = make_log(test, "records=16,sample=7");
	for_each_online_cpu(cpu) {
		KUNIT_EXPECT_EQ(test, smp_call_function_single(cpu, draw, &d, 1),
				0);
		KUNIT_EXPECT_EQ(test, d.wanted, 100);
	}
	KUNIT_EXPECT_EQ(test, btlog_weight(d.log, 64), 7 << 16);
	expect_balance(test, d.log);
}

/**
 * struct chance - that an event is drawn, with one sample in 4096 bytes
 * @size: bytes of the event
 * @ppb: 1 - exp(-size / 4096), in 1e-9
 */
struct chance {
	u32 size;
	u32 ppb;
};

static const struct chance chances[] = {
	{ 8,		1951219 },
	{ 100,		24118299 },
	{ 512,		117503097 },
	{ 4096,		632120559 },
	{ 16384,	981684361 },
	{ 1 << 20,	1000000000 },
};

static void describe_chance(const struct chance *chance, char *text)
{
	sprintf(text, "%u bytes", chance->size);
}

KUNIT_ARRAY_PARAM(chance, chances, describe_chance);

enum { DRAWS = 100000, BILLION = 1000000000 };

/* A binomial's mean and five standard deviations. */
static void bytes_are_drawn_without_bias(struct kunit *test)
{
	const struct chance *c = test->param_value;
	struct draws d = { .size = c->size, .n = DRAWS };
	u64 mean = div_u64((u64)DRAWS * c->ppb, BILLION);
	u64 variance = div_u64(mean * (BILLION - c->ppb), BILLION);
	s64 off, limit = 5 * int_sqrt64(variance) + 5;

	d.log = make_log(test, "records=16,sample=bytes:4096");
	draw(&d);

	off = (s64)d.wanted - (s64)mean;
	kunit_info(test, "%u of %u drawn, %lld off the mean, 5 sigma are %lld\n",
		   d.wanted, DRAWS, off, limit);
	KUNIT_EXPECT_LE(test, abs(off), limit);
	expect_balance(test, d.log);
}

/* The weight is one over the chance. */
static void weights_turn_chances_over(struct kunit *test)
{
	const struct chance *c = test->param_value;
	struct btlog *log = make_log(test, "records=16,sample=bytes:4096");
	u64 want = div_u64((u64)BILLION << 16, c->ppb);
	s64 off = btlog_weight(log, c->size) - want;

	kunit_info(test, "weight %llu, want %llu\n",
		   btlog_weight(log, c->size), want);
	KUNIT_EXPECT_LE(test, abs(off) * 20000, want);
}

static void all_is_drawn_without_sampling(struct kunit *test)
{
	struct draws d = { .size = 1, .n = 1000 };
	static const char * const all[] = { "1", "bytes:1" };
	int i;

	d.log = make_log(test, "records=16");
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		btlog_disable(d.log);
		KUNIT_EXPECT_EQ(test, btlog_set(d.log, "sample", all[i]), 0);
		KUNIT_EXPECT_EQ(test, btlog_enable(d.log), 0);
		draw(&d);
		KUNIT_EXPECT_EQ(test, d.wanted, 1000);
		KUNIT_EXPECT_EQ(test, btlog_weight(d.log, 1), 1 << 16);
	}
}

/* ==== References and refusals ==== */

static void record_wanted(struct btlog *log, btref_t ref)
{
	struct btlog_event ev = make_event(1);

	btlog_record(log, &ev, ref);
}

static void each_path_consumes_the_reference(struct kunit *test)
{
	struct fixture *fx = test->priv;
	struct btlog *log = make_log(test, "type=hash,records=16");
	btref_t ref = fx->stack;

	record_range(log, 0, 20, ref);		/* kept, overwritten */
	record_range(log, 10, 20, ref);		/* replaced */
	KUNIT_EXPECT_EQ(test, count_of(ref), 1 + 16);
	btlog_clear(log);
	KUNIT_EXPECT_EQ(test, count_of(ref), 1);
	record_range(log, 0, 5, ref);
	btlog_disable(log);
	KUNIT_EXPECT_EQ(test, count_of(ref), 1);

	record_wanted(log, btref_retain(ref));	/* disabled */
	KUNIT_EXPECT_EQ(test, count_of(ref), 1);

	KUNIT_EXPECT_EQ(test, btlog_set(log, "type", "log"), 0);
	KUNIT_EXPECT_EQ(test, btlog_enable(log), 0);
	record_range(log, 0, 40, ref);
	KUNIT_EXPECT_EQ(test, count_of(ref), 1 + 16);
	btlog_clear(log);
	KUNIT_EXPECT_EQ(test, count_of(ref), 1);
	record_range(log, 0, 40, ref);
	drop_log(fx);
	KUNIT_EXPECT_EQ(test, count_of(ref), 1);
}

static void clear_counts_what_it_forgets(struct kunit *test)
{
	struct btlog *log = make_log(test, "type=hash,records=4096");
	btref_t ref = ((struct fixture *)test->priv)->stack;

	record_range(log, 0, 1000, ref);
	btlog_clear(log);
	expect_records(test, log, 0);
	record_range(log, 0, 10, ref);
	btlog_disable(log);
	expect_counts(test, log, &(struct counts){
		.recorded = 1010, .cleared = 1010 });
	KUNIT_EXPECT_EQ(test, btlog_memory(log), 0);
	expect_balance(test, log);
}

static void refuse_in_flight(struct kunit *test, struct btlog *log)
{
	btref_t ref = ((struct fixture *)test->priv)->stack;
	struct btlog_event ev = make_event(1);

	KUNIT_EXPECT_TRUE(test, btlog_wants(log, ev.size));
	btlog_disable(log);
	btlog_record(log, &ev, btref_retain(ref));
	KUNIT_EXPECT_FALSE(test, btlog_wants(log, ev.size));
	KUNIT_EXPECT_EQ(test, refused(log, BTR_DISABLED), 2);
	KUNIT_EXPECT_EQ(test, btlog_enable(log), 0);
}

static void refuse_recursion(struct kunit *test, struct btlog *log)
{
	struct bt_context *ctx = bt_context_enter();
	btref_t ref = btref_reason(BTR_NO_STACK);

	if (btlog_wants(log, 1))
		ref = btref_get(0, 16, BTREF_NOWAIT);
	if (ref == btref_reason(BTR_RECURSION))
		btlog_refuse(log, BTR_RECURSION);
	if (ctx)
		bt_context_leave(ctx);
	KUNIT_EXPECT_EQ(test, refused(log, BTR_RECURSION), 1);
}

/* The event counts as any other, with the reason in place of a stack. */
static void record_with_full_library(struct kunit *test, struct btlog *log)
{
	u64 recorded = btlog_count(log, BTC_RECORDED);
	struct btlog_event ev = make_event(2);
	struct btlog_record_copy rec;

	WRITE_ONCE(btlib_max_stacks, 1);
	KUNIT_EXPECT_TRUE(test, btlog_wants(log, ev.size));
	btlog_record(log, &ev, intern_fake(777, BTREF_NOWAIT));
	WRITE_ONCE(btlib_max_stacks, 0);

	KUNIT_EXPECT_EQ(test, btlog_count(log, BTC_RECORDED), recorded + 1);
	KUNIT_EXPECT_EQ(test, btlog_find_address(log, ev.addr, &rec, 1), 1);
	KUNIT_EXPECT_EQ(test, rec.ref, btref_reason(BTR_LIBRARY_FULL));
}

static void refuse_samples(struct kunit *test, struct btlog *log)
{
	btref_t ref = ((struct fixture *)test->priv)->stack;

	btlog_disable(log);
	KUNIT_EXPECT_EQ(test, btlog_set(log, "sample", "4"), 0);
	KUNIT_EXPECT_EQ(test, btlog_enable(log), 0);
	record_range(log, 0, 4000, ref);
	KUNIT_EXPECT_GT(test, refused(log, BTR_SAMPLED_OUT), 2000);
}

static void seen_is_recorded_or_refused(struct kunit *test)
{
	struct btlog *log = make_log(test, "type=hash,records=16");
	btref_t ref = ((struct fixture *)test->priv)->stack;

	record_range(log, 0, 40, ref);
	refuse_in_flight(test, log);
	refuse_recursion(test, log);
	record_with_full_library(test, log);
	refuse_samples(test, log);
	btlog_refuse_unseen(log, BTR_RECURSION);
	expect_balance(test, log);
	expect_records(test, log, 16);
}

/* ==== Everything at once ==== */

/* Of every four events one erases. */
static void churn_once(struct btlog *log, u32 nr)
{
	struct btlog_event ev = make_event(nr % 3000);

	if (nr % 4 == 3)
		btlog_erase(log, ev.addr);
	else if (btlog_wants(log, ev.size))
		btlog_record(log, &ev, intern_fake(nr % 700, BTREF_NOWAIT));
}

static void churn(struct hand *hand)
{
	struct rnd_state rnd;

	prandom_seed_state(&rnd, get_random_u64());
	while (hand_goes_on()) {
		churn_once(hand->arg, prandom_u32_state(&rnd));
		hand->done++;
	}
}

static void churn_in_interrupt(void *arg)
{
	static atomic_t next;

	churn_once(arg, hash_32(atomic_inc_return(&next), 32));
}

static void switch_log(struct kunit *test, struct btlog *log, u32 turn)
{
	u64 wrong = 0;

	btlog_visit_records(log, count_record, &wrong);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	btlog_clear(log);
	msleep(20);
	btlog_disable(log);
	KUNIT_EXPECT_EQ(test, btlog_set(log, "type", turn % 2 ? "log" : "hash"),
			0);
	KUNIT_EXPECT_EQ(test, btlog_set(log, "sample", turn % 3 ? "1" : "3"), 0);
	KUNIT_EXPECT_EQ(test, btlog_enable(log), 0);
	msleep(20);
}

static void it_is_switched_with_events_in_flight(struct kunit *test)
{
	struct btlog *log = make_log(test, "type=hash,records=4096");
	struct fixture *fx = test->priv;
	struct hand hands[3];
	u32 turn;

	KUNIT_ASSERT_TRUE(test, start_interrupts(&fx->irqs, churn_in_interrupt,
						 log));
	KUNIT_EXPECT_TRUE(test, start_hands(hands, 3, churn, log));
	for (turn = 0; turn < 30; turn++)
		switch_log(test, log, turn);
	btlog_remove(log);
	KUNIT_EXPECT_EQ(test, btlog_enable(log), -ENODEV);
	msleep(20);
	stop_hands(hands, 3);
	stop_interrupts(&fx->irqs);

	KUNIT_EXPECT_EQ(test, btlog_outstanding(log), 0);
	KUNIT_EXPECT_EQ(test, btlog_count(log, BTC_RECORDED),
			btlog_count(log, BTC_ERASED) +
			btlog_count(log, BTC_REPLACED) +
			btlog_count(log, BTC_OVERWRITTEN) +
			btlog_count(log, BTC_CLEARED));
	expect_balance(test, log);
	kunit_info(test, "%llu events, %u in interrupts, %llu refused\n",
		   btlog_count(log, BTC_SEEN), interrupts_in_all(&fx->irqs),
		   refused_in_all(log));
}

/* BT-16: what some add and others take away leaves nothing. */
static void pair_up(struct hand *hand)
{
	struct btlog_event ev;
	u32 i;

	for (i = 0; i < 20000; i++) {
		ev = make_event(hand->nr * 100000 + i % 50);
		if (btlog_wants(hand->arg, ev.size))
			btlog_record(hand->arg, &ev, intern_fake(3, BTREF_NOWAIT));
		btlog_erase(hand->arg, ev.addr);
		hand_goes_on();
	}
}

static void pairs_leave_nothing(struct kunit *test)
{
	struct btlog *log = make_log(test, "type=hash,records=4096");
	struct hand hands[4];

	KUNIT_ASSERT_TRUE(test, start_hands(hands, 4, pair_up, log));
	stop_hands(hands, 4);
	expect_counts(test, log, &(struct counts){
		.recorded = 80000, .erased = 80000 });
	expect_records(test, log, 0);
}

/* ==== Settings ==== */

/**
 * struct attempt - to set something
 * @key: the setting
 * @value: its new value
 * @error: what is to come of it
 * @reads: how it is read afterwards, if not as @value
 */
struct attempt {
	const char *key;
	const char *value;
	int error;
	const char *reads;
};

static const struct attempt attempts[] = {
	{ "type",	"hash",				0 },
	{ "type",	"log",				0 },
	{ "type",	"",				-EINVAL },
	{ "type",	"hashes",			-EINVAL },
	{ "type",	"HASH",				-EINVAL },
	{ "records",	"16",				0 },
	{ "records",	"0x10000",			0,	"65536" },
	{ "records",	"16777216",			0 },
	{ "records",	"15",				-ERANGE },
	{ "records",	"16777217",			-ERANGE },
	{ "records",	"0",				-ERANGE },
	{ "records",	"4294967296",			-ERANGE },
	{ "records",	"-1",				-EINVAL },
	{ "records",	"",				-EINVAL },
	{ "records",	"16 17",			-EINVAL },
	{ "records",	"64k",				-EINVAL },
	{ "depth",	"1",				0 },
	{ "depth",	"60",				0 },
	{ "depth",	"0",				-ERANGE },
	{ "depth",	"61",				-ERANGE },
	{ "depth",	"deep",				-EINVAL },
	{ "sample",	"1",				0 },
	{ "sample",	"2147483647",			0 },
	{ "sample",	"0",				-ERANGE },
	{ "sample",	"2147483648",			-ERANGE },
	{ "sample",	"99999999999999999999",		-ERANGE },
	{ "sample",	"-7",				-EINVAL },
	{ "sample",	"bytes:1",			0 },
	{ "sample",	"bytes:512K",			0,	"bytes:524288" },
	{ "sample",	"bytes:1G",			0,	"bytes:1073741824" },
	{ "sample",	"bytes:2147483647",		0 },
	{ "sample",	"bytes:0",			-ERANGE },
	{ "sample",	"bytes:2G",			-ERANGE },
	{ "sample",	"bytes:16E",			-ERANGE },
	{ "sample",	"bytes:18446744073709551617",	-ERANGE },
	{ "sample",	"bytes:17179869185G",		-ERANGE },
	{ "sample",	"bytes:",			-EINVAL },
	{ "sample",	"bytes:-1",			-EINVAL },
	{ "sample",	"bytes:1x",			-EINVAL },
	{ "sample",	"bytes:K",			-EINVAL },
	{ "sample",	"byte:1",			-EINVAL },
	{ "cut",	"irq",				0 },
	{ "cut",	"none",				0 },
	{ "cut",	"",				-EINVAL },
	{ "cut",	"irqs",				-EINVAL },
	{ "source",	"",				0 },
	{ "source",	"slab",				0 },
	{ "source",	"slab:kmalloc-64",		0 },
	{ "source",	"slabs",			-EINVAL },
	{ "source",	"sla",				-EINVAL },
	{ "source",	":",				-EINVAL },
	{ "",		"1",				-ENOENT },
	{ "size",	"1",				-ENOENT },
	{ "records ",	"1",				-ENOENT },
};

static void describe_attempt(const struct attempt *a, char *text)
{
	snprintf(text, KUNIT_PARAM_DESC_SIZE, "%s = \"%s\"", a->key, a->value);
}

KUNIT_ARRAY_PARAM(attempt, attempts, describe_attempt);

static int read_setting(struct btlog *log, const char *key, char *text)
{
	int len;

	mutex_lock(&log->lock);
	len = btlog_get_setting(log, key, text);
	mutex_unlock(&log->lock);
	return len;
}

static void a_setting_is_taken_or_refused(struct kunit *test)
{
	const struct attempt *a = test->param_value;
	struct btlog *log = make_log(test, "records=4096,depth=20,sample=10");
	char *value = kunit_kzalloc(test, BTLOG_SOURCE_LEN, GFP_KERNEL);
	struct btlog_settings before;

	KUNIT_ASSERT_NOT_NULL(test, value);
	memcpy(&before, &log->set, sizeof(before));
	KUNIT_EXPECT_NE(test, btlog_set(log, a->key, a->value), 0);
	btlog_disable(log);
	KUNIT_EXPECT_EQ(test, memcmp(&before, &log->set, sizeof(before)), 0);

	KUNIT_EXPECT_EQ(test, btlog_set(log, a->key, a->value), a->error);
	if (a->error) {
		KUNIT_EXPECT_EQ(test, memcmp(&before, &log->set, sizeof(before)),
				0);
		return;
	}
	KUNIT_EXPECT_GE(test, read_setting(log, a->key, value), 0);
	KUNIT_EXPECT_STREQ(test, value, a->reads ?: a->value);
}

static void an_enabled_log_is_busy(struct kunit *test)
{
	struct btlog *log = make_log(test, "records=64");

	KUNIT_EXPECT_EQ(test, btlog_set(log, "depth", "5"), -EBUSY);
	KUNIT_EXPECT_EQ(test, btlog_set(log, "source", "slab"), -EBUSY);
	KUNIT_EXPECT_EQ(test, btlog_enable(log), 0);
	KUNIT_EXPECT_EQ(test, log->set.depth, BTLOG_DEPTH);
}

static void a_long_source_is_refused(struct kunit *test)
{
	struct btlog *log = make_log(test, "records=64");
	char *value = kunit_kzalloc(test, BTLOG_SOURCE_LEN + 1, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, value);
	memset(value, 'a', BTLOG_SOURCE_LEN);
	memcpy(value, "slab:", 5);
	btlog_disable(log);
	KUNIT_EXPECT_EQ(test, btlog_set(log, "source", value), -EINVAL);
	KUNIT_EXPECT_STREQ(test, log->set.source, "");
}

/**
 * struct naming - a name for a log
 * @name: the name
 * @error: what comes of it
 */
struct naming {
	const char *name;
	int error;
};

static const struct naming namings[] = {
	{ "a",					0 },
	{ "A-b_c.9",				0 },
	{ "a123456789b123456789c123456789d",	0 },
	{ "a123456789b123456789c123456789de",	-EINVAL },
	{ "",					-EINVAL },
	{ ".",					-EINVAL },
	{ "..",					-EINVAL },
	{ "a/b",				-EINVAL },
	{ "a b",				-EINVAL },
	{ "a:b",				-EINVAL },
	{ "a\n",				-EINVAL },
	{ "\xc3\xa4",				-EINVAL },
	{ "kunit",				-EEXIST },
	{ "library",				-EEXIST },
	{ "README",				-EEXIST },
	{ "new",				-EEXIST },
};

static void describe_naming(const struct naming *n, char *text)
{
	snprintf(text, KUNIT_PARAM_DESC_SIZE, "%*pE", (int)strlen(n->name),
		 n->name);
}

KUNIT_ARRAY_PARAM(naming, namings, describe_naming);

static void a_name_is_taken_or_refused(struct kunit *test)
{
	const struct naming *n = test->param_value;
	struct btlog *log;

	make_log(test, "records=64");
	log = btlog_create(n->name);
	if (IS_ERR(log)) {
		KUNIT_EXPECT_EQ(test, PTR_ERR(log), n->error);
		return;
	}
	KUNIT_EXPECT_EQ(test, n->error, 0);
	btlog_remove(log);
	btlog_release(log);
	KUNIT_EXPECT_NULL(test, btlog_find(n->name));
}

/**
 * struct spec - a value of the module parameter logs
 * @text: it
 * @error: what comes of it
 * @made: the names of the logs that there are then
 */
struct spec {
	const char *text;
	int error;
	const char *made;
};

static const struct spec specs[] = {
	{ "",					0,		"" },
	{ ";;",					0,		"" },
	{ "a",					0,		"a " },
	{ "a:",					0,		"a " },
	{ "a:records=64,type=log",		0,		"a " },
	{ "a;b:depth=3;c:cut=none",		0,		"a b c " },
	{ "a:source=slab:kmalloc-8,kmalloc-16,records=64", 0,	"a " },
	{ "a:records=1",			-ERANGE,	"" },
	{ "a:records",				-EINVAL,	"" },
	{ "a:record=64",			-EINVAL,	"" },
	{ "a:type=hash,records=64,depth",	-EINVAL,	"" },
	{ "a:=64",				-EINVAL,	"" },
	{ "a;a",				-EEXIST,	"a " },
	{ "a;b c;d",				-EINVAL,	"a " },
	{ ":records=64",			-EINVAL,	"" },
};

static void describe_spec(const struct spec *spec, char *text)
{
	snprintf(text, KUNIT_PARAM_DESC_SIZE, "\"%s\"", spec->text);
}

KUNIT_ARRAY_PARAM(spec, specs, describe_spec);

/* Removes them. */
static void list_logs(char *names, size_t size)
{
	struct btlog *log;

	while ((log = btlog_next(NULL))) {
		strlcat(names, log->name, size);
		strlcat(names, " ", size);
		btlog_remove(log);
		btlog_release(log);
	}
}

static void logs_are_made_at_load_time(struct kunit *test)
{
	const struct spec *spec = test->param_value;
	char names[64] = "";

	KUNIT_EXPECT_EQ(test, btlog_apply(spec->text), spec->error);
	list_logs(names, sizeof(names));
	KUNIT_EXPECT_STREQ(test, names, spec->made);
}

static void a_removed_log_is_dead(struct kunit *test)
{
	struct btlog *log = make_log(test, "records=64"), *other;
	btref_t ref = ((struct fixture *)test->priv)->stack;

	btlog_remove(log);
	btlog_remove(log);
	KUNIT_EXPECT_EQ(test, btlog_enable(log), -ENODEV);
	KUNIT_EXPECT_FALSE(test, record_nr(log, 1, ref));
	record_wanted(log, btref_retain(ref));
	KUNIT_EXPECT_EQ(test, btlog_visit_records(log, count_record, NULL), 0);

	other = btlog_create("kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	btlog_remove(other);
	btlog_release(other);
}

static struct kunit_case log_cases[] = {
	KUNIT_CASE(hash_keeps_what_is_outstanding),
	KUNIT_CASE(hash_replaces_the_same_address),
	KUNIT_CASE(hash_overwrites_the_oldest),
	KUNIT_CASE(hash_matches_a_list),
	KUNIT_CASE_PARAM(hash_holds_what_was_asked_for, pattern_gen_params),
	KUNIT_CASE(log_keeps_the_last),
	KUNIT_CASE(find_gives_the_newest_first),
	KUNIT_CASE(no_record_of_a_ring_is_torn),
	KUNIT_CASE(one_in_n_is_exact_on_each_cpu),
	KUNIT_CASE_PARAM(bytes_are_drawn_without_bias, chance_gen_params),
	KUNIT_CASE_PARAM(weights_turn_chances_over, chance_gen_params),
	KUNIT_CASE(all_is_drawn_without_sampling),
	KUNIT_CASE(each_path_consumes_the_reference),
	KUNIT_CASE(clear_counts_what_it_forgets),
	KUNIT_CASE(seen_is_recorded_or_refused),
	KUNIT_CASE(it_is_switched_with_events_in_flight),
	KUNIT_CASE(pairs_leave_nothing),
	KUNIT_CASE_PARAM(a_setting_is_taken_or_refused, attempt_gen_params),
	KUNIT_CASE(an_enabled_log_is_busy),
	KUNIT_CASE(a_long_source_is_refused),
	KUNIT_CASE_PARAM(a_name_is_taken_or_refused, naming_gen_params),
	KUNIT_CASE_PARAM(logs_are_made_at_load_time, spec_gen_params),
	KUNIT_CASE(a_removed_log_is_dead),
	{}
};

static struct kunit_suite log_suite = {
	.name = "btlog_log",
	.init = log_case_init,
	.exit = log_case_exit,
	.test_cases = log_cases,
};

kunit_test_suite(log_suite);
