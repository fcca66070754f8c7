/* SPDX-License-Identifier: GPL-2.0 */
/*
 * helpers.h - what the KUnit suites share: the library before and after a case
 */
#ifndef BTLOG_KUNIT_HELPERS_H
#define BTLOG_KUNIT_HELPERS_H

#include <kunit/test.h>

#include "contexts.h"
#include "stacks.h"

/* Stacks that were referenced when a case began: permanent ones of others. */
static s64 referenced_before;

/* Nobody else is to use the library while a suite runs. */
static inline void library_begin(struct kunit *test)
{
	KUNIT_ASSERT_FALSE(test, btlib_is_broken());
	KUNIT_ASSERT_EQ(test, btlib_use(), 0);
	referenced_before = referenced_stacks();
}

static inline bool library_has(s64 referenced)
{
	return wait_until(referenced_stacks() == referenced, 2000);
}

/* Every case leaves no reference behind and the table in order. */
static inline void library_end(struct kunit *test)
{
	btlib_unuse();
	library_has(referenced_before);
	KUNIT_EXPECT_EQ(test, referenced_stacks(), referenced_before);
	KUNIT_EXPECT_NULL(test, btlib_validate(false));
	KUNIT_EXPECT_FALSE(test, btlib_is_broken());
}

/* Wait until what nobody has a reference to is gone. */
static inline bool library_emptied(void)
{
	return wait_until(!library_figure("stacks_unreferenced") &&
			  !library_figure("stacks_in_grace_period"), 15000);
}

#endif
