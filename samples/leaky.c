// SPDX-License-Identifier: GPL-2.0
/*
 * leaky.c - a module that leaks from one place, for btlog to find
 *
 * A work item calls leak_one() until @count objects are lost, some every few
 * milliseconds. A timer and a thread allocate and free meanwhile as one should,
 * so that there is something to tell the leak from.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

enum {
	BATCH		= 64,	/* objects per run of the work item */
	PERIOD_MS	= 10,
};

static unsigned int count = 4096;
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "objects to leak");

static unsigned int size = 64;
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "bytes of each, at least 16");

static bool free;
module_param(free, bool, 0644);
MODULE_PARM_DESC(free, "give the objects back when the module is removed");

static LIST_HEAD(lost);		/* the work item's, then leaky_exit()'s */
static unsigned int leaked;	/* likewise */

static struct task_struct *thread;
static void *held_by_timer;	/* the timer's, then leaky_exit()'s */

static noinline bool leak_one(void)
{
	struct list_head *object = kmalloc(size, GFP_KERNEL);

	if (!object)
		return false;
	list_add_tail(object, &lost);
	return true;
}

static void leaky_work(struct work_struct *work)
{
	unsigned int goal = min(leaked + BATCH, count);

	while (leaked < goal && leak_one())
		leaked++;
	if (leaked < count)
		schedule_delayed_work(to_delayed_work(work),
				      msecs_to_jiffies(PERIOD_MS));
	else
		pr_info("leaked %u objects of %u bytes\n", leaked, size);
}

static DECLARE_DELAYED_WORK(work, leaky_work);

static void tidy_timer(struct timer_list *timer)
{
	kfree(held_by_timer);
	held_by_timer = kmalloc(128, GFP_ATOMIC);
	mod_timer(timer, jiffies + msecs_to_jiffies(PERIOD_MS));
}

static DEFINE_TIMER(timer, tidy_timer);

static int tidy_thread(void *unused)
{
	while (!kthread_should_stop()) {
		void *object = kmalloc(256, GFP_KERNEL);

		msleep(PERIOD_MS);
		kfree(object);
	}
	return 0;
}

static int __init leaky_init(void)
{
	size = max_t(unsigned int, size, sizeof(struct list_head));
	thread = kthread_run(tidy_thread, NULL, "leaky");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	mod_timer(&timer, jiffies);
	schedule_delayed_work(&work, 0);
	return 0;
}

static void free_lost(void)
{
	struct list_head *object, *next;

	list_for_each_safe(object, next, &lost)
		kfree(object);
}

static void __exit leaky_exit(void)
{
	cancel_delayed_work_sync(&work);
	del_timer_sync(&timer);
	kthread_stop(thread);
	kfree(held_by_timer);
	if (free)
		free_lost();
}

module_init(leaky_init);
module_exit(leaky_exit);
MODULE_DESCRIPTION("A module with a leak");
MODULE_LICENSE("GPL");
