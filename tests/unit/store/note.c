/* The page that outlives a process: one for each database, found again over kill -9, not after the
 * database is another one; and what its words say. */
#include "t.h"

#include "store/note.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[32], path[64];

static void create(void)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    T_OK(fd >= 0);
    close(fd);
}

static bool setup(void)
{
    strcpy(folder, "/tmp/firn-note-XXXXXX");
    T_OK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/firn.db", folder);
    T_OK(!note_open(path)); /* no database, no page, and none is made */
    create();
    struct note_page *n = note_open(path);
    if (!n)
        printf("*** NO SHARED MEMORY, or no times of birth in /tmp: notes were NOT TESTED\n");
    note_close(n);
    note_close(NULL);
    return n != NULL;
}

static void done(void)
{
    unlink(path);
    rmdir(folder);
}

T_TEST(note_outlives_kill)
{
    if (setup()) {
        pid_t pid = fork();
        if (pid == 0) {
            struct note_page *n = note_open(path);
            note_raise(&n->tick, 17);
            note_raise(&n->tick, 5); /* it never falls */
            raise(SIGKILL);
        }
        T_EQ(waitpid(pid, NULL, 0), pid);
        struct note_page *n = note_open(path), *again = note_open(path);
        T_EQ(n->tick, 17);
        note_raise(&again->tick, 18);
        T_EQ(n->tick, 18); /* processes share it */
        note_close(n);
        note_close(again);
    }
    done();
}

/* By another name it is the same database; a copy, or a new file in its place, is another one. */
T_TEST(note_of_this_file_alone)
{
    char cmd[300];
    if (setup()) {
        struct note_page *n = note_open(path);
        n->stamp = 9;
        note_close(n);
        snprintf(cmd, sizeof cmd, "cd %s && ln firn.db other", folder);
        T_EQ(system(cmd), 0);
        snprintf(cmd, sizeof cmd, "%s/other", folder);
        n = note_open(cmd);
        T_EQ(n->stamp, 9);
        note_close(n);
        snprintf(cmd, sizeof cmd, "cd %s && rm other && cp -a firn.db x && mv x firn.db", folder);
        T_EQ(system(cmd), 0);
        n = note_open(path);
        T_EQ(n->stamp, 0);
        note_close(n);
    }
    done();
}

/* Pages of databases that are gone do not pile up. */
T_TEST(note_pages_are_swept)
{
    char place[32], cmd[200];
    if (setup()) {
        snprintf(place, sizeof place, "/dev/shm/firn-%u", (unsigned)geteuid());
        snprintf(cmd, sizeof cmd, "cat %s/* | grep -c -a '%s'", place, path);
        for (int i = 0; i < 20; i++) {
            unlink(path);
            create();
            note_close(note_open(path));
        }
        FILE *f = popen(cmd, "r");
        int found = 0;
        T_EQ(fscanf(f, "%d", &found), 1);
        pclose(f);
        T_OK(found <= 2, "%d pages of one path", found);
    }
    done();
}

T_TEST(note_of_a_log)
{
    static const uint8_t a[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, b[8] = { 1, 2, 3, 4, 5, 6, 7, 9 };
    _Atomic uint64_t word = 0;
    T_OK(!note_log_lacks(0, note_log(a, 3))); /* nothing is known */
    note_log_raise(&word, note_log(a, 7));
    note_log_raise(&word, note_log(a, 5)); /* another process, late */
    T_EQ(word, note_log(a, 7));
    T_OK(note_log_lacks(word, note_log(a, 6)));
    T_OK(!note_log_lacks(word, note_log(a, 7)));
    T_OK(!note_log_lacks(word, note_log(a, 8)));
    T_OK(!note_log_lacks(word, note_log(b, 1))); /* it was begun anew */
    T_OK(!note_log_lacks(word, 0));              /* and cannot be read just now */
    note_log_raise(&word, note_log(b, 1));
    T_EQ(word, note_log(b, 1));
    T_EQ(note_log(a, UINT32_MAX), note_log(a, (1u << 24) - 1));
}
