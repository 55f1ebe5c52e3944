/*
 * service.h - one service of the shop: its answers over HTTP, IDs from firnd, faults on demand, and
 * a line of JSON on standard output for each request. Everything runs on the loop's thread. Tested
 * in tests/integration/gateway_shop.py.
 */
#ifndef FIRN_SHOP_SERVICE_H
#define FIRN_SHOP_SERVICE_H

#include "catalog.h"
#include "net/loop.h"

/* `name`: of this instance, for X-Served-By and the log, borrowed. `ids`: the URL of firnd as
 * libfirn-client has it, or NULL: nothing can be created. */
FIRN_MUSTUSE int shop_begin(const struct catalog *c, const char *name, const char *ids,
                            struct service *out, struct firn_diag *d);

/* Between loop_new() and loop_run(): answers of firnd are taken on that loop. */
FIRN_MUSTUSE int shop_use(struct loop *l);

/* After loop_run(), before loop_free(). */
void shop_end(void);

#endif
