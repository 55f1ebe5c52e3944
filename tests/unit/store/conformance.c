/* One suite for all stores: what store.h promises. Each test runs on every backend. */
#include "t.h"

#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/firn-store-XXXXXX";
static char path[64];

static struct firn_store *open_memory(void)
{
    struct firn_store *s;
    return firn_store_memory_new(&s) == 0 ? s : NULL;
}

static struct firn_store *open_sqlite(void)
{
    struct firn_store *s;
    struct firn_diag d = { 0 };
    if (firn_store_sqlite_open(path, 500, &s, &d) == 0)
        return s;
    printf("    %s\n", d.text);
    return NULL;
}

static const struct backend {
    const char *name;
    struct firn_store *(*open)(void);
} backend[] = { { "memory", open_memory }, { "sqlite", open_sqlite } };

static void clean(void)
{
    char cmd[200];
    if (path[0] == '\0') {
        T_OK(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/firn.db", folder);
    }
    snprintf(cmd, sizeof cmd, "rm -rf %s/*", folder);
    T_EQ(system(cmd), 0);
}

__attribute__((destructor)) static void remove_all(void)
{
    char cmd[200];
    snprintf(cmd, sizeof cmd, "rm -rf %s", folder);
    if (path[0] != '\0' && system(cmd) != 0)
        printf("could not remove %s\n", folder);
}

static void on_each(void (*check)(struct firn_store *s))
{
    for (size_t i = 0; i < T_LEN(backend); i++) {
        clean();
        struct firn_store *s = backend[i].open();
        T_OK(s, "%s", backend[i].name);
        check(s);
        firn_store_close(s);
    }
}

static struct firn_slice text(const char *p)
{
    return (struct firn_slice){ p, p ? strlen(p) : 0 };
}

static int cas(struct firn_store *s, const char *key, const char *old, const char *value)
{
    struct firn_cas want = { text(key), text(old), text(value) };
    return firn_store_cas(s, &want, NULL);
}

static bool holds(struct firn_store *s, const char *key, const char *value)
{
    struct firn_record r;
    int error = firn_store_read(s, text(key), true, &r, NULL);
    if (!value)
        return error == FIRN_ENOENT;
    return error == 0 && r.len == strlen(value) && memcmp(r.value, value, r.len) == 0;
}

static void basics(struct firn_store *s)
{
    T_OK(holds(s, "a", NULL));
    T_EQ(cas(s, "a", "x", "y"), FIRN_ECONFLICT); /* absent is not some value */
    T_OK(holds(s, "a", NULL));
    T_EQ(cas(s, "a", NULL, "one"), 0);
    T_EQ(cas(s, "a", NULL, "two"), FIRN_ECONFLICT);
    T_OK(holds(s, "a", "one"));
    T_EQ(cas(s, "a", "one", "two"), 0);
    T_EQ(cas(s, "a", "one", "three"), FIRN_ECONFLICT);
    T_EQ(cas(s, "a", "tw", "three"), FIRN_ECONFLICT);
    T_EQ(cas(s, "a", "two2", "three"), FIRN_ECONFLICT);
    T_EQ(cas(s, "a", "", "three"), FIRN_ECONFLICT);
    T_OK(holds(s, "a", "two"));
    T_EQ(cas(s, "ab", NULL, ""), 0); /* an empty value is a value */
    T_OK(holds(s, "ab", ""));
    T_EQ(cas(s, "ab", NULL, "x"), FIRN_ECONFLICT);
    T_EQ(cas(s, "ab", "", "x"), 0);
    T_OK(holds(s, "a", "two"));
}

static void sizes(struct firn_store *s)
{
    char key[STORE_KEY_MAX + 1], value[STORE_VALUE_MAX + 1];
    struct firn_record r;
    memset(key, 'k', sizeof key);
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (char)i; /* every byte, NUL too */
    struct firn_cas want = { { key, STORE_KEY_MAX }, { NULL, 0 }, { value, STORE_VALUE_MAX } };
    T_EQ(firn_store_cas(s, &want, NULL), 0);
    T_EQ(firn_store_read(s, want.key, false, &r, NULL), 0);
    T_EQ(r.len, STORE_VALUE_MAX);
    T_OK(memcmp(r.value, value, r.len) == 0);
    want.old = want.value;
    want.value = text("short");
    T_EQ(firn_store_cas(s, &want, NULL), 0);
    want.key.len++;
    T_EQ(firn_store_cas(s, &want, NULL), FIRN_EINVAL);
    want.key.len--;
    want.value = (struct firn_slice){ value, sizeof value };
    T_EQ(firn_store_cas(s, &want, NULL), FIRN_EINVAL);
}

static void many(struct firn_store *s)
{
    T_EQ(cas(s, "b", NULL, "old"), 0);
    T_EQ(cas(s, "c", NULL, "other"), 0);
    struct firn_cas want[] = { { text("a"), text(NULL), text("1") },
                               { text("b"), text("old"), text("2") },
                               { text("c"), text("wrong"), text("3") },
                               { text("d"), text("absent"), text("4") } };
    int result[4] = { 9, 9, 9, 9 };
    T_EQ(firn_store_cas_many(s, want, 4, result, NULL), 0);
    T_EQ(result[0], 0);
    T_EQ(result[1], 0);
    T_EQ(result[2], FIRN_ECONFLICT);
    T_EQ(result[3], FIRN_ECONFLICT);
    T_OK(holds(s, "a", "1") && holds(s, "b", "2") && holds(s, "c", "other") && holds(s, "d", NULL));
    T_EQ(firn_store_cas_many(s, want, 4, result, NULL), 0); /* none can match now */
    T_OK(result[0] == FIRN_ECONFLICT && result[1] == FIRN_ECONFLICT);
}

struct seen {
    char keys[200];
    int stop_after;
};

static int see(void *user, struct firn_slice key, struct firn_slice value)
{
    struct seen *seen = user;
    size_t at = strlen(seen->keys);
    snprintf(seen->keys + at, sizeof seen->keys - at, "%.*s=%.*s ", (int)key.len, key.p,
             (int)value.len, value.p);
    return --seen->stop_after == 0 ? FIRN_EAGAIN : 0;
}

static void scans(struct firn_store *s)
{
    static const char *const key[] = {
        "slot/2", "slot/10", "seq/a", "slot", "slotx", "slot/1", "z"
    };
    for (size_t i = 0; i < T_LEN(key); i++)
        T_EQ(cas(s, key[i], NULL, "v"), 0);
    struct seen seen = { "", 0 };
    T_EQ(firn_store_scan(s, text("slot/"), see, &seen, NULL), 0);
    T_STR(seen.keys, "slot/1=v slot/10=v slot/2=v ");
    seen = (struct seen){ "", 2 };
    T_EQ(firn_store_scan(s, text("slot/"), see, &seen, NULL), FIRN_EAGAIN);
    T_STR(seen.keys, "slot/1=v slot/10=v ");
    seen = (struct seen){ "", 0 };
    T_EQ(firn_store_scan(s, text("none"), see, &seen, NULL), 0);
    T_STR(seen.keys, "");
    seen = (struct seen){ "", 0 };
    T_EQ(firn_store_scan(s, text(""), see, &seen, NULL), 0);
    T_STR(seen.keys, "seq/a=v slot=v slot/1=v slot/10=v slot/2=v slotx=v z=v ");
    char id[STORE_ID_TEXT_BUF] = "";
    T_EQ(firn_store_identity(s, id, NULL), 0);
    T_OK(id[0] != '\0');
}

T_TEST(store_basics)
{
    on_each(basics);
}

T_TEST(store_sizes)
{
    on_each(sizes);
}

T_TEST(store_many)
{
    on_each(many);
}

T_TEST(store_scans)
{
    on_each(scans);
}

/* ---- durable stores ---- */

T_TEST(store_two_handles_see_each_other)
{
    clean();
    struct firn_store *a = open_sqlite(), *b = open_sqlite();
    T_OK(a && b);
    T_EQ(cas(a, "k", NULL, "1"), 0);
    T_OK(holds(b, "k", "1"));
    T_EQ(cas(b, "k", "1", "2"), 0);
    T_EQ(cas(a, "k", "1", "3"), FIRN_ECONFLICT);
    T_OK(holds(a, "k", "2"));
    char id[2][STORE_ID_TEXT_BUF];
    T_EQ(firn_store_identity(a, id[0], NULL), 0);
    T_EQ(firn_store_identity(b, id[1], NULL), 0);
    T_STR(id[0], id[1]);
    firn_store_close(a);
    firn_store_close(b);
}

/* Processes that count together, one compare-and-swap each time: nothing is lost, nothing doubled. */
T_TEST(store_processes_count_together)
{
    enum { PROCESSES = 3, EACH = 60 };
    clean();
    struct firn_store *s = open_sqlite();
    T_OK(s);
    T_EQ(cas(s, "n", NULL, "0"), 0);
    firn_store_close(s);
    for (int p = 0; p < PROCESSES; p++)
        if (fork() == 0) {
            struct firn_store *mine = NULL;
            if (firn_store_sqlite_open(path, 20000, &mine, NULL) != 0)
                _exit(1);
            for (int done = 0; done < EACH;) {
                struct firn_record r;
                char next[20], old[20];
                if (firn_store_read(mine, text("n"), true, &r, NULL) != 0)
                    _exit(2);
                snprintf(old, sizeof old, "%.*s", (int)r.len, r.value);
                snprintf(next, sizeof next, "%d", atoi(old) + 1);
                int error = cas(mine, "n", old, next);
                if (error != 0 && error != FIRN_ECONFLICT)
                    _exit(3);
                done += error == 0;
            }
            firn_store_close(mine);
            _exit(0);
        }
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        T_OK(wait(&status) > 0);
        T_EQ(status, 0);
    }
    s = open_sqlite();
    T_OK(s && holds(s, "n", "180"));
    firn_store_close(s);
}

/* All at once on a file that does not exist yet. */
T_TEST(store_processes_open_together)
{
    enum { PROCESSES = 8 };
    for (int round = 0; round < 10; round++) {
        clean();
        int gate[2];
        char byte;
        T_EQ(pipe(gate), 0);
        for (int p = 0; p < PROCESSES; p++)
            if (fork() == 0) {
                struct firn_store *mine = NULL;
                struct firn_diag d = { 0 };
                close(gate[1]);
                if (read(gate[0], &byte, 1) != 0) /* until the parent closes it */
                    _exit(1);
                if (firn_store_sqlite_open(path, 20000, &mine, &d) != 0) {
                    printf("    %s\n", d.text);
                    fflush(stdout);
                    _exit(2);
                }
                int error = cas(mine, "k", NULL, "v");
                firn_store_close(mine);
                _exit(error == 0 ? 0 : error == FIRN_ECONFLICT ? 3 : 4);
            }
        close(gate[0]);
        close(gate[1]);
        int won = 0;
        for (int p = 0; p < PROCESSES; p++) {
            int status;
            T_OK(wait(&status) > 0);
            won += WEXITSTATUS(status) == 0;
            T_OK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3, "exit %d",
                 WEXITSTATUS(status));
        }
        T_EQ(won, 1);
    }
}

T_TEST(store_survives_kill)
{
    clean();
    int fd[2];
    T_EQ(pipe(fd), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct firn_store *s = open_sqlite();
        char old[20] = "", next[20];
        if (!s || cas(s, "n", NULL, "") != 0)
            _exit(1);
        for (int i = 0;; i++) { /* says each number after it is durable */
            snprintf(next, sizeof next, "%d", i);
            if (cas(s, "n", old, next) != 0 || write(fd[1], &i, sizeof i) != sizeof i)
                _exit(1);
            memcpy(old, next, sizeof old);
        }
    }
    close(fd[1]);
    int last = -1, i;
    while (last < 30 && read(fd[0], &i, sizeof i) == sizeof i)
        last = i;
    kill(pid, SIGKILL);
    while (read(fd[0], &i, sizeof i) == sizeof i)
        last = i;
    close(fd[0]);
    T_EQ(waitpid(pid, &i, 0), pid);
    struct firn_store *s = open_sqlite();
    struct firn_record r;
    T_OK(s);
    T_EQ(firn_store_read(s, text("n"), true, &r, NULL), 0);
    r.value[r.len] = '\0';
    T_OK(atoi(r.value) == last || atoi(r.value) == last + 1, "%s after %d", r.value, last);
    firn_store_close(s);
}

T_TEST(store_replaced_file_is_noticed)
{
    char other[160];
    for (int deleted = 0; deleted < 2; deleted++) {
        clean();
        struct firn_store *s = open_sqlite();
        struct firn_diag d = { 0 };
        struct firn_cas want = { text("k"), text(NULL), text("v") };
        T_OK(s);
        snprintf(other, sizeof other, "%s/new", folder);
        if (deleted) {
            T_EQ(unlink(path), 0);
        } else {
            FILE *f = fopen(other, "w");
            T_OK(f);
            fclose(f);
            T_EQ(rename(other, path), 0);
        }
        T_EQ(firn_store_cas(s, &want, &d), FIRN_ESTORE);
        T_OK(strstr(d.text, deleted ? "deleted" : "replaced"), "%s", d.text);
        firn_store_close(s);
    }
}

T_TEST(store_copy_has_another_identity)
{
    char cmd[400], id[2][STORE_ID_TEXT_BUF];
    clean();
    struct firn_store *s = open_sqlite();
    T_OK(s);
    T_EQ(firn_store_identity(s, id[0], NULL), 0);
    firn_store_close(s);
    snprintf(cmd, sizeof cmd, "cp -p %s %s.copy && mv %s.copy %s", path, path, path, path);
    T_EQ(system(cmd), 0);
    s = open_sqlite();
    T_OK(s);
    T_EQ(firn_store_identity(s, id[1], NULL), 0);
    T_OK(strcmp(id[0], id[1]) != 0);
    firn_store_close(s);
}

T_TEST(store_busy_is_not_unknown)
{
    clean();
    struct firn_store *s = open_sqlite();
    T_OK(s);
    T_EQ(cas(s, "k", NULL, "v"), 0);
    char cmd[400];
    snprintf(cmd, sizeof cmd,
             "sqlite3 %s 'BEGIN IMMEDIATE' '.shell touch %s/locked; sleep 1.2' 'COMMIT'", path,
             folder);
    if (system("command -v sqlite3 >/dev/null") != 0) {
        firn_store_close(s);
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        _exit(system(cmd) != 0);
    char mark[160];
    snprintf(mark, sizeof mark, "%s/locked", folder);
    while (access(mark, F_OK) != 0)
        usleep(1000);
    T_EQ(cas(s, "k", "v", "w"), FIRN_EIO); /* nothing was written, and that is known */
    T_OK(holds(s, "k", "v"));
    int status;
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
    T_EQ(cas(s, "k", "v", "w"), 0);
    firn_store_close(s);
}

/* A file-size limit is a full disk that needs no root: SQLite sees the write fail. */

T_TEST(store_full_disk_then_space_again)
{
    clean();
    pid_t pid = fork();
    if (pid == 0) {
        struct firn_diag d = { 0 };
        struct firn_store *s = open_sqlite();
        char name[20], value[STORE_VALUE_MAX];
        struct stat st;
        struct rlimit limit;
        char wal[160];
        memset(value, 'x', sizeof value);
        if (!s || cas(s, "k", NULL, "v") != 0)
            _exit(1);
        signal(SIGXFSZ, SIG_IGN);
        snprintf(wal, sizeof wal, "%s-wal", path);
        if (stat(wal, &st) != 0 || getrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        rlim_t all = limit.rlim_cur;
        limit.rlim_cur = (rlim_t)st.st_size;
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(3);
        int r = 0, i = 0;
        for (; i < 50 && r == 0; i++) {
            snprintf(name, sizeof name, "fill%d", i);
            struct firn_cas want = { text(name), text(NULL), { value, sizeof value } };
            r = firn_store_cas(s, &want, &d);
        }
        if (r != FIRN_EUNKNOWN && r != FIRN_EIO)
            _exit(4);
        if (d.text[0] == '\0')
            _exit(5);
        limit.rlim_cur = all;
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(6);
        if (!holds(s, "k", "v")) /* opens anew by itself */
            _exit(7);
        struct firn_record rec; /* landed or not, one of the two, and it stays so */
        r = firn_store_read(s, text(name), true, &rec, &d);
        struct firn_cas want = { text(name), text(NULL), { value, sizeof value } };
        if (firn_store_cas(s, &want, &d) != (r == 0 ? FIRN_ECONFLICT : 0))
            _exit(8);
        if (cas(s, "k", "v", "w") != 0)
            _exit(9);
        firn_store_close(s);
        s = open_sqlite();
        _exit(s && holds(s, "k", "w") ? 0 : 10);
    }
    int status;
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(WEXITSTATUS(status), 0);
}

T_TEST(store_open_says_why_not)
{
    struct firn_store *s = NULL;
    struct firn_diag d = { 0 };
    clean();
    T_EQ(firn_store_sqlite_open("", 0, &s, &d), FIRN_EINVAL);
    T_EQ(firn_store_sqlite_open("/nonexistent/dir/firn.db", 0, &s, &d), FIRN_EIO);
    T_OK(strstr(d.text, "writable"), "%s", d.text);
    T_EQ(firn_store_sqlite_open("/proc/firn.db", 0, &s, &d), FIRN_EIO); /* read-only, root or not */
    T_OK(strstr(d.text, "writable"), "%s", d.text);
    FILE *f = fopen(path, "w");
    T_OK(f);
    for (int i = 0; i < 300; i++)
        fputs("this is no database\n", f);
    fclose(f);
    T_EQ(firn_store_sqlite_open(path, 0, &s, &d), FIRN_EIO);
    T_OK(d.text[0] != '\0');
    char cmd[400];
    snprintf(cmd, sizeof cmd, "rm %s && sqlite3 %s 'CREATE TABLE t(x)'", path, path);
    if (system("command -v sqlite3 >/dev/null") == 0) {
        T_EQ(system(cmd), 0);
        T_EQ(firn_store_sqlite_open(path, 0, &s, &d), FIRN_ESTORE);
        T_OK(strstr(d.text, "another program"), "%s", d.text);
    }
    T_OK(!s);
}
