/*
 * Who this member is: a file in its folder with a random id, made once, and the address under which the
 * others know it. Neither may change under libraft, which knows members by both.
 */
#include "raft/node_in.h"
#include "id/diag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

bool address_loopback(const char *address)
{
    const char *colon = strrchr(address, ':');
    size_t n = colon ? (size_t)(colon - address) : strlen(address);
    char host[64];
    struct in_addr v4;
    if (n > 1 && address[0] == '[' && address[n - 1] == ']') {
        address++;
        n -= 2;
    }
    if (n >= sizeof host)
        return false;
    memcpy(host, address, n);
    host[n] = '\0';
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return strcmp(host, "::1") == 0 || strcasecmp(host, "localhost") == 0;
}

static int trouble(struct firn_diag *d, const char *what, const char *path)
{
    return firn__diag(d, FIRN_EIO, 0, "cannot %s %.100s: %s", what, path, strerror(errno));
}

static int make_dir(const char *path, struct firn_diag *d)
{
    return mkdir(path, 0750) != 0 && errno != EEXIST ? trouble(d, "make", path) : 0;
}

static int write_file(const struct node *n, const char *path, struct firn_diag *d)
{
    char temporary[4400];
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *f = fopen(temporary, "w");
    if (!f)
        return trouble(d, "write", temporary);
    fprintf(f, "firn cluster member\nid %016" PRIx64 "\naddress %s\n", n->id, n->address);
    bool ok = fflush(f) == 0 && fsync(fileno(f)) == 0;
    ok = fclose(f) == 0 && ok;
    if (!ok || rename(temporary, path) != 0)
        return trouble(d, "write", path);
    int dir = open(n->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ok = dir >= 0 && fsync(dir) == 0;
    if (dir >= 0)
        close(dir);
    return ok ? 0 : trouble(d, "sync", n->dir);
}

static int read_file(struct node *n, FILE *f, const char *path, struct firn_diag *d)
{
    char address[FRAME_ADDRESS_MAX + 1] = "";
    if (fscanf(f, "firn cluster member id %16" SCNx64 " address %255s", &n->id, address) != 2 ||
        n->id == 0)
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "%.100s is damaged: remove this member from the cluster, delete its "
                          "folder, and let it join anew",
                          path);
    if (strcmp(address, n->address) != 0 && !n->opts.restore)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "this member is %.40s, not %.40s: give it that address again, or remove "
                          "it, delete its folder and join anew",
                          address, n->address);
    return 0;
}

int raft_member_open(struct node *n, struct firn_diag *d)
{
    char path[4200], log[4200];
    int r = make_dir(n->dir, d);
    snprintf(path, sizeof path, "%s/member", n->dir);
    snprintf(log, sizeof log, "%s/log", n->dir);
    if (r == 0)
        r = make_dir(log, d);
    if (r != 0)
        return r;
    n->lock_fd = open(log, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (n->lock_fd < 0)
        return trouble(d, "open", log);
    if (flock(n->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return firn__diag(d, FIRN_EIO, 0, "another process runs on %.120s", n->dir);
    FILE *f = fopen(path, "r");
    if (!f && errno != ENOENT)
        return trouble(d, "read", path);
    if (f) {
        r = read_file(n, f, path, d);
        fclose(f);
        if (r == 0 && n->opts.init)
            node_say(n, NODE_WARN, "init_still_set",
                     "cause=cluster.init is set and there are data: if they are lost one day, it "
                     "begins another cluster, with the same tickets again cure=put cluster.join "
                     "with the other members in its place");
        return r;
    }
    if (n->opts.restore)
        return firn__diag(d, FIRN_EINVAL, 0, "there is nothing to restore in %.120s", n->dir);
    if (!n->opts.init && n->opts.join_n == 0)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "%.80s has no cluster's data: set cluster.init on the very first member, "
                          "cluster.join on every other",
                          n->dir);
    while (n->id == 0)
        if (uv_random(NULL, NULL, &n->id, sizeof n->id, 0, NULL) != 0)
            return firn__diag(d, FIRN_EIO, 0, "the system gives no randomness");
    n->newcomer = true;
    return write_file(n, path, d);
}
