/* SPDX-License-Identifier: GPL-2.0 */
/*
 * log.h - what the hooks do themselves about an event that leaves no record
 *
 * In a log that samples, which stays on for good, these are nearly all events.
 * So what decides that is inlined into the hooks, and no call is made.
 */
#ifndef BTLOG_LOG_H
#define BTLOG_LOG_H

#include <linux/hash.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>

#include "internal.h"

/**
 * struct btlog_index - the hash table of a HASH log
 * @heads: I: chains of records; 0: empty. Changed under the lock of a shard
 * @shift: I: what is above it in an address's hash is its bucket
 */
struct btlog_index {
	u16 *heads;
	u32 shift;
};

static __always_inline u32 btlog_bucket(const struct btlog_index *index,
					u64 addr)
{
	return addr * GOLDEN_RATIO_64 >> index->shift;
}

static __always_inline void btlog_count_event(struct btlog *log,
					      enum btlog_counter counter)
{
	this_cpu_inc(log->cpu->counts[counter]);
}

/**
 * btlog_lacks() - is it certain that a log has no record of an address?
 * @log: the log
 * @addr: what is being freed: nobody is about to record it
 *
 * Context: Any, NMI included; preemption off.
 * Return: true: btlog_erase() would count it as untracked, and do no more.
 */
static __always_inline bool btlog_lacks(const struct btlog *log, u64 addr)
{
	const struct btlog_index *index = rcu_dereference_sched(log->index);

	return likely(index) &&
	       !READ_ONCE(index->heads[btlog_bucket(index, addr)]);
}

/* Set out for the next sample. */
void btlog_next_sample(struct btlog *log);

/**
 * btlog_skips() - the first half of btlog_wants(), inlined
 * @log: the log
 * @size: of the element, bytes
 *
 * Context: Any, NMI included.
 * Return: true: the event was counted and no record is to be made. False:
 * btlog_drawn() has to follow, then capture and btlog_record().
 */
static __always_inline bool btlog_skips(struct btlog *log, size_t size)
{
	long step = log->set.sample_bytes ? -(long)size : -1;

	btlog_count_event(log, BTC_SEEN);
	if (unlikely(!rcu_access_pointer(log->store))) {
		btlog_count_event(log, BTC_REFUSED + BTR_DISABLED);
		return true;
	}
	if (log->set.sample == 1 ||
	    this_cpu_add_return(log->cpu->countdown, step) <= 0)
		return false;
	btlog_count_event(log, BTC_REFUSED + BTR_SAMPLED_OUT);
	return true;
}

static __always_inline void btlog_drawn(struct btlog *log)
{
	if (log->set.sample != 1)
		btlog_next_sample(log);
}

#endif
