// SPDX-License-Identifier: GPL-2.0
/*
 * report_kunit.c - suite "btlog_report": sums, orders, filters, shortage
 *
 * A log is filled with made-up events, and the text of its report is read.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "../internal.h"
#include "helpers.h"

enum {
	TEXT_MAX	= 1 << 20,
	HEAVY		= 5,	/* stacks with many records */
	LIGHT		= 2000,	/* and with few */
	BOUNDED		= 256,	/* stacks that a report can rank if pressed */
};

/**
 * struct fixture - one log and its report
 * @log: enabled
 * @report: of the last read_report()
 * @m: where its text goes
 * @base: a frame of the kernel to count up from
 * @next_addr: of the next record
 */
struct fixture {
	struct btlog *log;
	struct report *report;
	struct seq_file m;
	u32 base;
	u64 next_addr;
};

/* ==== Fixture ==== */

static void set_up_log(struct kunit *test, const char *key, const char *value)
{
	struct fixture *f = test->priv;

	btlog_disable(f->log);
	KUNIT_ASSERT_EQ(test, btlog_set(f->log, key, value), 0);
	KUNIT_ASSERT_EQ(test, btlog_enable(f->log), 0);
}

static u32 some_frame(void)
{
	u32 frames[BTREF_MAX_FRAMES];
	btref_t ref = btref_get(0, BTREF_MAX_FRAMES, 0);
	unsigned int n = btref_decode(ref, frames, NULL);

	btref_put(ref);
	return n ? frames[n - 1] : 0;
}

static int report_test_init(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	library_begin(test);
	test->priv = f;
	f->log = btlog_create("report_kunit");
	KUNIT_ASSERT_FALSE(test, IS_ERR(f->log));
	f->log->filter.top_n = 0;
	f->m.buf = kvmalloc(TEXT_MAX, GFP_KERNEL);
	f->m.size = TEXT_MAX - 1;
	KUNIT_ASSERT_NOT_NULL(test, f->m.buf);
	f->next_addr = 0x10000;
	KUNIT_ASSERT_EQ(test, btlog_enable(f->log), 0);
	f->base = some_frame();
	KUNIT_ASSERT_NE(test, f->base, 0);
	return 0;
}

static void report_test_exit(struct kunit *test)
{
	struct fixture *f = test->priv;

	report_alloc_max = SIZE_MAX;
	if (!f)
		return;
	if (f->report)
		report_free(f->report);
	kvfree(f->m.buf);
	if (!IS_ERR_OR_NULL(f->log)) {
		btlog_remove(f->log);
		btlog_release(f->log);
	}
	library_end(test);
}

static btref_t stack(struct fixture *f, u32 number)
{
	u32 frames[] = { f->base + number % 1000, f->base + number / 1000 };

	return btref_intern(frames, ARRAY_SIZE(frames), 0);
}

/* @count records of a stack; each of @size bytes. */
static void record(struct fixture *f, u32 number, u32 count, u32 size, u8 op)
{
	while (count--) {
		struct btlog_event ev = {
			.addr = f->next_addr++, .size = size, .op = op };

		if (btlog_wants(f->log, size))
			btlog_record(f->log, &ev, stack(f, number));
	}
}

/* ==== Reading the text ==== */

static void read_report(struct kunit *test)
{
	struct fixture *f = test->priv;
	u32 i;

	if (f->report)
		report_free(f->report);
	f->report = report_create(f->log);
	if (IS_ERR(f->report)) {
		f->report = NULL;
		KUNIT_FAIL(test, "no report");
		return;
	}
	f->m.count = 0;
	for (i = 0; i < report_items(f->report); i++)
		report_show(&f->m, f->report, i);
	KUNIT_ASSERT_FALSE(test, seq_has_overflowed(&f->m));
	f->m.buf[f->m.count] = '\0';
}

/* The value of the @n-th line of that key, from 0 on; U64_MAX: none. */
static u64 value_of(struct fixture *f, const char *key, u32 n)
{
	size_t len = strlen(key);
	const char *line = f->m.buf;
	u64 value;

	for (; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!*line)
			break;
		if (strncmp(line, key, len) || strncmp(line + len, ": ", 2))
			continue;
		if (!n--)
			return sscanf(line + len, ": %llu", &value) == 1 ?
				value : U64_MAX;
	}
	return U64_MAX;
}

static u64 total(struct fixture *f, const char *key)
{
	u64 value = value_of(f, key, 0);

	return value == U64_MAX ? 0 : value;
}

static void expect_sums(struct kunit *test)
{
	struct fixture *f = test->priv;

	KUNIT_EXPECT_EQ(test, total(f, "shown_count") +
			total(f, "below_top_count") +
			total(f, "filtered_count") + total(f, "own_count") +
			total(f, "unranked_count") +
			total(f, "not_kept_library_full_count"),
			total(f, "read_count"));
	KUNIT_EXPECT_EQ(test, total(f, "shown_bytes") +
			total(f, "below_top_bytes") +
			total(f, "filtered_bytes") + total(f, "own_bytes") +
			total(f, "unranked_bytes") +
			total(f, "not_kept_library_full_bytes"),
			total(f, "read_bytes"));
	KUNIT_EXPECT_EQ(test, total(f, "read_count"), total(f, "outstanding"));
}

/* ==== Tests ==== */

static void report_totals(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct btlog_event ev = { .addr = 1, .size = 5 };

	record(f, 1, 10, 100, 0);
	record(f, 2, 3, 1, 0);
	if (btlog_wants(f->log, ev.size))
		btlog_record(f->log, &ev, btref_reason(BTR_LIBRARY_FULL));
	read_report(test);
	expect_sums(test);
	KUNIT_EXPECT_EQ(test, total(f, "read_count"), 14);
	KUNIT_EXPECT_EQ(test, total(f, "read_bytes"), 1008);
	KUNIT_EXPECT_EQ(test, total(f, "not_kept_library_full_count"), 1);
	KUNIT_EXPECT_EQ(test, total(f, "seen"), 14);
	KUNIT_EXPECT_EQ(test, total(f, "stacks"), 2);

	btlog_erase(f->log, 1);
	btlog_clear(f->log);
	read_report(test);
	expect_sums(test);
	KUNIT_EXPECT_EQ(test, total(f, "read_count"), 0);
	KUNIT_EXPECT_EQ(test, total(f, "erased"), 1);
	KUNIT_EXPECT_EQ(test, total(f, "cleared"), 13);
}

static void report_filters(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct btlog_filter *filter = &f->log->filter;

	record(f, 1, 10, 100, 0);
	record(f, 2, 3, 1, 0);
	filter->min_size = 2;
	read_report(test);
	expect_sums(test);
	KUNIT_EXPECT_EQ(test, total(f, "filtered_count"), 3);
	filter->min_size = 0;

	filter->min_age = 3600;
	read_report(test);
	KUNIT_EXPECT_EQ(test, total(f, "filtered_count"), 13);
	filter->min_age = U32_MAX;
	read_report(test);
	KUNIT_EXPECT_EQ(test, total(f, "filtered_count"), 13);
	filter->min_age = 0;

	filter->pid = current->pid;
	read_report(test);
	KUNIT_EXPECT_EQ(test, total(f, "filtered_count"), 0);
	filter->pid++;
	read_report(test);
	KUNIT_EXPECT_EQ(test, total(f, "filtered_count"), 13);
	filter->pid = 0;

	strscpy(filter->module, "no_such_module", sizeof(filter->module));
	read_report(test);
	expect_sums(test);
	KUNIT_EXPECT_EQ(test, total(f, "filtered_count"), 13);
	filter->module[0] = '\0';

	/* Without a source no record has a cache. */
	strscpy(filter->cache, "kmalloc-*", sizeof(filter->cache));
	read_report(test);
	KUNIT_EXPECT_EQ(test, total(f, "filtered_count"), 13);
	strscpy(filter->cache, "*", sizeof(filter->cache));
	read_report(test);
	KUNIT_EXPECT_EQ(test, total(f, "filtered_count"), 0);
}

/* A short list is the beginning of the long one, whatever the order. */
static void report_top_of_all(struct kunit *test)
{
	struct fixture *f = test->priv;
	u64 *all = kunit_kcalloc(test, 300, sizeof(*all), GFP_KERNEL);
	static const char * const keys[] = { "bytes", "count" };
	u32 i, n, sort;

	KUNIT_ASSERT_NOT_NULL(test, all);
	for (i = 0; i < 300; i++)
		record(f, i, 1 + i * 7919 % 31, 1 + i * 104729 % 997, 0);
	for (sort = BTLOG_SORT_BYTES; sort <= BTLOG_SORT_COUNT; sort++) {
		f->log->filter.sort = sort;
		f->log->filter.top_n = 0;
		read_report(test);
		KUNIT_ASSERT_EQ(test, total(f, "stacks_shown"), 300);
		for (i = 0; i < 300; i++)
			all[i] = value_of(f, keys[sort], i);
		for (i = 1; i < 300; i++)
			KUNIT_ASSERT_LE(test, all[i], all[i - 1]);
		for (n = 1; n < 300; n += 37) {
			f->log->filter.top_n = n;
			read_report(test);
			expect_sums(test);
			KUNIT_ASSERT_EQ(test, total(f, "stacks_shown"), n);
			for (i = 0; i < n; i++)
				KUNIT_ASSERT_EQ(test, all[i],
						value_of(f, keys[sort], i));
		}
	}
}

/* More operations than the library's stacks let expect: the table grows. */
static void report_grows(struct kunit *test)
{
	struct fixture *f = test->priv;
	u32 i, op;

	set_up_log(test, "type", "log");
	f->log->filter.top_n = 1;
	for (i = 0; i < 300; i++)
		for (op = 0; op <= BTREF_OP_MASK; op++)
			record(f, i, 1, 8, op);
	read_report(test);
	expect_sums(test);
	KUNIT_EXPECT_EQ(test, total(f, "stacks"), 300 * (BTREF_OP_MASK + 1));
	KUNIT_EXPECT_EQ(test, total(f, "read_count"),
			300 * (BTREF_OP_MASK + 1));
	KUNIT_EXPECT_NULL(test, strstr(f->m.buf, "# bounded"));
}

/*
 * With too little memory every stack with more than 1/(k + 1) of the records is
 * there with its exact count, and the rest is still in the totals.
 */
static void report_heavy_hitters(struct kunit *test)
{
	struct fixture *f = test->priv;
	u32 records = LIGHT * 3 + HEAVY * 100, i, round;

	KUNIT_ASSERT_GT(test, 100 * (BOUNDED + 1), records);
	for (round = 0; round < 3; round++)
		for (i = 0; i < LIGHT; i++)
			record(f, HEAVY + i, 1, 10, 0);
	for (i = 0; i < HEAVY; i++)
		record(f, i, 100 + i, 10, 0);
	report_alloc_max = SZ_64K;
	f->log->filter.sort = BTLOG_SORT_COUNT;
	read_report(test);
	KUNIT_EXPECT_NOT_NULL(test, strstr(f->m.buf, "# bounded"));
	expect_sums(test);
	for (i = 0; i < HEAVY; i++)
		KUNIT_EXPECT_EQ(test, value_of(f, "count", i),
				100 + HEAVY - 1 - i);
	/* What else is shown is exact as well. */
	for (; value_of(f, "count", i) != U64_MAX; i++)
		KUNIT_EXPECT_EQ(test, value_of(f, "count", i), 3);
	KUNIT_EXPECT_GT(test, total(f, "unranked_count"), 0);

	/* The same without shortage. */
	report_alloc_max = SIZE_MAX;
	read_report(test);
	KUNIT_EXPECT_NULL(test, strstr(f->m.buf, "# bounded"));
	KUNIT_EXPECT_EQ(test, total(f, "stacks"), HEAVY + LIGHT);
}

static void report_without_memory(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct report *r;

	record(f, 1, 10, 10, 0);
	report_alloc_max = 0;
	r = report_create(f->log);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(r), -ENOMEM);
	if (!IS_ERR(r))
		report_free(r);
}

/* Names of processes are anybody's. */
static void report_escapes(struct kunit *test)
{
	struct fixture *f = test->priv;
	char comm[TASK_COMM_LEN];

	get_task_comm(comm, current);
	strscpy(current->comm, "a\nb: \x1b[1m", sizeof(current->comm));
	record(f, 1, 1, 10, 0);
	read_report(test);
	KUNIT_EXPECT_NOT_NULL(test, strstr(f->m.buf, " (a\\nb: \\e[1m)\n"));
	strscpy(current->comm, comm, sizeof(current->comm));
}

/* A report holds on to what it shows. */
static void report_outlives_records(struct kunit *test)
{
	struct fixture *f = test->priv;
	u32 before;

	record(f, 1, 10, 10, 0);
	read_report(test);
	before = f->m.count;
	btlog_disable(f->log);
	f->m.count = 0;
	report_show(&f->m, f->report, 0);
	report_show(&f->m, f->report, 1);
	report_show(&f->m, f->report, 2);
	KUNIT_EXPECT_EQ(test, f->m.count, before);
}

static struct kunit_case report_cases[] = {
	KUNIT_CASE(report_totals),
	KUNIT_CASE(report_filters),
	KUNIT_CASE(report_top_of_all),
	KUNIT_CASE(report_grows),
	KUNIT_CASE(report_heavy_hitters),
	KUNIT_CASE(report_without_memory),
	KUNIT_CASE(report_escapes),
	KUNIT_CASE(report_outlives_records),
	{}
};

static struct kunit_suite report_suite = {
	.name = "btlog_report",
	.init = report_test_init,
	.exit = report_test_exit,
	.test_cases = report_cases,
};

kunit_test_suite(report_suite);
