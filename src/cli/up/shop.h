/*
 * shop.h - firn up shop: the gateway with everything around it, on this machine: Redis, a firnd,
 * the five services of examples/shop (one of them twice, for a canary) and two gateways. A program
 * listens on PORT + its `offset` in shop.c. One thread. Tested in
 * tests/integration/gateway_shop.py.
 */
#ifndef FIRN_CLI_UP_SHOP_H
#define FIRN_CLI_UP_SHOP_H

#include "cli/up/site.h"

enum shop_child { /* in the order in which they end: nobody is sent to a program that is gone */
                  SHOP_GATEWAY,
                  SHOP_GATEWAY_2,
                  SHOP_USERS,
                  SHOP_ORDERS,
                  SHOP_PRODUCTS,
                  SHOP_PAYMENTS,
                  SHOP_NOTIFICATIONS,
                  SHOP_NOTIFICATIONS_2,
                  SHOP_FIRND,
                  SHOP_REDIS,
                  SHOP_CHILDREN,
};

enum { SHOP_ARGS_MAX = 14, SHOP_FLAG_BUF = 48, SHOP_FLAGS_MAX = 4 };

struct shop {
    struct site site; /* the folder, the lock and the signals of firn up */
    bool redis;       /* it is installed */
    char firnd[SITE_PATH_BUF], proxy[SITE_PATH_BUF], service[SITE_PATH_BUF], server[SITE_PATH_BUF];
    char config[SITE_PATH_BUF + 16], state[2][SITE_PATH_BUF + 16];
    char log[SHOP_CHILDREN][SITE_PATH_BUF + 32];
    char flag[SHOP_CHILDREN][SHOP_FLAGS_MAX][SHOP_FLAG_BUF];
    const char *argv[SHOP_CHILDREN][SHOP_ARGS_MAX];
    struct child child[SHOP_CHILDREN];
};

/* Functions that return int: as in site.h. */

int shop_up(const struct up *o);

uint32_t shop_port(const struct shop *s, enum shop_child i);

/* shop_token.c: makes an ES256 key in the folder, or reads the one that is there, and writes
 * token.pem, its public half, and token-456 and token-457, which are valid for a day. */
int shop_tokens(const char *dir);

/* Made by cmake/embed.cmake from the files in examples/shop. */
extern const unsigned char shop_gateway_yaml[], shop_schema_graphql[], shop_tour_sh[];
extern const size_t shop_gateway_yaml_len, shop_schema_graphql_len, shop_tour_sh_len;

#endif
