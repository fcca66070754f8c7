// SPDX-License-Identifier: GPL-2.0
/*
 * torture.c - everything that btlog can do, at once and at random
 *
 * Test only. Loading takes as long as the test does and fails if something came
 * out wrong, which the kernel's log then says. Meanwhile
 *
 *	workers		take, retain, put, decode, find stacks and read logs
 *	interrupts	do part of that in hardirq, softirq, irq_work and NMI
 *	the manager	makes, sets, switches, clears and removes logs
 *
 * and user space may do what it likes with the files, as long as no torture log
 * is given a source. Stacks and records are numbered, and whoever meets one
 * checks that it fits its number. Numbers are drawn from a window that moves
 * on, so the library takes new stacks all the time and reclaims old ones.
 *
 * With grow= the library grows to that many stacks first, see kunit/growth.h.
 */
#include <linux/err.h>
#include <linux/module.h>

#include "../../kunit/contexts.h"
#include "../../kunit/growth.h"

#undef pr_fmt
#define pr_fmt(fmt) "torture: " fmt

static unsigned int seconds = 10;
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "how long it takes");

static unsigned int workers = 3;
module_param(workers, uint, 0444);
MODULE_PARM_DESC(workers, "threads besides the manager, up to 16");

static unsigned int window = 8000;
module_param(window, uint, 0444);
MODULE_PARM_DESC(window, "stacks that are in use at a time");

static unsigned int grow;
module_param(grow, uint, 0444);
MODULE_PARM_DESC(grow, "how many stacks the library grows to first");

enum {
	MAX_WORKERS	= 16,
	NUMBERS		= 1 << 24,	/* of stacks, before they come again */
	HELD		= 1024,		/* references of one worker */
	NAMED_LOGS	= 4,		/* the manager makes and removes them */
	RETIRED		= 64,		/* logs that somebody may still use */
};

/* What is counted. */
enum figure {
	TF_TAKEN,
	TF_REFUSED,
	TF_RETAINED,
	TF_PUT,
	TF_DECODED,
	TF_CAPTURED,
	TF_RECORDED,
	TF_ERASED,
	TF_FOUND,
	TF_READ,
	TF_SWITCHED,
	TF_REMOVED,
	TF_NR
};

static const char * const figure_names[] = {
	[TF_TAKEN]	= "taken",
	[TF_REFUSED]	= "refused",
	[TF_RETAINED]	= "retained",
	[TF_PUT]	= "put",
	[TF_DECODED]	= "decoded",
	[TF_CAPTURED]	= "captured",
	[TF_RECORDED]	= "recorded",
	[TF_ERASED]	= "erased",
	[TF_FOUND]	= "found",
	[TF_READ]	= "read",
	[TF_SWITCHED]	= "switched",
	[TF_REMOVED]	= "removed",
};

static_assert(ARRAY_SIZE(figure_names) == TF_NR);

static atomic64_t figures[TF_NR];
static const char *wrong;		/* the first thing that came out so */
static atomic_t first;			/* number in the window */
static struct btlog *lasting;		/* a log that is there all the time */
static struct interrupts irqs;
static struct hand hands[MAX_WORKERS];

static void complain(const char *what)
{
	cmpxchg(&wrong, NULL, what);
}

static void count(enum figure figure)
{
	atomic64_inc(&figures[figure]);
}

/* Short ones are drawn more often, so that some stacks are hot. */
static u32 draw_number(u32 random)
{
	u32 range = random >> 31 ? window : max(window / 64, 1U);

	return ((u32)atomic_read(&first) + (random & 0xffffff) % range) % NUMBERS;
}

/* ==== References ==== */

/**
 * struct worker - what a worker has
 * @rnd: what it does next
 * @refs: references, 0 where there is none
 * @numbers: of their stacks
 */
struct worker {
	struct rnd_state rnd;
	btref_t refs[HELD];
	u32 numbers[HELD];
};

static void take(struct worker *w, u32 i, u32 random)
{
	w->numbers[i] = draw_number(random);
	w->refs[i] = intern_fake(w->numbers[i],
				 random & 1 << 24 ? BTREF_NOWAIT : 0);
	if (btref_is_stack(w->refs[i])) {
		count(TF_TAKEN);
	} else {
		w->refs[i] = 0;
		count(TF_REFUSED);
	}
}

static void retain(struct worker *w, u32 from, u32 to)
{
	if (w->refs[to])
		return;
	w->numbers[to] = w->numbers[from];
	w->refs[to] = btref_retain(w->refs[from]);
	if (w->refs[to] != w->refs[from])
		complain("a reference could not be retained");
	count(TF_RETAINED);
}

static void put(struct worker *w, u32 i)
{
	btref_put(w->refs[i]);
	w->refs[i] = 0;
	count(TF_PUT);
}

static void check_held(const struct worker *w, u32 i)
{
	btref_t again = intern_fake(w->numbers[i], BTREF_NOWAIT);

	if (again != w->refs[i])
		complain("a stack that is held was not found");
	if (!decodes_to(w->refs[i], w->numbers[i]))
		complain("a stack is not what it was");
	btref_put(again);
	count(TF_DECODED);
}

static void handle_references(struct worker *w, u32 random)
{
	u32 i = prandom_u32_state(&w->rnd) % HELD;

	if (!w->refs[i])
		take(w, i, random);
	else if (random >> 29 < 4)
		put(w, i);
	else if (random >> 29 < 6)
		retain(w, i, random % HELD);
	else
		check_held(w, i);
}

static void put_all(struct worker *w)
{
	u32 i;

	for (i = 0; i < HELD; i++)
		if (w->refs[i])
			put(w, i);
}

static void capture(u32 random)
{
	btref_t ref = btref_get(0, 1 + random % 40,
				random & 0x100 ? BTREF_NOWAIT : 0);
	u32 frames[BTREF_MAX_FRAMES];

	if (btref_is_stack(ref) && !btref_decode(ref, frames, NULL))
		complain("a stack that was just taken has no frames");
	btref_put(ref);
	count(TF_CAPTURED);
}

/* ==== Records ==== */

#define FIRST_ADDRESS 0xffff888000000000ULL

static u64 address_of(u32 number)
{
	return FIRST_ADDRESS + 64ULL * number;
}

static void record(struct btlog *log, u32 number, unsigned int flags)
{
	struct btlog_event ev = {
		.addr = address_of(number),
		.size = 1 + number % 4096,
		.op = number % 64,
		.tag = number,
	};

	if (btlog_wants(log, ev.size))
		btlog_record(log, &ev, intern_fake(number, flags));
	count(TF_RECORDED);
}

static void erase(struct btlog *log, u32 number)
{
	btlog_erase(log, address_of(number));
	count(TF_ERASED);
}

static void check_record(const struct btlog_record_copy *rec, void *arg)
{
	u32 number = (rec->addr - FIRST_ADDRESS) / 64;

	if (number >= NUMBERS || rec->size != 1 + number % 4096 ||
	    rec->tag != (u16)number || (rec->ref & BTREF_OP_MASK) != number % 64)
		complain("a record is not whole");
	else if (btref_is_stack(rec->ref) && !decodes_to(rec->ref, number))
		complain("a record has another one's stack");
	count(TF_READ);
}

static void find(struct btlog *log, u32 number)
{
	struct btlog_record_copy recs[4];
	unsigned int i, n;

	n = btlog_find_address(log, address_of(number), recs, ARRAY_SIZE(recs));
	for (i = 0; i < n; i++) {
		check_record(&recs[i], NULL);
		btref_put(recs[i].ref);
		count(TF_FOUND);
	}
}

/* A use of one of the logs, NULL if there is none of that name right now. */
static struct btlog *pick_log(u32 random)
{
	char name[16];

	if (random % (NAMED_LOGS + 1) == NAMED_LOGS)
		return btlog_use(lasting);
	snprintf(name, sizeof(name), "torture%u", random % (NAMED_LOGS + 1));
	return btlog_find(name);
}

static void handle_log(struct worker *w, u32 random)
{
	struct btlog *log = pick_log(random >> 16);
	u32 i;

	if (!log)
		return;
	for (i = 0; i < 64; i++) {
		random = prandom_u32_state(&w->rnd);
		if (random % 8 < 5)
			record(log, draw_number(random), BTREF_NOWAIT);
		else
			erase(log, draw_number(random));
	}
	if (random >> 26 == 0)
		btlog_visit_records(log, check_record, NULL);
	if (random >> 26 == 1)
		find(log, draw_number(random));
	btlog_release(log);
}

/* ==== Who does it ==== */

static void work(struct hand *hand)
{
	struct worker *w = kvzalloc(sizeof(*w), GFP_KERNEL);

	if (!w) {
		complain("no memory for a worker");
		return;
	}
	prandom_seed_state(&w->rnd, get_random_u64());
	while (hand_goes_on() && !READ_ONCE(wrong)) {
		u32 random = prandom_u32_state(&w->rnd);

		if (random % 64 == 0)
			handle_log(w, random);
		else if (random % 64 == 1)
			capture(random);
		else
			handle_references(w, random);
	}
	put_all(w);
	kvfree(w);
}

/* In any context. */
static void interrupt(void *arg)
{
	static atomic_t calls;
	u32 random = hash_32(atomic_inc_return(&calls), 32);
	u32 number = draw_number(random);
	btref_t ref;

	switch (random % 4) {
	case 0:
		record(lasting, number, BTREF_NOWAIT);
		break;
	case 1:
		erase(lasting, number);
		break;
	case 2:
		capture(random | 0x100);
		break;
	default:
		ref = intern_fake(number, BTREF_NOWAIT);
		if (btref_is_stack(ref) && !decodes_to(ref, number))
			complain("a stack taken in an irq is not what it was");
		btref_put(ref);
		count(TF_DECODED);
	}
}

/* ==== The manager ==== */

static struct btlog *retired[RETIRED];

/* A log that nobody uses any more adds up. */
static void check_dead(struct btlog *log)
{
	u64 gone = btlog_count(log, BTC_ERASED) + btlog_count(log, BTC_REPLACED) +
		   btlog_count(log, BTC_OVERWRITTEN) +
		   btlog_count(log, BTC_CLEARED);
	u64 refused = 0;
	int reason;

	for (reason = 0; reason < BTR_NR; reason++)
		refused += btlog_count(log, BTC_REFUSED + reason);
	if (btlog_count(log, BTC_SEEN) !=
	    btlog_count(log, BTC_RECORDED) + refused)
		complain("seen is not recorded + refused");
	if (btlog_count(log, BTC_RECORDED) != gone)
		complain("records got lost, or came twice");
}

static bool retire(struct btlog *log)
{
	int i;

	for (i = 0; i < RETIRED; i++) {
		if (retired[i])
			continue;
		btlog_remove(log);
		retired[i] = log;
		count(TF_REMOVED);
		return true;
	}
	return false;
}

static void bury_retired(void)
{
	int i;

	for (i = 0; i < RETIRED; i++) {
		if (!retired[i] || kref_read(&retired[i]->kref) > 1)
			continue;
		check_dead(retired[i]);
		btlog_release(retired[i]);
		retired[i] = NULL;
	}
}

static bool is_buried(void)
{
	bury_retired();
	return !memchr_inv(retired, 0, sizeof(retired));
}

static void remake_log(u32 random)
{
	struct btlog *log = pick_log(random);
	char name[16];

	if (log == lasting || (log && !retire(log))) {
		btlog_release(log);
		return;
	}
	snprintf(name, sizeof(name), "torture%u", random % (NAMED_LOGS + 1));
	log = btlog_create(name);
	if (IS_ERR(log))
		return;
	btlog_enable(log);
	btlog_release(log);
}

static void change_setting(struct btlog *log, u32 random)
{
	static const char * const settings[][2] = {
		{ "type", "hash" }, { "type", "log" }, { "type", "list" },
		{ "records", "16" }, { "records", "1000" },
		{ "records", "20000" }, { "records", "-1" },
		{ "sample", "1" }, { "sample", "3" }, { "sample", "bytes:2k" },
		{ "sample", "0" }, { "depth", "8" }, { "cut", "none" },
	};
	const char * const *s = settings[random % ARRAY_SIZE(settings)];

	btlog_set(log, s[0], s[1]);
}

static void manage_log(u32 random)
{
	struct btlog *log = pick_log(random >> 16);

	if (!log)
		return;
	switch (random % 8) {
	case 0 ... 1:
		btlog_clear(log);
		break;
	case 2 ... 3:
		btlog_disable(log);
		change_setting(log, random >> 8);
		break;
	default:
		btlog_enable(log);
	}
	btlog_release(log);
	count(TF_SWITCHED);
}

static void manage(struct hand *hand)
{
	struct rnd_state rnd;
	const char *bad;

	prandom_seed_state(&rnd, get_random_u64());
	while (hand_goes_on() && !READ_ONCE(wrong)) {
		u32 random = prandom_u32_state(&rnd);

		if (random % 8 == 0)
			remake_log(random >> 8);
		else
			manage_log(random >> 8);
		bury_retired();
		/* A new window in some 64 turns. */
		atomic_add(window / 64, &first);
		if (++hand->done % 64 == 0) {
			bad = btlib_validate(false);
			if (bad)
				complain(bad);
		}
		msleep(random % 16);
	}
}

/* ==== Beginning and end ==== */

static void sleep_until_end(void)
{
	unsigned int left;

	for (left = seconds * 4; left && !READ_ONCE(wrong); left--)
		msleep(250);
}

static int run(void)
{
	struct hand manager = {};

	lasting = btlog_create("torture");
	if (IS_ERR(lasting))
		return PTR_ERR(lasting);
	if (start_interrupts(&irqs, interrupt, NULL)) {
		if (!start_hands(hands, workers, work, NULL) ||
		    !start_hands(&manager, 1, manage, NULL))
			complain("no threads");
		sleep_until_end();
		stop_hands(&manager, 1);
		stop_hands(hands, workers);
		stop_interrupts(&irqs);
	} else {
		complain("no NMIs");
	}
	return 0;
}

static void remove_logs(void)
{
	struct btlog *log;
	u32 i;

	for (i = 0; i < NAMED_LOGS; i++) {
		log = pick_log(i);
		if (!log)
			continue;
		while (!retire(log)) {
			msleep(20);
			bury_retired();
		}
	}
	/* There may be readers in user space. */
	if (!wait_until(is_buried(), 30000))
		complain("a log is in use after its end");
	btlog_remove(lasting);
	check_dead(lasting);
	btlog_release(lasting);
}

/* When user space has switched its own logs off, nothing is left. */
static void check_library(void)
{
	const char *bad;

	if (!wait_until(!referenced_stacks(), 60000))
		complain("references are left");
	else if (!wait_until(!btlib_stacks(), 60000))
		complain("stacks are left");
	bad = btlib_validate(true);
	if (bad)
		complain(bad);
	if (btlib_is_broken())
		complain("the library is broken");
}

static void print_figures(void)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < TF_NR; i++) {
		pr_info("%s: %lld\n", figure_names[i],
			atomic64_read(&figures[i]));
		sum += atomic64_read(&figures[i]);
	}
	pr_info("%llu operations; in hardirq %d, softirq %d, irq_work %d, NMI %d\n",
		sum, atomic_read(&irqs.runs[IN_HARDIRQ]),
		atomic_read(&irqs.runs[IN_SOFTIRQ]),
		atomic_read(&irqs.runs[IN_IRQ_WORK]),
		atomic_read(&irqs.runs[IN_NMI]));
	pr_info("%lld stacks inserted, %lld reclaimed, %lld doublings, %lld chunks freed\n",
		library_figure("inserted"), library_figure("reclaimed"),
		library_figure("doublings"), library_figure("chunks_freed"));
}

static void grow_first(void)
{
	struct growth g = { .n = grow };
	const char *bad;

	bad = grow_library(&g);
	if (bad)
		complain(bad);
	pr_info("grown to %u stacks in %lld ms, %llu looked up, longest hold %lld ns\n",
		g.inserted, g.ms, g.looked_up, library_figure("longest_hold_ns"));
}

static int __init torture_init(void)
{
	int err;

	workers = clamp(workers, 1U, (unsigned int)MAX_WORKERS);
	window = clamp(window, 64U, (unsigned int)NUMBERS / 2);
	err = btlib_use();
	if (err)
		return err;
	if (grow)
		grow_first();
	if (seconds) {
		err = run();
		if (!err)
			remove_logs();
	}
	btlib_unuse();
	check_library();
	print_figures();
	if (wrong)
		pr_err("%s\n", wrong);
	return wrong ? -EBADMSG : err;
}

static void __exit torture_exit(void)
{
}

module_init(torture_init);
module_exit(torture_exit);
MODULE_IMPORT_NS(BTLOG_TEST);
MODULE_DESCRIPTION("btlog under everything at once");
MODULE_LICENSE("GPL");
