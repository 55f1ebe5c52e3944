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
    int a, b;
    T_EQ(slot_lock_open(path, &a, NULL), 0);
    T_EQ(slot_lock_open(path, &b, NULL), 0); /* the same process, another descriptor */
    T_EQ(slot_lock_try(a, 3), 0);
    T_EQ(slot_lock_try(a, 3), 0);
    T_EQ(slot_lock_try(b, 3), FIRN_ECONFLICT);
    T_EQ(slot_lock_try(b, 4), 0);
    T_EQ(slot_lock_try(b, 1023), 0);
    slot_lock_release(a, 3);
    T_EQ(slot_lock_try(b, 3), 0);
    close(b); /* drops all of its locks */
    T_EQ(slot_lock_try(a, 3), 0);
    T_EQ(slot_lock_try(a, 4), 0);
    close(a);

    /* kill -9 lets go. */
    int ready[2];
    char byte;
    T_EQ(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (slot_lock_open(path, &a, NULL) != 0 || slot_lock_try(a, 7) != 0 ||
            write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    T_EQ(read(ready[0], &byte, 1), 1);
    T_EQ(slot_lock_open(path, &a, NULL), 0);
    T_EQ(slot_lock_try(a, 7), FIRN_ECONFLICT);
    kill(pid, SIGKILL);
    T_EQ(waitpid(pid, NULL, 0), pid);
    T_EQ(slot_lock_try(a, 7), 0);
    close(a);
    close(ready[0]);
    close(ready[1]);
    unlink(side);
    rmdir(folder);

    struct firn_diag d = { 0 };
    T_EQ(slot_lock_open("/nonexistent/firn.db", &a, &d), FIRN_EIO);
    T_OK(strstr(d.text, "/nonexistent/firn.db.slots"));
}
