/* SPDX-License-Identifier: GPL-2.0-only */
/* What only a test build (ETW_TEST) has beside the module: two calls. Knows not what is behind them. */
#ifndef ETW_TEST_H
#define ETW_TEST_H

#ifdef ETW_TEST
int etw_test_init(void);
void etw_test_exit(void);
#else
static inline int etw_test_init(void)
{
	return 0;
}

static inline void etw_test_exit(void)
{
}
#endif

#endif
