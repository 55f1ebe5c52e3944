/* The core: eras of fork(), servers with their idle connections, the retry budget. */
#include "client/core.h"
#include "client/internal.h"
#include "id/rng_take.h"
#include "id/diag.h"
#include "platform/mono.h"
#include "platform/wipe_page.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum { IDLE_MAX = 64, IDLE_MS = 30000 }; /* firnd closes after 60 s; before that we do */

/* --- eras --- */

_Atomic uint64_t *firn__era_page;

static void make_era_page(void)
{
    firn__era_page = firn__wipe_page_new(sizeof *firn__era_page);
}

/* Called when the first handle is opened, before any call of fork_era(). */
static bool era_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_era_page);
    return firn__era_page != NULL;
}

uint64_t fork_era(void)
{
    uint64_t era = fork_era_seen();
    if (__builtin_expect(era != 0, 1))
        return era;
    uint64_t fresh, none = 0;
    do
        firn__entropy(&fresh, sizeof fresh);
    while (fresh == 0);
    return atomic_compare_exchange_strong(firn__era_page, &none, fresh) ? fresh : none;
}

/* --- servers --- */

static uint64_t next_random(struct core *c)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return c->random;
}

/* An idle connection that the server has not closed in the meantime; closed ones go to *dead. */
static struct channel *take_idle(struct server *s, bool resp, uint64_t now, struct channel **dead)
{
    while (s->idle[resp]) {
        struct channel *ch = s->idle[resp];
        s->idle[resp] = ch->next;
        s->idle_n--;
        if (now < ch->idle_since_ms + IDLE_MS && channel_is_quiet(ch))
            return ch;
        ch->next = *dead;
        *dead = ch;
    }
    return NULL;
}

bool core_pick(struct core *c, uint64_t tried, size_t pin, bool resp, size_t *out_server,
               struct server_name *out_name, struct channel **out)
{
    uint64_t now = mono_ms();
    struct channel *dead = NULL;
    pthread_mutex_lock(&c->server_mutex);
    size_t i = pin != ANY_SERVER ? pin
                                 : balance_pick(c->health, c->servers, tried, now, next_random(c));
    bool found = i < c->servers;
    if (found) {
        struct server *s = &c->server[i];
        balance_begin(&c->health[i]);
        *out_server = i;
        *out_name = s->name;
        *out = take_idle(s, resp, now, &dead);
    }
    pthread_mutex_unlock(&c->server_mutex);
    while (dead) {
        struct channel *next = dead->next;
        channel_close(dead);
        dead = next;
    }
    return found;
}

void core_done(struct core *c, size_t server, enum verdict v, uint64_t took_us, struct channel *ch)
{
    struct channel *drop = NULL;
    uint64_t now = mono_ms();
    if (ch && ch->watch >= 0) {
        epoll_ctl(ch->watch, EPOLL_CTL_DEL, ch->fd, NULL);
        ch->watch = -1;
    }
    pthread_mutex_lock(&c->server_mutex);
    struct server *s = &c->server[server];
    balance_end(&c->health[server], v, took_us, now);
    for (int k = 0; v == SERVER_DOWN && k < 2; k++) /* its idle connections are dead, too */
        while (s->idle[k]) {
            struct channel *kept = s->idle[k];
            s->idle[k] = kept->next;
            s->idle_n--;
            kept->next = drop;
            drop = kept;
        }
    if (ch && s->idle_n < IDLE_MAX) {
        ch->idle_since_ms = now;
        ch->next = s->idle[ch->resp];
        s->idle[ch->resp] = ch;
        s->idle_n++;
    } else if (ch) {
        ch->next = drop;
        drop = ch;
    }
    pthread_mutex_unlock(&c->server_mutex);
    while (drop) {
        struct channel *next = drop->next;
        channel_close(drop);
        drop = next;
    }
}

bool core_has_other(struct core *c, uint64_t tried)
{
    uint64_t now = mono_ms();
    bool other = false;
    pthread_mutex_lock(&c->server_mutex);
    for (size_t i = 0; i < c->servers && !other; i++)
        other = !(tried >> i & 1) && !balance_is_out(&c->health[i], now);
    pthread_mutex_unlock(&c->server_mutex);
    return other;
}

bool core_may_retry(struct core *c)
{
    pthread_mutex_lock(&c->server_mutex);
    bool may = budget_spend(&c->budget);
    pthread_mutex_unlock(&c->server_mutex);
    return may;
}

void core_earn(struct core *c)
{
    pthread_mutex_lock(&c->server_mutex);
    budget_earn(&c->budget);
    pthread_mutex_unlock(&c->server_mutex);
}

/* --- life --- */

int core_new(const struct client_opts *o, const struct firn_client_opts *hooks, struct core **out,
             struct firn_diag *d)
{
    struct core *c = era_ready() ? calloc(1, sizeof *c) : NULL;
    if (!c)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    c->opts = o;
    c->hooks = hooks;
    c->era = fork_era();
    if (o->tls) {
        struct tls_files files = { o->cert[0] ? o->cert : NULL, o->key[0] ? o->key : NULL,
                                   o->ca[0] ? o->ca : NULL, "" };
        int r = tls_context_open(TLS_CLIENT, &files, &c->tls, d);
        if (r) {
            free(c);
            return r;
        }
    }
    mono_cond_init(&c->news);
    pthread_mutex_init(&c->server_mutex, NULL);
    pthread_mutex_init(&c->mutex, NULL);
    c->servers = o->servers;
    for (size_t i = 0; i < o->servers; i++)
        c->server[i].name = o->server[i];
    budget_init(&c->budget);
    firn__entropy(&c->random, sizeof c->random);
    c->random |= 1;
    shelf_init(&c->shelf, o, 0, mono_ms());
    *out = c;
    return 0;
}

static void drop_trip(struct trip *t)
{
    if (t)
        trip_done(t);
    free(t);
}

void core_free(struct core *c)
{
    if (!c)
        return;
    async_free(c);
    shelf_done(&c->shelf);
    shelves_done(&c->shelves);
    drop_trip(c->discovery);
    drop_trip(c->watching);
    free(c->watch);
    lending_free(c);
    for (size_t i = 0; i < c->servers; i++)
        for (int k = 0; k < 2; k++)
            while (c->server[i].idle[k]) {
                struct channel *ch = c->server[i].idle[k];
                c->server[i].idle[k] = ch->next;
                channel_close(ch);
            }
    tls_context_free(c->tls);
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->server_mutex);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}
