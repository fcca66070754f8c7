// SPDX-License-Identifier: GPL-2.0
/*
 * report.c - what a log holds: read, summed up by stack, printed
 *
 * report_create() visits the records of a log with a tally (tally.h). A visitor
 * can't allocate, so if the table turns out too small, the log is read again
 * with a larger one. If there is no memory for that, two passes over a small
 * table find and count the stacks with the largest shares.
 *
 * The sums of a report are exact for the records that it read. Those that came
 * or went meanwhile may or may not be among them.
 *
 * Locks: log->lock while settings are copied or printed; none while records are
 * summed up, ranked or printed.
 */
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "sources/source.h"
#include "tally.h"

enum {
	FORMAT_VERSION	= 1,
	HEADER_LEN	= 1024,
	MIN_BITS	= 8,	/* entries of the smallest table, log2 */
	GROW_BITS	= 2,
	DETAILS_SHOWN	= 4,
};

#define NS_PER_TICK ((u64)NSEC_PER_SEC / BTLOG_TIME_HZ)

/**
 * struct report - a report that was read and waits to be printed
 * @log: in use
 * @set: its settings when it was read
 * @header: first line
 * @now: ktime_get_ns() when it was read
 * @tally: the sums
 * @counts: the log's counters
 */
struct report {
	struct btlog *log;
	struct btlog_settings set;
	char header[HEADER_LEN];
	u64 now;
	struct tally tally;
	u64 counts[BTC_NR];
};

/* ==== Reading a log ==== */

#if IS_ENABLED(CONFIG_KUNIT)
/* KUnit makes memory scarce. */
size_t report_alloc_max = SIZE_MAX;
EXPORT_SYMBOL_FOR_TESTS(report_alloc_max);
#else
#define report_alloc_max SIZE_MAX
#endif

/* Rather no report than a process killed for it, hence __GFP_NORETRY. */
static void *alloc_table(unsigned int bits)
{
	size_t size = tally_size(bits);

	if (size > report_alloc_max)
		return NULL;
	return kvmalloc(size, GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY);
}

static void free_table(struct tally *t)
{
	tally_put(t);
	kvfree(t->entries);
	t->entries = NULL;
}

static void read_pass(struct tally *t, enum tally_pass pass)
{
	tally_start(t, pass);
	btlog_visit_records(t->log, tally_add, t);
}

static int read_bounded(struct tally *t)
{
	void *mem;

	free_table(t);
	mem = alloc_table(MIN_BITS);
	if (!mem)
		return -ENOMEM;
	tally_init(t, mem, MIN_BITS);
	read_pass(t, TALLY_CANDIDATES);
	read_pass(t, TALLY_RECOUNT);
	return 0;
}

/*
 * Room for all stacks that the library holds, but not for more than there are
 * records. It is too small only if a log has several operations per stack, or
 * if new stacks come meanwhile.
 */
static unsigned int first_bits(struct btlog *log)
{
	u64 stacks = min_t(u64, btlog_outstanding(log), btlib_stacks());

	return max(ilog2(stacks | 1) + 1, MIN_BITS);
}

static int read_records(struct tally *t)
{
	unsigned int bits = first_bits(t->log);
	void *mem;

	while ((mem = alloc_table(bits))) {
		free_table(t);
		tally_init(t, mem, bits);
		read_pass(t, TALLY_EXACT);
		if (!t->short_of_entries && !t->short_of_details)
			return 0;
		bits += GROW_BITS;
	}
	/* Processes and caches are dispensable, and shown to be incomplete. */
	if (t->entries && !t->short_of_entries)
		return 0;
	return read_bounded(t);
}

const char * const report_sort_names[] = {
	[BTLOG_SORT_BYTES] = "bytes",
	[BTLOG_SORT_COUNT] = "count",
	[BTLOG_SORT_AGE] = "age",
};

static_assert(ARRAY_SIZE(report_sort_names) == BTLOG_SORTS);

static int print_settings(char *buf, size_t len, struct btlog *log)
{
	char value[BTLOG_SOURCE_LEN];
	const char * const *key;
	int n = 0;

	for (key = btlog_setting_names; *key; key++) {
		if (btlog_get_setting(log, *key, value) < 0)
			value[0] = '\0';
		n += scnprintf(buf + n, len - n, " %s=%*pE", *key,
			       (int)strlen(value), value);
	}
	return n;
}

static void print_header(struct report *r)
{
	struct btlog *log = r->log;
	const struct btlog_filter *f = &log->filter;
	char *buf = r->header;
	int n;

	n = scnprintf(buf, HEADER_LEN, "# btlog %d top log=%s enabled=%d",
		      FORMAT_VERSION, log->name,
		      !!rcu_access_pointer(log->store));
	n += print_settings(buf + n, HEADER_LEN - n, log);
	scnprintf(buf + n, HEADER_LEN - n,
		  " min_age=%u min_size=%u pid=%u cache=%*pE module=%*pE sort=%s top_n=%u",
		  f->min_age, f->min_size, f->pid, (int)strlen(f->cache),
		  f->cache, (int)strlen(f->module), f->module,
		  report_sort_names[f->sort], f->top_n);
}

static void read_settings(struct report *r)
{
	struct btlog *log = r->log;

	mutex_lock(&log->lock);
	print_header(r);
	r->set = log->set;
	r->tally.log = log;
	r->tally.source = log->source;
	r->tally.filter = log->filter;
	r->tally.sampled = log->set.sample > 1;
	mutex_unlock(&log->lock);
	r->now = ktime_get_ns();
}

/* Was the log switched off and changed while it was read? */
static bool settings_changed(struct report *r)
{
	bool changed;

	mutex_lock(&r->log->lock);
	changed = memcmp(&r->set, &r->log->set, sizeof(r->set));
	mutex_unlock(&r->log->lock);
	return changed;
}

/*
 * What came out of events is read before what went in, so that the differences
 * never come out negative while recording goes on.
 */
static void read_counts(struct btlog *log, u64 *counts)
{
	int i;

	for (i = BTC_NR - 1; i >= 0; i--)
		counts[i] = btlog_count(log, i);
}

struct report *report_create(struct btlog *log)
{
	struct report *r = kvzalloc(sizeof(*r), GFP_KERNEL);
	int tries = 3;

	if (!r)
		return ERR_PTR(-ENOMEM);
	r->log = btlog_use(log);
	do {
		free_table(&r->tally);
		read_settings(r);
		if (read_records(&r->tally)) {
			report_free(r);
			return ERR_PTR(-ENOMEM);
		}
	} while (settings_changed(r) && --tries);
	read_counts(log, r->counts);
	tally_rank(&r->tally);
	return r;
}
EXPORT_SYMBOL_FOR_TESTS(report_create);

void report_free(struct report *r)
{
	free_table(&r->tally);
	btlog_release(r->log);
	kvfree(r);
}
EXPORT_SYMBOL_FOR_TESTS(report_free);

/* ==== Printing ==== */

void report_stack(struct seq_file *m, btref_t ref)
{
	u32 frames[BTREF_MAX_FRAMES];
	char symbol[IMAGE_SYMBOL_LEN];
	unsigned int i, n;
	bool truncated;

	n = btref_decode(ref, frames, &truncated);
	for (i = 0; i < n; i++) {
		image_symbol(symbol, frames[i]);
		seq_printf(m, " %s\n", symbol);
	}
	if (n && truncated)
		seq_puts(m, " ...\n");
}

static void show_amount(struct seq_file *m, const char *prefix,
			const struct amount *a)
{
	seq_printf(m, "%scount: %llu\n", prefix, a->count);
	seq_printf(m, "%sbytes: %llu\n", prefix, a->bytes);
}

/* What the records of a sampled log stand for. */
static void show_estimate(struct seq_file *m, const struct report *r,
			  const char *prefix, const struct amount *a)
{
	const u64 half = 1 << (TALLY_WEIGHT_BITS - 1);

	if (!r->tally.sampled)
		return;
	seq_printf(m, "%sestimated_count: %llu\n", prefix,
		   (a->weight + half) >> TALLY_WEIGHT_BITS);
	seq_printf(m, "%sestimated_bytes: %llu\n", prefix, a->weighted_bytes);
}

static void show_op(struct seq_file *m, btref_t ref)
{
	u32 op = ref & BTREF_OP_MASK;

	if (op == BTLOG_OP_ALLOC)
		seq_puts(m, "op: alloc\n");
	else if (op == BTLOG_OP_FREE)
		seq_puts(m, "op: free\n");
	else
		seq_printf(m, "op: %u\n", op);
}

/*
 * The task that a record's pid means, or NULL if it is gone: one that started
 * after the record only got the same number.
 */
static struct task_struct *find_task(u32 pid, u64 now, u32 age)
{
	struct task_struct *task;

	task = pid_task(find_pid_ns(pid, &init_pid_ns), PIDTYPE_PID);
	/* A record's time is that of the last timer tick, rounded down. */
	if (task && task->start_time + age * NS_PER_TICK > now + 2 * NS_PER_TICK)
		return NULL;
	return task;
}

static void show_process(struct seq_file *m, u32 pid, u64 now, u32 age)
{
	char comm[TASK_COMM_LEN] = "";
	struct task_struct *task;

	rcu_read_lock();
	task = find_task(pid, now, age);
	if (task)
		get_task_comm(comm, task);
	rcu_read_unlock();
	seq_printf(m, "%u", pid);
	if (!pid)
		seq_puts(m, " (idle)");
	else if (task)
		seq_printf(m, " (%*pE)", (int)strlen(comm), comm);
}

static void show_tag(struct seq_file *m, const struct btlog_source *source,
		     u16 tag)
{
	char buf[TALLY_NAME_LEN];
	const char *name = tally_tag_name(source, tag, buf);

	if (name[0])
		seq_printf(m, "%*pE", (int)strlen(name), name);
	else
		seq_printf(m, "#%u", tag);
}

static void show_detail(struct seq_file *m, const struct report *r,
			enum tally_detail_kind kind, const struct tally_detail *d)
{
	if (kind == TALLY_PID)
		show_process(m, d->value, r->now, d->age_max);
	else
		show_tag(m, r->tally.source, d->value);
}

static void show_details(struct seq_file *m, const struct report *r,
			 const struct tally_entry *e, enum tally_detail_kind kind)
{
	static const char * const keys[] = { "pid", "cache" };
	const struct tally_detail *best[DETAILS_SHOWN];
	u32 i, n = tally_top_details(&r->tally, e->first[kind], best,
				     DETAILS_SHOWN);

	if (!n)
		return;
	seq_printf(m, "%s: ", keys[kind]);
	for (i = 0; i < min_t(u32, n, DETAILS_SHOWN); i++) {
		if (i)
			seq_puts(m, ", ");
		show_detail(m, r, kind, best[i]);
		if (n > 1 || e->lost[kind])
			seq_printf(m, " x%u", best[i]->count);
	}
	if (e->lost[kind])
		seq_puts(m, ", and others");
	else if (n > DETAILS_SHOWN)
		seq_printf(m, ", and %u more", n - DETAILS_SHOWN);
	seq_putc(m, '\n');
}

static void show_entry(struct seq_file *m, const struct report *r,
		       const struct tally_entry *e)
{
	if (r->set.type == BTLOG_LOG)
		show_op(m, e->ref);
	show_amount(m, "", &e->sum);
	show_estimate(m, r, "", &e->sum);
	seq_printf(m, "age_s: %u..%u\n", e->age_min / BTLOG_TIME_HZ,
		   e->age_max / BTLOG_TIME_HZ);
	show_details(m, r, e, TALLY_PID);
	show_details(m, r, e, TALLY_TAG);
	report_stack(m, e->ref);
	seq_putc(m, '\n');
}

static void show_header(struct seq_file *m, const struct report *r)
{
	seq_printf(m, "%s\n", r->header);
	if (r->tally.pass == TALLY_RECOUNT)
		seq_printf(m, "# bounded: memory is short; only stacks with more than 1/%u of the records are sure to be here\n",
			   (1U << r->tally.bits) + 1);
	seq_putc(m, '\n');
}

static void show_part(struct seq_file *m, const char *prefix,
		      const struct amount *part, struct amount *all)
{
	show_amount(m, prefix, part);
	amount_add(all, part);
}

static void show_not_kept(struct seq_file *m, const struct tally *t,
			  struct amount *all)
{
	char prefix[40];
	int i;

	for (i = 0; i < BTR_NR; i++) {
		if (!t->not_kept[i].count)
			continue;
		snprintf(prefix, sizeof(prefix), "not_kept_%s_",
			 btlog_reason_name(i));
		show_part(m, prefix, &t->not_kept[i], all);
	}
}

static u64 show_refusals(struct seq_file *m, const u64 *counts, bool all)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < BTR_NR; i++) {
		u64 n = counts[BTC_REFUSED + i];

		sum += n;
		if (n || all)
			seq_printf(m, "refused_%s: %llu\n",
				   btlog_reason_name(i), n);
	}
	return sum;
}

static void show_counts(struct seq_file *m, const u64 *counts, bool all)
{
	u64 refused;
	int i;

	for (i = 0; i < BTC_REFUSED; i++)
		seq_printf(m, "%s: %llu\n", btlog_counter_names[i], counts[i]);
	refused = show_refusals(m, counts, all);
	seq_printf(m, "in_flight: %llu\n",
		   counts[BTC_SEEN] - counts[BTC_RECORDED] - refused);
	seq_printf(m, "outstanding: %llu\n",
		   counts[BTC_RECORDED] - counts[BTC_ERASED] -
		   counts[BTC_REPLACED] - counts[BTC_OVERWRITTEN] -
		   counts[BTC_CLEARED]);
}

static void show_totals(struct seq_file *m, const struct report *r)
{
	const struct tally *t = &r->tally;
	struct amount all = {};

	seq_printf(m, "# totals of %s\n", r->log->name);
	seq_printf(m, "stacks: %u\n", t->nr);
	seq_printf(m, "stacks_shown: %u\n", t->nr_ranked);
	show_part(m, "shown_", &t->shown, &all);
	show_estimate(m, r, "shown_", &t->shown);
	show_part(m, "below_top_", &t->below_top, &all);
	show_part(m, "filtered_", &t->filtered, &all);
	show_part(m, "own_", &t->own, &all);
	if (t->pass == TALLY_RECOUNT)
		show_part(m, "unranked_", &t->unranked, &all);
	show_not_kept(m, t, &all);
	show_amount(m, "read_", &all);
	show_estimate(m, r, "read_", &all);
	show_counts(m, r->counts, false);
	seq_putc(m, '\n');
}

u32 report_items(const struct report *r)
{
	return r->tally.nr_ranked + 2;
}
EXPORT_SYMBOL_FOR_TESTS(report_items);

void report_show(struct seq_file *m, const struct report *r, u32 item)
{
	if (!item)
		show_header(m, r);
	else if (item <= r->tally.nr_ranked)
		show_entry(m, r, r->tally.ranked[item - 1]);
	else
		show_totals(m, r);
}
EXPORT_SYMBOL_FOR_TESTS(report_show);

/* ==== Records one by one, and statistics ==== */

void report_record(struct seq_file *m, struct btlog *log,
		   const struct btlog_record_copy *rec)
{
	const struct btlog_source *source = READ_ONCE(log->source);

	show_op(m, rec->ref);
	seq_printf(m, "bytes: %u\n", rec->size);
	seq_printf(m, "age_s: %u.%02u\n", rec->age / BTLOG_TIME_HZ,
		   rec->age % BTLOG_TIME_HZ);
	seq_puts(m, "pid: ");
	show_process(m, rec->pid, ktime_get_ns(), rec->age);
	seq_printf(m, "\ncpu: %u\n", rec->cpu);
	if (rec->tag) {
		seq_puts(m, "cache: ");
		show_tag(m, source, rec->tag);
		seq_putc(m, '\n');
	}
	if (btref_is_stack(rec->ref))
		report_stack(m, rec->ref);
	else
		seq_printf(m, "not_kept: %s\n",
			   btlog_reason_name(tally_reason(rec->ref)));
	seq_putc(m, '\n');
}

static void show_settings(struct seq_file *m, struct btlog *log)
{
	char value[BTLOG_SOURCE_LEN];
	const char * const *key;

	seq_printf(m, "enabled: %d\n", !!rcu_access_pointer(log->store));
	for (key = btlog_setting_names; *key; key++) {
		if (btlog_get_setting(log, *key, value) < 0)
			continue;
		seq_printf(m, "%s: %*pE\n", *key, (int)strlen(value), value);
	}
}

void report_stats(struct seq_file *m, struct btlog *log)
{
	u64 counts[BTC_NR];

	mutex_lock(&log->lock);
	show_settings(m, log);
	read_counts(log, counts);
	show_counts(m, counts, true);
	seq_printf(m, "memory_bytes: %zu\n", btlog_memory(log));
	if (log->source && log->source->show)
		log->source->show(m, log);
	mutex_unlock(&log->lock);
}
