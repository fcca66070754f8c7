// SPDX-License-Identifier: GPL-2.0
/*
 * client.c - a module that uses btlog.h: who holds references to my objects?
 *
 * Each user of an object takes a ticket, which is what the log keeps by
 * address: taking one records the stack, giving it back erases it. What is left
 * in /sys/kernel/debug/btlog/client/top are the references that somebody holds,
 * by who took them. One user forgets to give his back.
 */
#include <linux/err.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "../btlog.h"

/**
 * struct ticket - a reference, as its holder has it
 * @object: what it is a reference to
 */
struct ticket {
	void *object;
};

static struct btlog *client_log;
static struct ticket forgotten;
static int object;

static noinline void take(struct ticket *ticket)
{
	struct btlog_event ev = {
		.addr = (unsigned long)ticket,
		.size = sizeof(object),
		.op = BTLOG_OP_ALLOC,
	};

	ticket->object = &object;
	/* Here, in process context, the library may wait for memory. */
	if (btlog_wants(client_log, ev.size))
		btlog_record(client_log, &ev, btref_get(_RET_IP_, 16, 0));
}

static noinline void give_back(struct ticket *ticket)
{
	btlog_erase(client_log, (unsigned long)ticket);
	ticket->object = NULL;
}

static noinline void careful_user(void)
{
	struct ticket ticket;

	take(&ticket);
	give_back(&ticket);
}

static noinline void careless_user(void)
{
	take(&forgotten);
	barrier();	/* no tail call: this function is to be in the stack */
}

static int __init client_init(void)
{
	int err;

	client_log = btlog_create("client");
	if (IS_ERR(client_log))
		return PTR_ERR(client_log);
	err = btlog_set(client_log, "records", "1024");
	if (!err)
		err = btlog_enable(client_log);
	if (err) {
		btlog_remove(client_log);
		btlog_release(client_log);
		return err;
	}
	careful_user();
	careless_user();
	return 0;
}

static void __exit client_exit(void)
{
	btlog_remove(client_log);
	btlog_release(client_log);
}

module_init(client_init);
module_exit(client_exit);
MODULE_DESCRIPTION("Sample user of btlog's kernel API");
MODULE_LICENSE("GPL");
