/* Worker numbers of firn gen: none twice at a time, and never below what was noted. */
#include "cli/gen/worker.h"
#include "cli/gen/worker.c"
#include "t.h"

/* A state directory of its own; numbers that no real run has, as the sockets are the machine's. */
static char dir[64];
enum { FIRST = 60000 };

static void begin(void)
{
    snprintf(dir, sizeof dir, "/tmp/firn-worker-XXXXXX");
    T_OK(mkdtemp(dir) != NULL);
    setenv("XDG_STATE_HOME", dir, 1);
}

static void end(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/firn/workers", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/firn", dir);
    rmdir(path);
    rmdir(dir);
}

T_TEST(worker_state_directory)
{
    char out[64];
    T_EQ(worker_directory("/x", "/home/a", true, out, sizeof out), 0);
    T_STR(out, "/x/firn");
    T_EQ(worker_directory("x", "/home/a", true, out, sizeof out), 0);
    T_STR(out, "/var/lib/firn");
    T_EQ(worker_directory(NULL, "/home/a", false, out, sizeof out), 0);
    T_STR(out, "/home/a/.local/state/firn");
    T_EQ(worker_directory(NULL, NULL, false, out, sizeof out), FIRN_ENOENT);
    T_EQ(worker_directory(NULL, "/home/a", false, out, 10), FIRN_ENOENT);
}

T_TEST(worker_side_by_side)
{
    struct worker w[9];
    struct firn_diag d;
    uint32_t seen = 0;
    begin();
    for (int i = 0; i < 8; i++) {
        T_EQ(worker_open(&w[i], 0, &d), 0, "%s", d.text);
        T_EQ(worker_take(&w[i], FIRST, 8, 5, &d), 0);
        T_OK(w[i].number >= FIRST && w[i].number < FIRST + 8);
        seen |= 1u << (w[i].number - FIRST);
    }
    T_EQ(seen, 0xff);
    T_EQ(worker_open(&w[8], 0, &d), 0);
    T_EQ(worker_take(&w[8], FIRST, 8, 0, &d), FIRN_ENOSLOT);
    worker_close(&w[3]);
    T_EQ(worker_take(&w[8], FIRST, 8, 0, &d), 0);
    T_EQ(w[8].number, w[3].number);
    for (int i = 0; i < 9; i++)
        worker_close(&w[i]);
    end();
}

/* Another user has another file: the name alone keeps them apart. */
T_TEST(worker_of_other_users)
{
    struct worker a, b;
    struct firn_diag d;
    begin();
    char first[sizeof dir];
    memcpy(first, dir, sizeof dir);
    T_EQ(worker_open(&a, 0, &d), 0);
    T_EQ(worker_take(&a, FIRST, 1, 0, &d), 0);
    begin();
    T_EQ(worker_open(&b, 0, &d), 0);
    T_EQ(worker_take(&b, FIRST, 2, 0, &d), 0);
    T_EQ(b.number, FIRST + 1);
    worker_close(&a);
    worker_close(&b);
    end();
    memcpy(dir, first, sizeof dir);
    end();
}

T_TEST(worker_begins_above_the_note)
{
    struct worker w;
    struct firn_diag d;
    int64_t now = now_us(), soon = now + WORKER_AHEAD_US / 2;
    begin();
    T_EQ(worker_open(&w, 0, &d), 0);
    T_EQ(worker_take(&w, FIRST, 1, 0, &d), 0);
    T_EQ(w.used_us, 0);
    T_EQ(worker_note(&w, soon, &d), 0);
    T_EQ(worker_note(&w, soon - 1, &d), 0); /* a note never falls */
    worker_close(&w);

    T_EQ(worker_open(&w, 0, &d), 0);
    T_EQ(worker_take(&w, FIRST, 2, 0, &d), 0);
    T_EQ(w.number, FIRST + 1); /* the one that need not wait */
    T_EQ(worker_note(&w, now + 1000 * (int64_t)WORKER_AHEAD_US, &d), 0);
    worker_close(&w);

    T_EQ(worker_open(&w, 0, &d), 0);
    T_EQ(worker_take(&w, FIRST, 2, 0, &d), 0);
    T_EQ(w.number, FIRST);
    T_EQ(w.used_us, soon);
    worker_close(&w);

    T_EQ(worker_open(&w, 0, &d), 0);
    T_EQ(worker_take(&w, FIRST + 1, 1, 0, &d), FIRN_ECLOCK);
    worker_close(&w);
    end();
}

T_TEST(worker_file_damaged)
{
    struct worker w;
    struct firn_diag d;
    begin();
    T_EQ(worker_open(&w, 0, &d), 0);
    T_EQ(pwrite(w.file, "hello", 5, place(FIRST)), 5);
    T_EQ(worker_take(&w, FIRST, 1, 0, &d), FIRN_EFORMAT);
    T_EQ(worker_take(&w, FIRST + 1, 1, 0, &d), 0);
    worker_close(&w);
    end();
}
