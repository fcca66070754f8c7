// SPDX-License-Identifier: GPL-2.0
/*
 * twin_a.c - one of the twins of twin.h
 */
enum { TWIN_ROOM = 40 };

#include "twin.h"
