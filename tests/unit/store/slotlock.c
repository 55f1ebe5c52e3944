#include "t.h"

#include "store/slotlock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

T_TEST(slotlock_one_holder)
{
    char folder[] = "/tmp/firn-lock-XXXXXX", path[64], side[80];
    T_OK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/firn.db", folder);
    snprintf(side, sizeof side, "%s.slots", path);
    struct slot_lock a, b;
    T_EQ(slot_lock_open(path, "x", 16, &a, NULL), 0);
    T_EQ(slot_lock_open(path, "x", 16, &b, NULL), 0); /* the same process, another descriptor */
    T_EQ(slot_lock_try(&a, 3), 0);
    T_EQ(slot_lock_try(&a, 3), 0);
    T_EQ(slot_lock_try(&b, 3), FIRN_ECONFLICT);
    T_EQ(slot_lock_try(&b, 4), 0);
    T_EQ(slot_lock_try(&b, 1023), 0);
    slot_lock_release(&a, 3);
    T_EQ(slot_lock_try(&b, 3), 0);
    slot_lock_close(&b); /* drops all of its locks */
    T_EQ(slot_lock_try(&a, 3), 0);
    T_EQ(slot_lock_try(&a, 4), 0);
    slot_lock_close(&a);

    /* kill -9 lets go. */
    int ready[2];
    char byte;
    T_EQ(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (slot_lock_open(path, "x", 16, &a, NULL) != 0 || slot_lock_try(&a, 7) != 0 ||
            write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    T_EQ(read(ready[0], &byte, 1), 1);
    T_EQ(slot_lock_open(path, "x", 16, &a, NULL), 0);
    T_EQ(slot_lock_try(&a, 7), FIRN_ECONFLICT);
    kill(pid, SIGKILL);
    T_EQ(waitpid(pid, NULL, 0), pid);
    T_EQ(slot_lock_try(&a, 7), 0);
    slot_lock_close(&a);
    close(ready[0]);
    close(ready[1]);
    unlink(side);
    rmdir(folder);

    struct firn_diag d = { 0 };
    T_EQ(slot_lock_open("/nonexistent/firn.db", "x", 16, &a, &d), FIRN_EIO);
    T_OK(strstr(d.text, "/nonexistent/firn.db.slots"));
}

/* Another store on the same machine, as a copy side by side: each slot is used by one of them. */
T_TEST(slotlock_of_the_machine)
{
    char folder[] = "/tmp/firn-lock-XXXXXX", path[2][64], side[80], layout[64];
    struct slot_lock a, b, c;
    T_OK(mkdtemp(folder));
    snprintf(layout, sizeof layout, "layout of %s", folder);
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/%d.db", folder, i);
    T_EQ(slot_lock_open(path[0], layout, 1024, &a, NULL), 0);
    T_EQ(slot_lock_open(path[1], layout, 1024, &b, NULL), 0);
    T_EQ(slot_lock_open(path[1], "another layout", 1024, &c, NULL), 0);
    T_EQ(slot_lock_try(&a, 3), 0);
    T_EQ(slot_lock_try(&a, 3), 0);
    T_EQ(slot_lock_try(&b, 3), FIRN_ECONFLICT);
    T_EQ(slot_lock_try(&c, 3), 0); /* other bits: other IDs */
    slot_lock_release(&c, 3);
    T_EQ(slot_lock_try(&b, 4), 0);
    slot_lock_release(&a, 3);
    T_EQ(slot_lock_try(&a, 4), FIRN_ECONFLICT);
    slot_lock_release(&b, 4);
    T_EQ(slot_lock_try(&b, 3), 0);
    T_EQ(slot_lock_try(&a, 3), FIRN_ECONFLICT);
    slot_lock_close(&b);
    T_EQ(slot_lock_try(&a, 3), 0);
    slot_lock_close(&a);
    slot_lock_close(&c);

    /* Few slots are not taken from strangers. */
    T_EQ(slot_lock_open(path[0], layout, 16, &a, NULL), 0);
    T_EQ(slot_lock_open(path[1], layout, 16, &b, NULL), 0);
    T_EQ(slot_lock_try(&a, 3), 0);
    T_EQ(slot_lock_try(&b, 3), 0);
    slot_lock_close(&a);
    slot_lock_close(&b);
    for (int i = 0; i < 2; i++) {
        snprintf(side, sizeof side, "%s.slots", path[i]);
        unlink(side);
    }
    rmdir(folder);
}

/* The side file tells another boot, or another machine, once a slot was taken there. */
T_TEST(slotlock_notices_a_move)
{
    char folder[] = "/tmp/firn-lock-XXXXXX", path[64], side[80];
    static const char other[] = "00000000-0000-4000-8000-000000000000";
    struct slot_lock a;
    uint64_t since = 0;
    T_OK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/firn.db", folder);
    snprintf(side, sizeof side, "%s.slots", path);
    T_EQ(slot_lock_open(path, "x", 16, &a, NULL), 0);
    T_EQ(a.since_ms, 0); /* new */
    T_EQ(slot_lock_try(&a, 3), 0);
    slot_lock_close(&a);
    T_EQ(slot_lock_open(path, "x", 16, &a, NULL), 0);
    T_EQ(a.since_ms, 0); /* a plain restart */
    T_EQ(pwrite(a.fd, other, sizeof other - 1, 0), sizeof other - 1);
    slot_lock_close(&a);
    for (int i = 0; i < 2; i++) { /* until a slot is chosen */
        T_EQ(slot_lock_open(path, "x", 16, &a, NULL), 0);
        T_OK(a.since_ms > 1600000000000);
        since = a.since_ms;
        if (i == 0)
            slot_lock_close(&a);
    }
    T_EQ(slot_lock_try(&a, 3), 0);
    slot_lock_close(&a);
    T_EQ(slot_lock_open(path, "x", 16, &a, NULL), 0);
    T_EQ(a.since_ms, since); /* and that stays */
    slot_lock_close(&a);
    unlink(side);
    rmdir(folder);
}
