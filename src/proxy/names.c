/* Names of servers and their addresses. Tested in tests/unit/proxy/names.c and
 * tests/integration/gateway_net.py. */
#include "proxy/names.h"
#include "id/diag.h"
#include "net/upstream_address.h"
#include "proxy/plan.h"

#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

bool name_is_address(const char *address)
{
    struct sockaddr_storage to;
    char host[HOST_BYTES_MAX + 1];
    return upstream_address(address, &to, host) == 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void add(struct name_found *f, const char *host, uint16_t port)
{
    char text[HOST_PORT_BUF];
    host_port_write(host, port, text);
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->address[i], text) == 0)
            return;
    if (f->n < NAME_ADDRESSES_MAX)
        memcpy(f->address[f->n++], text, sizeof text);
}

/* Of the families that this machine has an address of; "localhost" has some even without any. */
static int ask(const char *host, struct addrinfo **out)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
    int e = getaddrinfo(host, NULL, &hints, out);
    hints.ai_flags = 0;
    return e ? getaddrinfo(host, NULL, &hints, out) : 0;
}

int name_look_up(const char *address, struct name_found *out, struct firn_diag *diag)
{
    struct host_port h;
    struct addrinfo *list = NULL;
    char host[NI_MAXHOST];
    memset(out, 0, sizeof *out);
    if (name_is_address(address)) {
        out->n = 1;
        memccpy(out->address[0], address, '\0', sizeof out->address[0]);
        return 0;
    }
    (void)host_port_read((struct slice){ address, strlen(address) }, &h); /* it was checked */
    int e = ask(h.host, &list);
    for (struct addrinfo *a = list; e == 0 && a; a = a->ai_next) {
        e = getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST);
        if (e == 0)
            add(out, host, h.port);
    }
    if (list)
        freeaddrinfo(list);
    if (e)
        return firn__diag(diag, FIRN_EINVAL, 0, "services: '%.80s' cannot be looked up: %s",
                          address, gai_strerror(e));
    qsort(out->address, out->n, sizeof out->address[0], compare);
    return 0;
}

const struct lookup *lookup_of(const struct lookups *l, const char *address)
{
    for (size_t i = 0; l && i < l->n; i++)
        if (strcmp(l->v[i].address, address) == 0)
            return &l->v[i];
    return NULL;
}

/* --- the thread --- */

static struct {
    pthread_t thread;
    bool running;
    _Atomic bool done;
    struct lookups *all;
} job;

static void *run(void *arg)
{
    struct lookups *l = arg;
    for (size_t i = 0; i < l->n; i++)
        l->v[i].result = name_look_up(l->v[i].address, &l->v[i].found, &l->v[i].why);
    atomic_store(&job.done, true);
    return NULL;
}

static struct lookups *names_of(const struct plan *p)
{
    size_t most = 0;
    for (size_t i = 0; i < p->config.services.n; i++)
        most += p->config.services.v[i].servers.n;
    struct lookups *l = calloc(1, sizeof *l + most * sizeof *l->v);
    for (size_t i = 0; l && i < p->config.services.n; i++)
        for (size_t k = 0; k < p->config.services.v[i].servers.n; k++) {
            const char *address = p->config.services.v[i].servers.v[k].address;
            if (!name_is_address(address) && !lookup_of(l, address))
                memccpy(l->v[l->n++].address, address, '\0', HOST_PORT_BUF);
        }
    return l;
}

bool names_begin(const struct plan *p)
{
    if (job.running)
        return false;
    job.all = names_of(p);
    atomic_store(&job.done, false);
    if (job.all && job.all->n > 0)
        job.running = pthread_create(&job.thread, NULL, run, job.all) == 0;
    if (!job.running) {
        free(job.all);
        job.all = NULL;
    }
    return job.running;
}

struct lookups *names_take(void)
{
    struct lookups *l = job.all;
    if (!job.running || !atomic_load(&job.done))
        return NULL;
    pthread_join(job.thread, NULL);
    job.running = false;
    job.all = NULL;
    return l;
}

void names_end(void)
{
    free(names_take());
    if (job.running)
        pthread_detach(job.thread);
}
