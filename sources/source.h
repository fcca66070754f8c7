/* SPDX-License-Identifier: GPL-2.0 */
/*
 * source.h - what a source of events looks like to the logs
 *
 * A source hooks into the kernel, takes stacks with btref_get() and feeds the
 * logs that are attached to it through btlog_wants(), btlog_record() and
 * btlog_erase(). Its hooks exist only while a log is attached. It keeps its own
 * list of attached logs and may have what it likes in log->source_private.
 */
#ifndef BTLOG_SOURCE_H
#define BTLOG_SOURCE_H

#include "../internal.h"

/**
 * struct btlog_source - a source of events
 * @name: what comes before the ':' in a log's source setting
 * @help: one line for the README file
 * @check: is @arg (what comes after the ':', or "") well-formed? On error the
 *	source prints what is wrong and returns -EINVAL or -ERANGE
 * @attach: start to feed the log; log->store is ready. Process context, log's
 *	mutex held. 0 or -errno, with a line that says why
 * @detach: stop to feed; on return no event in flight knows the log any more
 * @tag_name: name of a record's tag, "" for 0 and unknown ones; @buf has
 *	@len bytes. Any context but NMI. May be NULL
 * @show: "key: value" lines of the source itself for a log's stats. May be NULL
 */
struct btlog_source {
	const char *name;
	const char *help;
	int (*check)(const char *arg);
	int (*attach)(struct btlog *log, const char *arg);
	void (*detach)(struct btlog *log);
	const char *(*tag_name)(u16 tag, char *buf, size_t len);
	void (*show)(struct seq_file *m, struct btlog *log);
};

extern const struct btlog_source slab_source;

/* All sources, NULL-terminated; in log.c. */
extern const struct btlog_source * const btlog_sources[];

#endif
