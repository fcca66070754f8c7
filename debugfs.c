// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs.c - the files under /sys/kernel/debug/btlog
 *
 * Two tables, root_files[] and log_files[], say what files there are, who may
 * use them, what they are for and what a read and a write of them do. README
 * prints the tables.
 *
 * Everything that is read comes from the moment of open() or of the read; no
 * lock is held from one call to the next.
 *
 * Lifetime: an open file has a use of its log and, through its owner, of this
 * module. debugfs waits for calls under way when a file is removed and refuses
 * (-EIO) those that come later, so btlog_list_lock, which is held meanwhile,
 * must not be taken by a file in a log's directory. Files at the top may.
 *
 * Locks: m->lock of an open file > btlog_list_lock > log->lock. Calls of others
 * are made with none of them held, except m->lock.
 */
#include <linux/ctype.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/ratelimit.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/threads.h>
#include <linux/uaccess.h>

#include "internal.h"
#include "sources/source.h"

enum {
	INPUT_MAX	= PAGE_SIZE,	/* of one write, its NUL included */
	COMPLAINT_MAX	= 48,		/* of it shown in the kernel log */
	FOUND_MAX	= 64,		/* records shown by "find" */
	/* of the filters that are text, with the NUL */
	TEXT_MAX	= sizeof_field(struct btlog_filter, cache),
};

static_assert(sizeof_field(struct btlog_filter, module) == TEXT_MAX);

struct btlog_handle;

/**
 * struct btlog_file - a kind of file
 * @name: its name; in a log's directory, that of the setting it shows
 * @mode: 0400 for reports, 0600 for what can be written
 * @help: one line for README
 * @fops: of the whole file
 * @show: prints it
 * @write: takes one value, stripped of white space around it; 0 or -errno,
 *	complained about
 * @empty_ok: the value may be empty
 * @offset: filters: where the value is in struct btlog_filter
 * @max: filters: largest number, or size of the text with its NUL
 */
struct btlog_file {
	const char *name;
	umode_t mode;
	const char *help;
	const struct file_operations *fops;
	int (*show)(struct seq_file *m, struct btlog_handle *h);
	int (*write)(struct btlog_handle *h, char *value);
	bool empty_ok;
	size_t offset;
	u32 max;
};

/**
 * struct btlog_handle - an open file
 * @file: its kind
 * @log: whose; in use until the file is closed; NULL: a file at the top
 */
struct btlog_handle {
	const struct btlog_file *file;
	struct btlog *log;
};

static struct dentry *root;

/* The table of the files of logs, or of those at the top. */
static const struct btlog_file *file_table(bool of_log);

/* ==== Complaints ==== */

/* All that is ever said about a value that was refused. */
static int complain(const struct btlog_handle *h, const char *value,
		    const char *why, int err)
{
	pr_warn_ratelimited("%s%s%s%s: \"%*pE\": %s\n",
			    h->log ? "log " : "", h->log ? h->log->name : "",
			    h->log ? ": " : "", h->file->name,
			    (int)min_t(size_t, strlen(value), COMPLAINT_MAX),
			    value, why);
	return err;
}

static bool is_removed(const struct btlog *log)
{
	return log && READ_ONCE(log->removed);
}

/* ==== What every file does ==== */

/* The mode of an inode says nothing about its kind, so go by its name. */
static const struct btlog_file *find_file(const struct file *file, bool in_log)
{
	const struct btlog_file *f = file_table(in_log);
	const char *name = file_dentry(file)->d_name.name;

	while (f->name && strcmp(f->name, name))
		f++;
	return f->name ? f : NULL;
}

/* debugfs keeps the log alive until this returns. */
static int handle_init(struct btlog_handle *h, struct inode *inode,
		       struct file *file)
{
	struct btlog *log = inode->i_private;

	h->file = find_file(file, log);
	if (WARN_ON_ONCE(!h->file))
		return -ENOENT;
	if (is_removed(log))
		return -ENODEV;
	h->log = log ? btlog_use(log) : NULL;
	return 0;
}

static void handle_exit(struct btlog_handle *h)
{
	if (h->log)
		btlog_release(h->log);
}

static char *trim(char *text, size_t len)
{
	while (len && isspace(text[len - 1]))
		len--;
	text[len] = '\0';
	return skip_spaces(text);
}

/* Copy what was written; a line that doesn't come in one piece is refused. */
static char *get_input(const struct btlog_handle *h, const char __user *ubuf,
		       size_t count)
{
	char *text;

	if (count >= INPUT_MAX)
		return ERR_PTR(complain(h, "", "the value is too long",
					-E2BIG));
	text = memdup_user_nul(ubuf, count);
	if (!IS_ERR(text) && strlen(text) != count) {
		complain(h, text, "there is a NUL byte in it", -EINVAL);
		kfree(text);
		return ERR_PTR(-EINVAL);
	}
	return text;
}

static int write_value(struct btlog_handle *h, char *value)
{
	const char *c;

	if (!*value && !h->file->empty_ok)
		return complain(h, value, "want a value", -EINVAL);
	for (c = value; *c; c++)
		if (!isascii(*c) || !isprint(*c))
			return complain(h, value, "want printable ASCII",
					-EINVAL);
	if (is_removed(h->log))
		return complain(h, value, "the log is being removed", -ENODEV);
	return h->file->write(h, value);
}

static ssize_t write_text(struct btlog_handle *h, const char __user *ubuf,
			  size_t count)
{
	char *text = get_input(h, ubuf, count);
	int err;

	if (IS_ERR(text))
		return PTR_ERR(text);
	err = write_value(h, trim(text, count));
	kfree(text);
	return err ?: count;
}

/* ==== Files of one value or of few lines ==== */

static int plain_show(struct seq_file *m, void *v)
{
	struct btlog_handle *h = m->private;

	if (is_removed(h->log))
		return -ENODEV;
	return h->file->show(m, h);
}

static int plain_open(struct inode *inode, struct file *file)
{
	struct btlog_handle *h = kzalloc(sizeof(*h), GFP_KERNEL);
	int err;

	if (!h)
		return -ENOMEM;
	err = handle_init(h, inode, file);
	if (err)
		goto err_free;
	err = single_open(file, plain_show, h);
	if (err)
		goto err_exit;
	return 0;

err_exit:
	handle_exit(h);
err_free:
	kfree(h);
	return err;
}

static int plain_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;
	struct btlog_handle *h = m->private;

	handle_exit(h);
	kfree(h);
	return single_release(inode, file);
}

static ssize_t plain_write(struct file *file, const char __user *ubuf,
			   size_t count, loff_t *ppos)
{
	struct seq_file *m = file->private_data;
	struct btlog_handle *h = m->private;
	ssize_t n;

	if (!h->file->write)
		return -EPERM;
	if (*ppos)
		return complain(h, "", "want the value in one write", -EINVAL);
	n = write_text(h, ubuf, count);
	if (n > 0)
		*ppos += n;
	return n;
}

static const struct file_operations plain_fops = {
	.owner		= THIS_MODULE,
	.open		= plain_open,
	.release	= plain_release,
	.read		= seq_read,
	.write		= plain_write,
	.llseek		= seq_lseek,
};

/* ==== Reports ==== */

/**
 * struct report_handle - an open report
 * @h: the file
 * @nr: reports; of the log, or of all that are enabled
 * @reports: they
 * @current_report: what is being printed
 * @current_item: likewise
 */
struct report_handle {
	struct btlog_handle h;
	unsigned int nr;
	struct report **reports;
	struct report *current_report;
	u32 current_item;
};

static int add_report(struct report_handle *rh, struct btlog *log)
{
	struct report **reports, *r;

	reports = krealloc(rh->reports, (rh->nr + 1) * sizeof(*reports),
			   GFP_KERNEL);
	if (!reports)
		return -ENOMEM;
	rh->reports = reports;
	r = report_create(log);
	if (IS_ERR(r))
		return PTR_ERR(r);
	reports[rh->nr++] = r;
	return 0;
}

static int add_all_reports(struct report_handle *rh)
{
	struct btlog *log = NULL;
	int err;

	while ((log = btlog_next(log))) {
		if (!rcu_access_pointer(log->store))
			continue;
		err = add_report(rh, log);
		if (err) {
			btlog_release(log);
			return err;
		}
	}
	return 0;
}

static void free_reports(struct report_handle *rh)
{
	while (rh->nr)
		report_free(rh->reports[--rh->nr]);
	kfree(rh->reports);
}

static void *report_at(struct report_handle *rh, loff_t pos)
{
	unsigned int i;

	for (i = 0; i < rh->nr; i++) {
		u32 items = report_items(rh->reports[i]);

		if (pos < items) {
			rh->current_report = rh->reports[i];
			rh->current_item = pos;
			return rh;
		}
		pos -= items;
	}
	return NULL;
}

static void *report_seq_start(struct seq_file *m, loff_t *pos)
{
	struct report_handle *rh = m->private;

	if (is_removed(rh->h.log))
		return ERR_PTR(-ENODEV);
	if (!rh->nr && !*pos)
		return SEQ_START_TOKEN;
	return report_at(rh, *pos);
}

static void *report_seq_next(struct seq_file *m, void *v, loff_t *pos)
{
	return report_at(m->private, ++*pos);
}

static void report_seq_stop(struct seq_file *m, void *v)
{
}

static int report_seq_show(struct seq_file *m, void *v)
{
	struct report_handle *rh = m->private;

	if (v == SEQ_START_TOKEN)
		seq_puts(m, "# no log is enabled; see README\n");
	else
		report_show(m, rh->current_report, rh->current_item);
	return 0;
}

static const struct seq_operations report_seq_ops = {
	.start	= report_seq_start,
	.next	= report_seq_next,
	.stop	= report_seq_stop,
	.show	= report_seq_show,
};

static int report_open(struct inode *inode, struct file *file)
{
	struct report_handle *rh;
	int err;

	rh = __seq_open_private(file, &report_seq_ops, sizeof(*rh));
	if (!rh)
		return -ENOMEM;
	err = handle_init(&rh->h, inode, file);
	if (err)
		goto err_close;
	err = rh->h.log ? add_report(rh, rh->h.log) : add_all_reports(rh);
	if (err)
		goto err_free;
	return 0;

err_free:
	free_reports(rh);
	handle_exit(&rh->h);
err_close:
	seq_release_private(inode, file);
	return err;
}

static int report_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;
	struct report_handle *rh = m->private;

	free_reports(rh);
	handle_exit(&rh->h);
	return seq_release_private(inode, file);
}

static const struct file_operations report_fops = {
	.owner		= THIS_MODULE,
	.open		= report_open,
	.release	= report_release,
	.read		= seq_read,
	.llseek		= seq_lseek,
};

/* ==== find ==== */

/**
 * struct find_handle - an open "find"
 * @h: the file
 * @addr: the address that was written
 * @asked: whether one was
 * @nr: records found
 * @recs: they, each with a reference
 */
struct find_handle {
	struct btlog_handle h;
	u64 addr;
	bool asked;
	unsigned int nr;
	struct btlog_record_copy recs[FOUND_MAX];
};

static void forget_found(struct find_handle *fh)
{
	while (fh->nr)
		btref_put(fh->recs[--fh->nr].ref);
}

static void *find_seq_start(struct seq_file *m, loff_t *pos)
{
	struct find_handle *fh = m->private;

	if (is_removed(fh->h.log))
		return ERR_PTR(-ENODEV);
	return *pos <= fh->nr ? fh : NULL;
}

static void *find_seq_next(struct seq_file *m, void *v, loff_t *pos)
{
	struct find_handle *fh = m->private;

	return ++*pos <= fh->nr ? fh : NULL;
}

static int find_seq_show(struct seq_file *m, void *v)
{
	struct find_handle *fh = m->private;
	struct btlog *log = fh->h.log;

	if (m->index)
		report_record(m, log, &fh->recs[m->index - 1]);
	else if (fh->asked)
		seq_printf(m, "# btlog 1 find log=%s address=0x%llx found=%u%s\n\n",
			   log->name, fh->addr, fh->nr,
			   fh->nr == FOUND_MAX ? " (and perhaps more)" : "");
	else
		seq_puts(m, "# write an address and read on through the same open file:\n"
			    "#	exec 3<>find; echo 0xffff888012345678 >&3; cat <&3\n");
	return 0;
}

static const struct seq_operations find_seq_ops = {
	.start	= find_seq_start,
	.next	= find_seq_next,
	.stop	= report_seq_stop,
	.show	= find_seq_show,
};

static int find_open(struct inode *inode, struct file *file)
{
	struct find_handle *fh;
	int err;

	fh = __seq_open_private(file, &find_seq_ops, sizeof(*fh));
	if (!fh)
		return -ENOMEM;
	err = handle_init(&fh->h, inode, file);
	if (err)
		seq_release_private(inode, file);
	return err;
}

static int find_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;
	struct find_handle *fh = m->private;

	forget_found(fh);
	handle_exit(&fh->h);
	return seq_release_private(inode, file);
}

/* Addresses are often pasted without their 0x. */
static int write_find(struct btlog_handle *h, char *value)
{
	struct find_handle *fh = container_of(h, struct find_handle, h);
	int err;
	u64 addr;

	err = kstrtou64(value, 0, &addr);
	if (err == -EINVAL)
		err = kstrtou64(value, 16, &addr);
	if (err)
		return complain(h, value, "want an address", err);
	forget_found(fh);
	fh->nr = btlog_find_address(h->log, addr, fh->recs, FOUND_MAX);
	fh->addr = addr;
	fh->asked = true;
	return 0;
}

/* Each write is a question of its own, so reading starts over at the answer. */
static ssize_t find_write(struct file *file, const char __user *ubuf,
			  size_t count, loff_t *ppos)
{
	struct seq_file *m = file->private_data;
	struct find_handle *fh = m->private;
	ssize_t n;

	mutex_lock(&m->lock);
	n = write_text(&fh->h, ubuf, count);
	if (n > 0)
		*ppos = 0;
	mutex_unlock(&m->lock);
	return n;
}

static const struct file_operations find_fops = {
	.owner		= THIS_MODULE,
	.open		= find_open,
	.release	= find_release,
	.read		= seq_read,
	.write		= find_write,
	.llseek		= seq_lseek,
};

/* ==== Files of a log ==== */

static int show_setting(struct seq_file *m, struct btlog_handle *h)
{
	char value[BTLOG_SOURCE_LEN];
	int n;

	mutex_lock(&h->log->lock);
	n = btlog_get_setting(h->log, h->file->name, value);
	mutex_unlock(&h->log->lock);
	if (n < 0)
		return n;
	seq_printf(m, "%s\n", value);
	return 0;
}

/* btlog_set() complains itself. */
static int write_setting(struct btlog_handle *h, char *value)
{
	return btlog_set(h->log, h->file->name, value);
}

static int show_enable(struct seq_file *m, struct btlog_handle *h)
{
	seq_printf(m, "%d\n", !!rcu_access_pointer(h->log->store));
	return 0;
}

static int write_enable(struct btlog_handle *h, char *value)
{
	if (!strcmp(value, "1"))
		return btlog_enable(h->log);
	if (strcmp(value, "0"))
		return complain(h, value, "want 0 or 1", -EINVAL);
	btlog_disable(h->log);
	return 0;
}

static int show_clear(struct seq_file *m, struct btlog_handle *h)
{
	seq_puts(m, "# write anything to forget all records\n");
	return 0;
}

static int write_clear(struct btlog_handle *h, char *value)
{
	btlog_clear(h->log);
	return 0;
}

static int show_number(struct seq_file *m, struct btlog_handle *h)
{
	u32 *number = (void *)&h->log->filter + h->file->offset;

	seq_printf(m, "%u\n", READ_ONCE(*number));
	return 0;
}

static int write_number(struct btlog_handle *h, char *value)
{
	u32 *to = (void *)&h->log->filter + h->file->offset;
	u32 number;
	int err = kstrtou32(value, 10, &number);

	if (err == -EINVAL)
		return complain(h, value, "want a number", err);
	if (err || number > h->file->max)
		return complain(h, value, "the number is too large", -ERANGE);
	mutex_lock(&h->log->lock);
	WRITE_ONCE(*to, number);
	mutex_unlock(&h->log->lock);
	return 0;
}

static int show_text(struct seq_file *m, struct btlog_handle *h)
{
	mutex_lock(&h->log->lock);
	seq_printf(m, "%s\n", (char *)&h->log->filter + h->file->offset);
	mutex_unlock(&h->log->lock);
	return 0;
}

static int write_pattern(struct btlog_handle *h, char *value)
{
	if (strlen(value) >= h->file->max)
		return complain(h, value, "the text is too long", -E2BIG);
	mutex_lock(&h->log->lock);
	strscpy((char *)&h->log->filter + h->file->offset, value, h->file->max);
	mutex_unlock(&h->log->lock);
	return 0;
}

static int write_module(struct btlog_handle *h, char *value)
{
	char *c;

	for (c = value; *c; c++)
		if (!isalnum(*c) && *c != '_')
			return complain(h, value,
					"want a name as lsmod prints it",
					-EINVAL);
	return write_pattern(h, value);
}

static int show_sort(struct seq_file *m, struct btlog_handle *h)
{
	seq_printf(m, "%s\n",
		   report_sort_names[READ_ONCE(h->log->filter.sort)]);
	return 0;
}

static int write_sort(struct btlog_handle *h, char *value)
{
	int sort = match_string(report_sort_names, BTLOG_SORTS, value);

	if (sort < 0)
		return complain(h, value, "want bytes, count or age", -EINVAL);
	mutex_lock(&h->log->lock);
	WRITE_ONCE(h->log->filter.sort, sort);
	mutex_unlock(&h->log->lock);
	return 0;
}

static int show_stats(struct seq_file *m, struct btlog_handle *h)
{
	report_stats(m, h->log);
	return 0;
}

#define REPORT(_name, _show, _help)					\
	{ .name = _name, .mode = 0400, .help = _help,			\
	  .fops = &plain_fops, .show = _show }
#define CONTROL(_name, _show, _write, _help, ...)			\
	{ .name = _name, .mode = 0600, .help = _help,			\
	  .fops = &plain_fops, .show = _show, .write = _write, __VA_ARGS__ }
#define SETTING(_name, _help, ...)					\
	CONTROL(_name, show_setting, write_setting, _help, __VA_ARGS__)
#define NUMBER(_name, _member, _max, _help)				\
	CONTROL(_name, show_number, write_number, _help,		\
		.offset = offsetof(struct btlog_filter, _member), .max = _max)
#define TEXT(_name, _member, _write, _help)				\
	CONTROL(_name, show_text, _write, _help, .empty_ok = true,	\
		.offset = offsetof(struct btlog_filter, _member),	\
		.max = TEXT_MAX)

static const struct btlog_file log_files[] = {
	CONTROL("enable", show_enable, write_enable,
		"1 to start recording, 0 to stop and give the memory back"),
	SETTING("type",
		"\"hash\": what is outstanding, by address; \"log\": the last events"),
	SETTING("records", "how many records to keep at least"),
	SETTING("depth", "how many frames of a stack to keep at most"),
	SETTING("sample", "1 in how many events, or bytes:N, to record"),
	SETTING("cut",
		"\"irq\": stacks in interrupts end where the interrupt began; or \"none\""),
	SETTING("source", "what to record; see below", .empty_ok = true),
	CONTROL("clear", show_clear, write_clear,
		"write anything to forget all records", .empty_ok = true),
	{ .name = "top", .mode = 0400, .fops = &report_fops,
	  .help = "the report: stacks, most first, and totals" },
	CONTROL("sort", show_sort, write_sort,
		"order of the report: bytes, count or age"),
	NUMBER("top_n", top_n, BTLOG_MAX_RECORDS, "stacks in the report; 0: all"),
	NUMBER("min_age", min_age, U32_MAX / BTLOG_TIME_HZ,
	       "only records at least that many seconds old"),
	NUMBER("min_size", min_size, U32_MAX,
	       "only records of at least that many bytes"),
	NUMBER("pid", pid, PID_MAX_LIMIT, "only records of that process; 0: all"),
	TEXT("cache", cache, write_pattern,
	     "only records of caches that match, as kmalloc-*; empty: all"),
	TEXT("module", module, write_module,
	     "only stacks with a frame of that module; empty: all"),
	{ .name = "find", .mode = 0600, .fops = &find_fops, .write = write_find,
	  .help = "write an address, read its records, newest first" },
	REPORT("stats", show_stats, "settings, counters and memory"),
	{}
};

/* ==== Files at the top ==== */

static int show_logs(struct seq_file *m, struct btlog_handle *h)
{
	struct btlog *log = NULL;

	seq_printf(m, "# %s; there are:\n", h->file->help);
	while ((log = btlog_next(log)))
		seq_printf(m, "%s %s\n", log->name,
			   rcu_access_pointer(log->store) ?
			   "enabled" : "disabled");
	return 0;
}

/* btlog_create() complains itself. */
static int write_new(struct btlog_handle *h, char *value)
{
	struct btlog *log = btlog_create(value);

	if (IS_ERR(log))
		return PTR_ERR(log);
	btlog_release(log);
	return 0;
}

static int write_remove(struct btlog_handle *h, char *value)
{
	struct btlog *log = btlog_find(value);

	if (!log)
		return complain(h, value, "there is no such log", -ENOENT);
	btlog_remove(log);
	btlog_release(log);
	return 0;
}

static int show_library(struct seq_file *m, struct btlog_handle *h)
{
	btlib_show(m);
	unwind_show(m);
	return 0;
}

static int show_images(struct seq_file *m, struct btlog_handle *h)
{
	image_show(m);
	return 0;
}

static void print_files(struct seq_file *m, const struct btlog_file *file,
			const char *prefix)
{
	for (; file->name; file++)
		seq_printf(m, "  %s%-*s%c  %s\n", prefix,
			   16 - (int)strlen(prefix), file->name,
			   file->mode & 0200 ? 'w' : ' ', file->help);
}

static int show_readme(struct seq_file *m, struct btlog_handle *h)
{
	const struct btlog_source * const *source;

	seq_puts(m, "btlog - who holds the kernel's memory, by stack\n\n"
		 "  # echo leaks > new\n"
		 "  # echo slab > leaks/source\n"
		 "  # echo 1 > leaks/enable\n"
		 "  # cat leaks/top\n\n"
		 "Files; those with a w can be written:\n\n");
	print_files(m, file_table(false), "");
	seq_puts(m, "\nFiles of each log; type to source only while it is disabled:\n\n");
	print_files(m, file_table(true), "LOG/");
	seq_puts(m, "\nSources:\n\n");
	for (source = btlog_sources; *source; source++)
		seq_printf(m, "  %-16s   %s\n", (*source)->name,
			   (*source)->help);
	seq_puts(m, "\nWhat is refused gets an error, and a line in the kernel log says why.\n");
	return 0;
}

static const struct btlog_file root_files[] = {
	REPORT("README", show_readme, "this text"),
	CONTROL("new", show_logs, write_new, "write a name to make a log"),
	CONTROL("remove", show_logs, write_remove,
		"write a name to remove that log"),
	{ .name = "top", .mode = 0400, .fops = &report_fops,
	  .help = "the reports of all enabled logs" },
	REPORT("library", show_library, "the stacks: how many, in what memory"),
	REPORT("images", show_images, "the kernel and modules that stacks lie in"),
	{}
};

static const struct btlog_file *file_table(bool of_log)
{
	return of_log ? log_files : root_files;
}

/* ==== Beginning and end ==== */

static void create_files(struct dentry *dir, const struct btlog_file *file,
			 struct btlog *log)
{
	for (; file->name; file++)
		debugfs_create_file(file->name, file->mode, dir, log,
				    file->fops);
}

void debugfs_add_log(struct btlog *log)
{
	if (IS_ERR_OR_NULL(root))
		return;
	log->files = debugfs_create_dir(log->name, root);
	create_files(log->files, log_files, log);
}

/* After debugfs_exit() there is nothing left to remove. */
void debugfs_remove_log(struct btlog *log)
{
	if (!IS_ERR_OR_NULL(root))
		debugfs_remove(log->files);
}

/*
 * Logs may be there already; theirs come first, as nobody can make or remove
 * one meanwhile. Without debugfs there are no files, and that is all.
 */
int debugfs_init(void)
{
	struct btlog *log = NULL;

	root = debugfs_create_dir("btlog", NULL);
	while ((log = btlog_next(log)))
		debugfs_add_log(log);
	create_files(root, root_files, NULL);
	return 0;
}

void debugfs_exit(void)
{
	debugfs_remove(root);
	root = NULL;
}
