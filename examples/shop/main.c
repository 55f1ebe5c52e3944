/*
 * firn-shop - one of the five services that `firn up shop` puts behind the gateway: HTTP and JSON
 * on loopback, made of src/net and libfirn-client. Tested in tests/integration/gateway_shop.py.
 *
 *     firn-shop orders 127.0.0.1:8103 firn://127.0.0.1:9001
 *     curl -i 127.0.0.1:8103/orders -d '{"user_id":"user_456","amount":10000}'
 */
#include "daemon/log.h"
#include "daemon/signals.h"
#include "platform/mono.h"
#include "service.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/random.h>

enum { CONNECTIONS_MAX = 4096, SIGNALS_MS = 1000, DRAIN_MS = 5000 };

static struct places places;

static void *run_loop(void *arg)
{
    if (loop_run(arg) != 0)
        log_error("loop_failed", "cure=%s", "end it and start it again");
    return NULL;
}

static int fail(const char *what, int error, const struct firn_diag *d)
{
    fprintf(stderr, "firn-shop: %s: %s\n", what, d->text[0] ? d->text : firn_error_message(error));
    return 1;
}

static int serve(const struct catalog *c, const char *address, const char *ids, const char *name)
{
    struct firn_diag d = { 0, "" };
    struct service service;
    struct loop *loop = NULL;
    struct loop_opts opts = { .drain_ms = DRAIN_MS };
    pthread_t thread;
    char here[PEER_ADDRESS_BUF];
    uint64_t salt;
    int fd, r = shop_begin(c, name, ids, &service, &d);
    if (r)
        return fail("IDs", r, &d);
    signals_block();
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt)
        return fail("random numbers", FIRN_EIO, &d);
    places_init(&places, CONNECTIONS_MAX, 0, salt);
    if ((r = loop_new(&opts, &service, &places, &loop)) || (r = shop_use(loop)))
        return fail("loop", r, &d);
    if ((r = listen_open(address, &fd, 1, &d)))
        return fail(address, r, &d);
    listen_name(fd, here);
    if ((r = loop_listen(loop, fd, 0, false)))
        return fail(address, r, &d);
    if (pthread_create(&thread, NULL, run_loop, loop) != 0)
        return fail("thread", FIRN_ENOMEM, &d);
    log_info("serving", "service=%s name=%s address=%s", c->name, name, here);
    int sig = 0;
    while (sig != SIGTERM && sig != SIGINT) {
        sig = signals_wait(SIGNALS_MS);
        log_flush();
    }
    loop_drain(loop);
    pthread_join(thread, NULL);
    shop_end();
    loop_free(loop);
    return 0;
}

int main(int argc, char **argv)
{
    descriptors_standard();
    const struct catalog *c = argc >= 3 && argc <= 5 ? catalog_find(argv[1]) : NULL;
    if (!c) {
        fputs("usage: firn-shop users|orders|products|payments|notifications HOST:PORT "
              "[firn://HOST:PORT [NAME]]\n",
              stderr);
        return 2;
    }
    return serve(c, argv[2], argc > 3 ? argv[3] : NULL, argc > 4 ? argv[4] : c->name);
}
