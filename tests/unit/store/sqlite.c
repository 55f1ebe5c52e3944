/* What only a file can do: be replaced, deleted, full, or somebody else's. The promises that all
 * stores make are checked by tests/conformance/run, which also runs on SQLite. */
#include "t.h"

#include "store/store.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/firn-store-XXXXXX";
static char path[64];

static struct firn_store *open_sqlite(void)
{
    struct firn_store *s;
    struct firn_diag d = { 0 };
    if (firn_store_sqlite_open(path, 500, &s, &d) == 0)
        return s;
    printf("    %s\n", d.text);
    return NULL;
}

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

T_TEST(sqlite_replaced_file_is_noticed)
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

/* A file-size limit is a full disk that needs no root: SQLite sees the write fail. */
T_TEST(sqlite_full_disk_then_space_again)
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

T_TEST(sqlite_open_says_why_not)
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
    sqlite3 *db;
    T_EQ(unlink(path), 0);
    T_EQ(sqlite3_open(path, &db), SQLITE_OK);
    T_EQ(sqlite3_exec(db, "CREATE TABLE t(x)", NULL, NULL, NULL), SQLITE_OK);
    T_EQ(sqlite3_close(db), SQLITE_OK);
    T_EQ(firn_store_sqlite_open(path, 0, &s, &d), FIRN_ESTORE);
    T_OK(strstr(d.text, "another program"), "%s", d.text);
    T_OK(!s);
}
