// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - beginning and end of the module
 */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "internal.h"

static char *logs = "";
module_param(logs, charp, 0444);
MODULE_PARM_DESC(logs, "logs to start with: NAME[:KEY=VALUE[,...]][;...], for instance leaks:source=slab,records=65536");

static int __init btlog_module_init(void)
{
	int err;

	err = btlib_init();
	if (err)
		return err;
	err = image_init();
	if (err)
		goto err_btlib;
	err = unwind_setup();
	if (err)
		goto err_image;
	err = btlog_apply(logs);
	if (err)
		goto err_logs;
	/* Last: nothing waits for open files when a module's init fails. */
	err = debugfs_init();
	if (err)
		goto err_logs;
	return 0;

err_logs:
	btlog_exit();
	unwind_cleanup();
err_image:
	image_exit();
err_btlib:
	btlib_exit();
	return err;
}

static void __exit btlog_module_exit(void)
{
	debugfs_exit();
	btlog_exit();
	unwind_cleanup();
	image_exit();
	btlib_exit();
}

module_init(btlog_module_init);
module_exit(btlog_module_exit);
MODULE_DESCRIPTION("Logs of events with deduplicated kernel stacks");
MODULE_LICENSE("GPL");
