/* A node in this process, in its threads and in its children: all IDs differ, each thread's
 * rise. */
#include "t.h"

#include "drive/setup.h"
#include "firn/layout.h"
#include "firn/node.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, EACH = 20000 };

static char folder[] = "/tmp/firn-node-XXXXXX", url[64];

static void fresh(void)
{
    char cmd[128];
    if (!url[0]) {
        T_OK(mkdtemp(folder));
        snprintf(url, sizeof url, "sqlite:%s/firn.db", folder);
    }
    snprintf(cmd, sizeof cmd, "rm -rf %s/*", folder);
    T_EQ(system(cmd), 0);
}

__attribute__((destructor)) static void remove_all(void)
{
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf %s", folder);
    if (url[0] && system(cmd) != 0)
        printf("could not remove %s\n", folder);
}

static struct firn_node *open_node(const char *where)
{
    struct firn_node *n = NULL;
    struct firn_diag d = { 0 };
    T_EQ(firn_node_open(where, NULL, &n, &d), 0, "%s", d.text);
    return n;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

static void all_differ(uint64_t *ids, size_t n)
{
    qsort(ids, n, sizeof *ids, by_value);
    for (size_t i = 1; i < n; i++)
        T_OK(ids[i] != ids[i - 1], "%llu came twice", (unsigned long long)ids[i]);
}

struct worker {
    struct firn_node *node;
    uint64_t *ids;
    int bad;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    for (size_t i = 0; i < EACH; i++) {
        w->bad += firn_node_next(w->node, &w->ids[i]) != 0;
        w->bad += i > 0 && w->ids[i] <= w->ids[i - 1];
    }
    return NULL;
}

T_TEST(threads_share_a_node)
{
    static uint64_t ids[THREADS * EACH];
    pthread_t thread[THREADS];
    struct worker w[THREADS];
    fresh();
    struct firn_node *n = open_node(url);
    for (int i = 0; i < THREADS; i++) {
        w[i] = (struct worker){ n, ids + (size_t)i * EACH, 0 };
        T_EQ(pthread_create(&thread[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        T_EQ(w[i].bad, 0);
    }
    firn_node_close(n);
    all_differ(ids, T_LEN(ids));
}

/* What a file's locks and a process's memory cannot do, they refuse;
 * tests/integration/coordination.py has children on stores that machines share. */
T_TEST(children_are_refused_without_a_shared_store)
{
    fresh();
    for (int round = 0; round < 2; round++) {
        const char *where = round ? "memory:" : url;
        struct firn_node *n = open_node(where);
        pid_t pid = fork();
        if (pid == 0) {
            uint64_t id;
            size_t got;
            struct firn_node *own;
            int bad = firn_node_next(n, &id) != FIRN_EFORKED;
            bad += firn_node_fill(n, &id, 1, &got) != FIRN_EFORKED;
            bad += round == 0 && firn_node_open(where, NULL, &own, NULL) != FIRN_EFORKED;
            firn_node_close(n);
            _exit(bad);
        }
        int status;
        T_OK(pid > 0 && waitpid(pid, &status, 0) == pid);
        T_EQ(status, 0, "%s", where);
        uint64_t id;
        T_EQ(firn_node_next(n, &id), 0);
        firn_node_close(n);
    }
}

T_TEST(one_after_the_other_rises)
{
    uint64_t last = 0, id;
    fresh();
    for (int i = 0; i < 5; i++) {
        struct firn_node *n = open_node(url);
        T_EQ(firn_node_next(n, &id), 0);
        T_OK(id > last);
        last = id;
        firn_node_close(n);
    }
}

/* Somebody fences the store under a running node: it takes another grant, and its IDs go on
 * rising. */
static void entropy(void *user, void *out, size_t len)
{
    (void)user;
    t_random_bytes(out, len);
}

T_TEST(goes_on_after_a_fence)
{
    struct firn_store *s;
    struct meta_record m;
    struct firn_diag d = { 0 };
    uint64_t last = 0, id;
    struct firn_layout l;
    char text[FIRN_LAYOUT_TEXT_BUF];
    fresh();
    T_EQ(firn_layout_parse("firn", 4, 0, &l, &d), 0);
    firn_layout_format(&l, text);
    T_EQ(firn_store_open(url, 0, &s, &d), 0, "%s", d.text);
    uint64_t now_ms = (uint64_t)time(NULL) * 1000 - (uint64_t)l.epoch_ms;
    struct setup e = { .store = s, .f = now_ms, .random = entropy };
    struct setup_spec spec = {
        .layout = text, .slots = 4, .window = 600, .max_drift = 100, .floor = now_ms
    };
    T_EQ(setup_init(&e, &spec, &d), 0, "%s", d.text);
    struct firn_node *n = open_node(url);
    T_EQ(firn_node_next(n, &last), 0);
    T_EQ(setup_read_meta(s, &m, NULL, &d), 0);
    T_EQ(setup_fence(&e, m.floor, NULL, &d), 0, "%s", d.text);
    T_EQ(setup_read_meta(s, &m, NULL, &d), 0);
    struct firn_node_info info;
    do {
        T_EQ(firn_node_next(n, &id), 0);
        T_OK(id > last);
        last = id;
    } while (id >> 22 < m.floor); /* the default layout's time */
    firn_node_info(n, &info);
    T_STR(info.state, "active");
    firn_store_close(s);
    firn_node_close(n);
}

T_TEST(options_without_a_size)
{
    struct firn_node *n = NULL;
    struct firn_diag d = { 0, "" };
    struct firn_node_opts o = { .layout = "twitter" }; /* the layout would be dropped */
    T_EQ(firn_node_open("memory:", &o, &n, &d), FIRN_EINVAL);
    T_OK(strstr(d.text, "FIRN_NODE_OPTS_INIT"), "%s", d.text);
}

T_TEST(says_why_not)
{
    static const struct {
        const char *url, *layout, *name;
        int error;
    } bad[] = {
        { "mysql://h", NULL, NULL, FIRN_EFORMAT },
        { "memory:", "no such layout", NULL, FIRN_ENOENT },
        { "memory:", NULL, "a b", FIRN_EFORMAT },
        { "sqlite:/nowhere/at/all.db", NULL, NULL, FIRN_EIO },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_node_opts o = FIRN_NODE_OPTS_INIT;
        struct firn_node *n;
        struct firn_diag d = { 0 };
        o.layout = bad[i].layout;
        o.name = bad[i].name;
        T_EQ(firn_node_open(bad[i].url, &o, &n, &d), bad[i].error, "%s: %s", bad[i].url, d.text);
        T_OK(d.text[0]);
    }
    fresh();
    struct firn_node *a = open_node(url);
    struct firn_node_opts o = FIRN_NODE_OPTS_INIT;
    struct firn_node *b;
    struct firn_diag d = { 0 };
    o.layout = "twitter";
    T_EQ(firn_node_open(url, &o, &b, &d), FIRN_ESTORE);
    T_OK(strstr(d.text, "layout"), "%s", d.text);
    firn_node_close(a);
    firn_node_close(NULL);
}
