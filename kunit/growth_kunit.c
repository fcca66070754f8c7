// SPDX-License-Identifier: GPL-2.0
/*
 * growth_kunit.c - suite "btlog_growth": the library grows large
 *
 * A suite of its own, linked behind the others as its name goes, since the
 * table keeps its size and checking it takes time from then on.
 */
#include <linux/module.h>

#include "growth.h"
#include "helpers.h"

static unsigned int stacks;
module_param(stacks, uint, 0444);
MODULE_PARM_DESC(stacks, "how many the library grows to (default 1000000, with KASAN or KCSAN 200000)");

static u32 growth_size(void)
{
	if (stacks)
		return stacks;
	if (IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN))
		return 200000;
	return 1000000;
}

static int growth_case_init(struct kunit *test)
{
	library_begin(test);
	return 0;
}

static void growth_case_exit(struct kunit *test)
{
	library_end(test);
}

/* Debug kernels check the whole table after each doubling. */
static void it_grows_while_others_read(struct kunit *test)
{
	struct growth g = { .n = growth_size() };
	u64 doublings = library_figure("doublings");
	const char *wrong;

	KUNIT_ASSERT_GT_MSG(test, library_figure("memory_limit_bytes"),
			    (s64)g.n * 160, "load btlog with a larger lib_max_mb");
	wrong = grow_library(&g);
	KUNIT_EXPECT_NULL(test, wrong);
	kunit_info(test, "%u stacks in %lld ms, %llu looked up, %llu doublings: %s\n",
		   g.inserted, g.ms, g.looked_up,
		   library_figure("doublings") - doublings, wrong ?: "good");
	KUNIT_EXPECT_TRUE(test, library_emptied());
	KUNIT_EXPECT_NULL(test, btlib_validate(true));
}

static struct kunit_case growth_cases[] = {
	KUNIT_CASE(it_grows_while_others_read),
	{}
};

static struct kunit_suite growth_suite = {
	.name = "btlog_growth",
	.init = growth_case_init,
	.exit = growth_case_exit,
	.test_cases = growth_cases,
};

kunit_test_suite(growth_suite);
