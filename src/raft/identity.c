/*
 * This member's identity: a file in its folder with a random id, made once, and the address under
 * which the other members reach it. Neither may change: the cluster identifies members by both.
 */
#include "raft/node_in.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_BUF = 96 };

static int io_error(struct firn_diag *d, const char *what, const char *path)
{
    return firn__diag(d, FIRN_EIO, 0, "cannot %s %.100s: %s", what, path, strerror(errno));
}

static int make_dir(const char *path, struct firn_diag *d)
{
    return mkdir(path, 0750) != 0 && errno != EEXIST ? io_error(d, "make", path) : 0;
}

/* Replaces a file of the folder durably and atomically. */
__attribute__((format(printf, 4, 5))) static int write_file(const char *folder, const char *path,
                                                            struct firn_diag *d, const char *fmt,
                                                            ...)
{
    char temporary[4400];
    va_list args;
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *f = fopen(temporary, "w");
    if (!f)
        return io_error(d, "write", temporary);
    va_start(args, fmt);
    vfprintf(f, fmt, args);
    va_end(args);
    bool ok = fflush(f) == 0 && fsync(fileno(f)) == 0;
    ok = fclose(f) == 0 && ok;
    if (!ok || rename(temporary, path) != 0)
        return io_error(d, "write", path);
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ok = dir >= 0 && fsync(dir) == 0;
    if (dir >= 0)
        close(dir);
    return ok ? 0 : io_error(d, "sync", folder);
}

static int write_self(const struct node *n, const char *path, struct firn_diag *d)
{
    firn_assert(n->self.id != 0);
    char cluster[32] = "";
    if (n->self.log_begun)
        snprintf(cluster, sizeof cluster, "cluster %016" PRIx64 "\n", n->self.cluster);
    return write_file(n->self.dir, path, d,
                      "firn cluster member\nid %016" PRIx64 "\naddress %s\n%s%s", n->self.id,
                      n->self.address, n->self.log_begun ? "log begun\n" : "", cluster);
}

static int read_file(struct node *n, FILE *f, const char *path, struct firn_diag *d)
{
    char address[FRAME_ADDRESS_MAX + 1] = "", log[8] = "";
    int found = fscanf(f,
                       "firn cluster member id %16" SCNx64 " address %255s log %7s cluster "
                       "%16" SCNx64,
                       &n->self.id, address, log, &n->self.cluster);
    n->self.log_begun = found >= 3;
    n->self.newcomer = found == 4 && n->self.cluster == 0; /* earlier versions wrote no 0 */
    if (found < 2 || n->self.id == 0)
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "%.100s is damaged: remove this member from the cluster, delete its "
                          "folder, and let it join again",
                          path);
    if (strcmp(address, n->self.address) != 0 && !n->opts.restore)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "this member is %.40s, not %.40s: give it that address again, or remove "
                          "it, delete its folder and join again",
                          address, n->self.address);
    return 0;
}

/* ---- cluster.restore, which is applied once ---- */

/* Identifies the folder: a copy of it may be restored as well. An inode number alone may be used
 * again. */
static void name_folder(const struct node *n, char out[FOLDER_BUF])
{
    struct statx st = { 0 };
    (void)statx(AT_FDCWD, n->self.dir, 0, STATX_INO | STATX_BTIME, &st);
    snprintf(out, FOLDER_BUF, "folder %llu made %lld.%09u\n", (unsigned long long)st.stx_ino,
             (long long)st.stx_btime.tv_sec, st.stx_btime.tv_nsec);
}

void identity_note_restore(struct node *n)
{
    char self[4200], path[4200], folder[FOLDER_BUF];
    struct firn_diag d;
    firn_assert(n->self.lock_fd >= 0, "a folder that is not open");
    name_folder(n, folder);
    snprintf(self, sizeof self, "%s/member", n->self.dir);
    snprintf(path, sizeof path, "%s/restored", n->self.dir);
    bool before = n->self.restored; /* the disk is full: at the next tick again */
    n->self.restored = write_self(n, self, &d) != 0 || /* the id is new, the address may be */
                       write_file(n->self.dir, path, &d, "%s", folder) != 0;
    if (n->self.restored && !before)
        node_say(n, NODE_WARN, "restore_not_noted",
                 "cause=%s cure=free disk space before the next start: this member goes on trying, "
                 "and has no id in its cluster without the note",
                 d.text);
}

/* cluster.restore that stays in the settings would make this member a new cluster at each start,
 * and the members that joined it since would have another one. */
static void ignore_restore(struct node *n)
{
    char path[4200], here[FOLDER_BUF], noted[FOLDER_BUF];
    name_folder(n, here);
    snprintf(path, sizeof path, "%s/restored", n->self.dir);
    FILE *f = fopen(path, "r");
    if (f && fgets(noted, sizeof noted, f) && strcmp(noted, here) == 0) {
        n->opts.restore = false;
        node_say(n, NODE_WARN, "restore_still_set",
                 "cause=cluster.restore is set, and was applied to this folder before: this start "
                 "ignores it cure=remove cluster.restore from the settings; to restore again "
                 "delete %.120s first",
                 path);
    }
    if (f)
        fclose(f);
}

/* ---- a folder that was there, and is not ---- */

/* Beside the folder: "DIR.begun" says that DIR had a cluster's data. */
static void note_path(const struct node *n, char out[4200])
{
    size_t len = strlen(n->self.dir);
    while (len > 1 && n->self.dir[len - 1] == '/')
        len--;
    snprintf(out, 4200, "%.*s.begun", (int)len, n->self.dir);
}

/* It is evidence, and not needed: the folder may be all of a disk, and its parent read-only. */
static void note_begun(const struct node *n)
{
    char path[4200], parent[4200];
    struct firn_diag d;
    note_path(n, path);
    if (access(path, F_OK) == 0)
        return;
    snprintf(parent, sizeof parent, "%s/..", n->self.dir);
    (void)write_file(parent, path, &d,
                     "%s had the data of a member of a cluster: %016" PRIx64 " at %s.\n"
                     "Where it has none, cluster.init begins no other cluster while this file is "
                     "here.\n",
                     n->self.dir, n->self.id, n->self.address);
}

/* The folder has no data: may this process begin a cluster? */
static int check_begun(struct node *n, struct firn_diag *d)
{
    char path[4200];
    note_path(n, path);
    if (!n->opts.init || access(path, F_OK) != 0)
        return 0;
    if (n->opts.join_n == 0)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "%.90s says that the folder has lost a cluster's data: set cluster.join, "
                          "not cluster.init; if no member is left, delete that file",
                          path);
    n->opts.init = false;
    node_say(n, NODE_WARN, "init_ignored",
             "cause=cluster.init is set, this folder has lost its data, and %s says that it had "
             "some: this member joins cure=remove cluster.init from the settings",
             path);
    return 0;
}

/* ---- a log that was there, and is not ---- */

/* A member without its log would vote against what it has promised. */
int identity_check_log(const struct node *n, struct firn_diag *d)
{
    return n->self.log_begun ? firn__diag(d, FIRN_EFORMAT, 0,
                                          "%.80s has lost its log: remove this member, delete its "
                                          "folder, join again",
                                          n->self.dir)
                             : 0;
}

void identity_note_cluster(struct node *n, uint64_t name)
{
    char path[4200];
    struct firn_diag d;
    uint64_t before = n->self.cluster;
    snprintf(path, sizeof path, "%s/member", n->self.dir);
    n->self.cluster = name;
    if (write_self(n, path, &d) != 0)
        n->self.cluster = before; /* the disk is full: at the next tick again */
}

void identity_note_log(struct node *n)
{
    char path[4200];
    struct firn_diag d;
    snprintf(path, sizeof path, "%s/member", n->self.dir);
    n->self.log_begun = true;
    if (write_self(n, path, &d) != 0)
        n->self.log_begun = false; /* the disk is full: at the next tick again */
    else
        note_begun(n);
}

int identity_open(struct node *n, struct firn_diag *d)
{
    char path[4200], log[4200];
    int r = make_dir(n->self.dir, d);
    snprintf(path, sizeof path, "%s/member", n->self.dir);
    snprintf(log, sizeof log, "%s/log", n->self.dir);
    if (r == 0)
        r = make_dir(log, d);
    if (r != 0)
        return r;
    firn_assert(n->self.lock_fd < 0 && n->self.id == 0, "an identity that is open already");
    n->self.lock_fd = open(log, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (n->self.lock_fd < 0)
        return io_error(d, "open", log);
    if (flock(n->self.lock_fd, LOCK_EX | LOCK_NB) != 0)
        return firn__diag(d, FIRN_EIO, 0, "another process uses %.120s: stop it first",
                          n->self.dir);
    if (n->opts.restore)
        ignore_restore(n);
    FILE *f = fopen(path, "r");
    if (!f && errno != ENOENT)
        return io_error(d, "read", path);
    if (f) {
        r = read_file(n, f, path, d);
        fclose(f);
        /* Members of the old cluster that still run, or run again, know this one by its old id, and
         * what they send to that is dropped. identity_note_restore() keeps the new one. */
        if (r == 0 && n->opts.restore)
            r = node_random(&n->self.id, d);
        if (n->self.log_begun)
            note_begun(n); /* by an earlier version it was not */
        if (r == 0 && n->opts.init && n->opts.join_n == 0)
            node_say(
                n, NODE_WARN, "init_still_set",
                "cause=cluster.init is set, and this folder has data: if they are ever lost, this "
                "member knows nobody to ask for the cluster cure=replace it by "
                "cluster.join with the other members");
        return r;
    }
    if (n->opts.restore)
        return firn__diag(d, FIRN_EINVAL, 0, "%.120s has no data to restore: see cluster.dir",
                          n->self.dir);
    if (!n->opts.init && n->opts.join_n == 0)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "%.80s has no cluster's data: set cluster.init on the first member, "
                          "cluster.join on every other",
                          n->self.dir);
    r = check_begun(n, d);
    if (r == 0)
        r = node_random(&n->self.id, d);
    n->self.newcomer = true;
    return r ? r : write_self(n, path, d);
}
