// SPDX-License-Identifier: GPL-2.0
/*
 * twin_b.c - one of the twins of twin.h
 */
enum { TWIN_ROOM = 88 };

#include "twin.h"
