/* SPDX-License-Identifier: GPL-2.0 */
/*
 * twin.h - modules with the same text, but for the sizes of their frames
 *
 * Test only. Loaded one after the other they often lie at the same address,
 * where what was known of the one is wrong for the other. All of their text
 * allocates: init, exit, and what they call.
 */
#include <linux/module.h>
#include <linux/slab.h>

static noinline void twin_leaf(void)
{
	kfree(kmalloc(64, GFP_KERNEL));
	barrier();
}

static noinline void twin_middle(void)
{
	char room[TWIN_ROOM];

	barrier_data(room);
	twin_leaf();
	barrier_data(room);
}

static noinline void twin_outer(unsigned int n)
{
	char room[TWIN_ROOM + 8];

	while (n--) {
		barrier_data(room);
		twin_middle();
	}
}

static noinline __init void twin_init_only(void)
{
	char room[TWIN_ROOM];

	barrier_data(room);
	twin_leaf();
	twin_outer(10);
	barrier_data(room);
}

static int __init twin_init(void)
{
	twin_init_only();
	twin_outer(10);
	return 0;
}

static void __exit twin_exit(void)
{
	twin_outer(10);
}

module_init(twin_init);
module_exit(twin_exit);
MODULE_DESCRIPTION("Test: a module like its twin, but for the sizes of its frames");
MODULE_LICENSE("GPL");
