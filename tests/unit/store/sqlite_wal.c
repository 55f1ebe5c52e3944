/* A lost write-ahead log: removed, replaced or cut while the file is open; gone after a crash; and
 * no false alarm after crashes at every moment, checkpoints and removals by others. */
#include "t.h"

#include "store/note.h"
#include "store/store.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[32]; /* in memory where there is such a place: nothing here needs a disk */
static char path[64];

static void shell(const char *format, ...)
{
    char cmd[600];
    va_list args;
    va_start(args, format);
    vsnprintf(cmd, sizeof cmd, format, args);
    va_end(args);
    T_EQ(system(cmd), 0, "%s", cmd);
}

static void clean(void)
{
    if (path[0] == '\0') {
        strcpy(folder,
               access("/dev/shm", W_OK) == 0 ? "/dev/shm/firn-wal-XXXXXX" : "/tmp/firn-wal-XXXXXX");
        T_OK(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/firn.db", folder);
    }
    shell("rm -rf %s/*", folder);
}

__attribute__((destructor)) static void remove_all(void)
{
    char cmd[100];
    snprintf(cmd, sizeof cmd, "rm -rf %s", folder);
    if (path[0] != '\0' && system(cmd) != 0)
        printf("could not remove %s\n", folder);
}

static struct firn_store *open_sqlite(void)
{
    struct firn_store *s = NULL;
    struct firn_diag d = { 0 };
    T_EQ(firn_store_sqlite_open(path, 5000, &s, &d), 0, "%s", d.text);
    return s;
}

static struct firn_slice text(const char *p)
{
    return (struct firn_slice){ p, p ? strlen(p) : 0 };
}

static int put(struct firn_store *s, const char *key, const char *value, struct firn_diag *d)
{
    struct firn_record r;
    int error = firn_store_read(s, text(key), true, &r, d);
    if (error != 0 && error != FIRN_ENOENT)
        return error;
    struct firn_slice old = { error ? NULL : r.value, error ? 0 : r.len };
    struct firn_cas want = { text(key), old, text(value) };
    return firn_store_cas(s, &want, d);
}

static int64_t number(struct firn_store *s, const char *key)
{
    struct firn_record r = { .len = 0 };
    int error = firn_store_read(s, text(key), true, &r, NULL);
    r.value[r.len] = '\0';
    return error ? 0 : atoll(r.value);
}

/* A commit of many pages, so that SQLite checkpoints the log after about a hundred. */
static int put_large(struct firn_store *s, const char *key, int64_t n, struct firn_diag *d)
{
    enum { N = 10 };
    struct firn_cas want[N];
    struct firn_record old[N];
    static char name[N][16], value[N][STORE_VALUE_MAX];
    int result[N];
    for (int i = 0; i < N; i++) {
        snprintf(name[i], sizeof name[i], i ? "%s-%d" : "%s", key, i);
        int r = firn_store_read(s, text(name[i]), true, &old[i], d);
        if (r != 0 && r != FIRN_ENOENT)
            return r;
        memset(value[i], 'x', sizeof value[i]);
        int len = snprintf(value[i], 32, "%lld", (long long)n);
        want[i] = (struct firn_cas){ text(name[i]),
                                     { r ? NULL : old[i].value, r ? 0 : old[i].len },
                                     { value[i], i ? sizeof value[i] : (size_t)len } };
    }
    int r = firn_store_cas_many(s, want, N, result, d);
    for (int i = 0; r == 0 && i < N; i++)
        r = result[i];
    return r;
}

/* A process that writes 1, 2, 3, ... and reports each number once it is confirmed, until it is
 * killed. `n`: it stops writing there and waits for the end. */
static pid_t writer(const char *key, int n, int *out_fd)
{
    int fd[2];
    T_EQ(pipe(fd), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct firn_store *s;
        struct firn_diag d = { 0 };
        close(fd[0]);
        if (firn_store_sqlite_open(path, 20000, &s, &d) != 0)
            _exit(1);
        for (int64_t i = number(s, key) + 1; n == 0 || i <= n; i++) {
            if (put_large(s, key, i, &d) != 0) {
                fprintf(stderr, "%s\n", d.text);
                _exit(2);
            }
            if (write(fd[1], &i, sizeof i) != sizeof i)
                _exit(3);
        }
        for (;;)
            pause();
    }
    close(fd[1]);
    *out_fd = fd[0];
    return pid;
}

/* Reads what it reported until it has ended; returns the last number, at least `last`. */
static int64_t drain(int fd, int64_t last)
{
    int64_t i;
    while (read(fd, &i, sizeof i) == sizeof i)
        last = i;
    close(fd);
    return last;
}

static int64_t await_number(int fd, int64_t n)
{
    int64_t i = 0;
    while (i < n && read(fd, &i, sizeof i) == sizeof i)
        continue;
    T_OK(i >= n, "%lld of %lld", (long long)i, (long long)n);
    return i;
}

static void end(pid_t pid)
{
    int status;
    kill(pid, SIGKILL);
    T_EQ(waitpid(pid, &status, 0), pid);
    T_OK(WIFSIGNALED(status), "the writer ended by itself: %d", WEXITSTATUS(status));
}

/* As the sqlite3 shell would; a lock that is held may keep it from what it wants. */
static void other_program(const char *sql)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        sqlite3 *db;
        if (sqlite3_open(path, &db) == SQLITE_OK)
            sqlite3_exec(db, sql, NULL, NULL, NULL);
        sqlite3_close(db);
        _exit(0);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
}

T_TEST(wal_removed_or_replaced_while_open)
{
    for (int how = 0; how < 4; how++) {
        const char *suffix = how & 1 ? "-shm" : "-wal";
        struct firn_diag d = { 0 };
        clean();
        struct firn_store *s = open_sqlite();
        for (int i = 0; i < 5; i++)
            T_EQ(put(s, "k", i & 1 ? "1" : "2", &d), 0, "%s", d.text);
        if (how & 2)
            shell("cp %s%s %s/x && mv %s/x %s%s", path, suffix, folder, folder, path, suffix);
        else
            shell("rm %s%s", path, suffix);
        T_EQ(put(s, "k", "3", &d), FIRN_ESTORE);
        T_OK(strstr(d.text, "SIGTERM"), "%s", d.text);
        T_EQ(firn_store_check(s, &d), FIRN_ESTORE);
        T_EQ(put(s, "k", "3", &d), FIRN_ESTORE);
        firn_store_close(s);
        if (how & 1)
            continue;
        s = open_sqlite(); /* what was in the open log was saved */
        T_EQ(number(s, "k"), 2);
        T_EQ(put(s, "k", "3", &d), 0, "%s", d.text);
        firn_store_close(s);
    }
}

T_TEST(wal_removed_while_open_then_killed)
{
    struct firn_diag d = { 0 };
    for (int noticed = 0; noticed < 2; noticed++) {
        clean();
        pid_t pid = fork();
        if (pid == 0) {
            struct firn_store *s = open_sqlite();
            if (!s || put(s, "k", "1", &d) != 0 || put(s, "k", "2", &d) != 0)
                _exit(1);
            shell("rm %s-wal", path);
            if (noticed && put(s, "k", "3", &d) != FIRN_ESTORE)
                _exit(2);
            kill(getpid(), SIGKILL);
        }
        int status;
        T_EQ(waitpid(pid, &status, 0), pid);
        T_OK(WIFSIGNALED(status), "%d", WEXITSTATUS(status));
        struct firn_store *s = open_sqlite();
        if (noticed)
            T_EQ(number(s, "k"), 2);
        T_EQ(put(s, "k", "9", &d), noticed ? 0 : FIRN_ESTORE, "%s", d.text);
        firn_store_close(s);
    }
}

T_TEST(wal_deleted_after_a_crash)
{
    static const int writes[] = { 1, 7, 105, 150, 290 }; /* also after checkpoints */
    for (size_t i = 0; i < T_LEN(writes); i++) {
        struct firn_diag d = { 0 };
        int fd;
        clean();
        pid_t pid = writer("k", writes[i], &fd);
        int64_t last = await_number(fd, writes[i]);
        end(pid);
        T_EQ(drain(fd, last), writes[i]);
        shell("cp %s-wal %s/saved; rm %s-wal", path, folder, path);
        struct firn_store *s = open_sqlite();
        if (number(s, "k") == writes[i]) { /* all of it was in the database already */
            T_EQ(put(s, "k", "0", &d), 0, "%s", d.text);
            firn_store_close(s);
            continue;
        }
        T_EQ(firn_store_check(s, &d), FIRN_ESTORE, "%d writes", writes[i]);
        T_EQ(put(s, "k", "0", &d), FIRN_ESTORE);
        bool none = number(s, "k") == 0; /* all of it was in the log */
        T_OK(strstr(d.text, none ? "firn admin init" : "firn admin fence --skip"), "%s", d.text);
        firn_store_close(s);
        s = open_sqlite(); /* closing does not make it whole */
        T_EQ(put(s, "k", "0", &d), FIRN_ESTORE);
        firn_store_close(s);
        if (i & 1) { /* the log is put back in its place: nothing was lost */
            shell("rm -f %s-shm; cp %s/saved %s-wal", path, folder, path);
            s = open_sqlite();
            T_EQ(number(s, "k"), writes[i]);
            T_EQ(put(s, "k", "0", &d), 0, "%s", d.text);
        } else { /* an operator goes on without it */
            s = open_sqlite();
            T_EQ(firn_store_accept(s, false, &d), 0);
            T_EQ(put(s, "k", "0", &d), 0, "%s", d.text);
            firn_store_close(s);
            s = open_sqlite(); /* interrupted before the end: still lost */
            T_EQ(firn_store_check(s, &d), FIRN_ESTORE);
            T_EQ(firn_store_accept(s, true, &d), 0, "%s", d.text);
            firn_store_close(s);
            s = open_sqlite();
            T_EQ(put(s, "k", "1", &d), 0, "%s", d.text);
        }
        firn_store_close(s);
    }
}

/* kill -9 at any moment, two writers on one file, other programs that read, checkpoint and close in
 * between: the store is always whole, and never says otherwise. */
T_TEST(wal_no_false_alarm)
{
    int64_t last[2] = { 0, 0 };
    clean();
    for (int round = 0; round < (int)t_scale(30); round++) {
        struct firn_diag d = { 0 };
        int fd[2];
        unsigned how = (unsigned)t_random();
        pid_t pid[2] = { writer("a", 0, &fd[0]), writer("b", 0, &fd[1]) };
        for (int i = 0; i < 2; i++)
            last[i] = await_number(fd[i], last[i] + 1 + how % 60);
        if (how & 64) /* a reader that keeps checkpoints from finishing, and a checkpoint */
            other_program(how & 128 ? "BEGIN; SELECT count(*) FROM register; COMMIT"
                                    : "PRAGMA wal_checkpoint(TRUNCATE)");
        end(pid[how & 1]);
        if (how & 256)
            last[1 - (how & 1)] = await_number(fd[1 - (how & 1)], last[1 - (how & 1)] + 2);
        end(pid[1 - (how & 1)]);
        for (int i = 0; i < 2; i++)
            last[i] = drain(fd[i], last[i]);
        if (how & 512) /* another program recovers, checkpoints and removes the log */
            other_program("SELECT count(*) FROM register");
        struct firn_store *s = open_sqlite();
        T_EQ(firn_store_check(s, &d), 0, "round %d: %s", round, d.text);
        T_OK(number(s, "a") >= last[0] && number(s, "b") >= last[1], "round %d", round);
        if (how & 1024)
            T_EQ(put(s, "c", "1", &d), 0, "%s", d.text);
        firn_store_close(s);
    }
}

T_TEST(wal_mark_torn_foreign_or_missing_says_nothing)
{
    struct firn_diag d = { 0 };
    static const char *const damage[] = {
        "rm %s/firn.db.mark",
        "truncate -s 0 %s/firn.db.mark",
        "truncate -s 700 %s/firn.db.mark",
        "printf 'firn=mark 1 stamp=999999 ino=1 born=1.0 sum=0' | dd of=%s/firn.db.mark conv=notrunc",
        "head -c 1024 /dev/urandom > %s/firn.db.mark",
        "cd %s && cp firn.db x && mv x firn.db" /* another file: for the lease to notice */
    };
    for (size_t i = 0; i < T_LEN(damage); i++) {
        clean();
        struct firn_store *s = open_sqlite();
        T_EQ(put(s, "k", "1", &d), 0, "%s", d.text);
        firn_store_close(s);
        shell(damage[i], folder);
        s = open_sqlite();
        T_EQ(number(s, "k"), 1);
        T_EQ(put(s, "k", "2", &d), 0, "row %zu: %s", i, d.text);
        firn_store_close(s);
    }
}

/* The mark of a database that was here before, with more stamps, hides nothing of this one's. */
T_TEST(wal_deleted_after_a_crash_in_a_used_folder)
{
    struct firn_diag d = { 0 };
    int fd;
    clean();
    for (int i = 0; i < 6; i++) {
        pid_t before = writer("k", i + 1, &fd);
        T_EQ(await_number(fd, i + 1), i + 1);
        end(before);
        close(fd);
    }
    shell("mv %s %s/old; rm -f %s-wal %s-shm", path, folder, path,
          path); /* its inode stays in use */
    pid_t pid = writer("k", 3, &fd);
    T_EQ(await_number(fd, 3), 3);
    end(pid);
    close(fd);
    shell("rm %s-wal", path);
    struct firn_store *s = open_sqlite();
    T_EQ(firn_store_check(s, &d), FIRN_ESTORE, "%s", d.text);
    firn_store_close(s);
}

/* An older database under the same name and inode: a backup that was copied over it. */
T_TEST(wal_older_database_in_place)
{
    struct firn_diag d = { 0 };
    clean();
    struct firn_store *s = open_sqlite();
    T_EQ(put(s, "k", "1", &d), 0, "%s", d.text);
    firn_store_close(s);
    shell("cp %s %s/backup", path, folder);
    s = open_sqlite();
    T_EQ(put(s, "k", "2", &d), 0, "%s", d.text);
    firn_store_close(s);
    shell("cat %s/backup > %s", folder, path);
    s = open_sqlite();
    T_EQ(number(s, "k"), 1);
    T_EQ(put(s, "k", "2", &d), FIRN_ESTORE);
    firn_store_close(s);
}

/* Whether this machine can notice what only a note tells. */
static bool noted(void)
{
    struct note_page *n = note_open(path);
    if (!n)
        printf("*** NO NOTE of %s: its losses were NOT TESTED\n", path);
    note_close(n);
    return n != NULL;
}

/* Lost, until an operator goes on with what is there. */
static void lost_until_accepted(const char *what)
{
    struct firn_diag d = { 0 };
    struct firn_store *s = open_sqlite();
    T_EQ(put(s, "k", "0", &d), FIRN_ESTORE, "%s", what);
    T_OK(strstr(d.text, "firn admin fence --skip"), "%s: %s", what, d.text);
    firn_store_close(s);
    s = open_sqlite();
    T_EQ(firn_store_accept(s, false, &d), 0, "%s", d.text);
    for (int64_t i = 0; i < 30; i++) /* as many frames as are missing, or more */
        T_EQ(put_large(s, "k", i, &d), 0, "%s", d.text);
    firn_store_close(s);
    s = open_sqlite(); /* interrupted before the end: still lost */
    struct firn_store *halted = open_sqlite();
    T_EQ(firn_store_check(s, &d), FIRN_ESTORE, "%s", what);
    T_EQ(firn_store_accept(s, false, &d), 0, "%s", d.text);
    T_EQ(firn_store_check(halted, &d), FIRN_ESTORE, "%s", what);
    T_EQ(firn_store_accept(s, true, &d), 0, "%s", d.text);
    T_EQ(firn_store_check(halted, &d), 0, "it is told of the repair: %s", d.text);
    T_EQ(put(halted, "k", "7", &d), 0, "%s", d.text);
    firn_store_close(halted);
    firn_store_close(s);
    for (int i = 0; i < 2; i++) {
        s = open_sqlite();
        T_EQ(put(s, "k", i ? "1" : "2", &d), 0, "%s, accepted: %s", what, d.text);
        firn_store_close(s);
    }
}

/* The end of the log is missing: the stamp is there, commits behind it are not. */
T_TEST(wal_cut_after_a_crash)
{
    static const int writes[] = { 5, 40, 130, 150 };
    for (size_t i = 0; i < T_LEN(writes); i++) {
        struct firn_diag d = { 0 };
        int fd;
        clean();
        pid_t pid = writer("k", writes[i], &fd);
        T_EQ(await_number(fd, writes[i]), writes[i]);
        end(pid);
        close(fd);
        shell("cp %s-wal %s/saved", path, folder);
        struct firn_store *s = open_sqlite(); /* whole: nothing is said */
        T_EQ(firn_store_check(s, &d), 0, "%s", d.text);
        firn_store_close(s);
        clean();
        pid = writer("k", writes[i], &fd);
        T_EQ(await_number(fd, writes[i]), writes[i]);
        end(pid);
        close(fd);
        if (!noted())
            return;
        shell("truncate -s -9000 %s-wal", path); /* two frames and a bit */
        lost_until_accepted("a cut log");
    }
}

/* A snapshot of the whole folder, put back: mark and stamp agree. */
T_TEST(wal_folder_restored)
{
    static const int more[] = { 1, 60, 150, 400 }; /* also in another log than the snapshot's */
    for (size_t i = 0; i < T_LEN(more); i++) {
        int fd;
        clean();
        pid_t pid = writer("k", 20, &fd);
        T_EQ(await_number(fd, 20), 20);
        end(pid);
        close(fd);
        shell("cd %s && mkdir saved && cp firn.db firn.db-wal firn.db.mark saved", folder);
        pid = writer("k", 20 + more[i], &fd);
        T_EQ(await_number(fd, 20 + more[i]), 20 + more[i]);
        end(pid);
        close(fd);
        if (!noted())
            return;
        /* Into the same files, as the rollback of a volume would. */
        shell(
            "cd %s && for f in firn.db firn.db-wal firn.db.mark; do cat saved/$f > $f; done; rm -f "
            "firn.db-shm",
            folder);
        lost_until_accepted("a folder from before");
    }
}
