/*
 * Background worker of the PostgreSQL extension: keeps the server's slot by a libfirn-node, and
 * makes IDs into shared memory when backends ask (firn.c). The node's thread calls nothing of
 * PostgreSQL. A library of its own, so that only this process loads the stores' clients.
 * Tests: bindings/postgres/test.py.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "postmaster/postmaster.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "firn_shm.h"

#include <firn/node.h>

PG_MODULE_MAGIC;

enum { RETRY_MS = 500 };

static struct firn_shm *shm;
static struct firn_node *node;

PGDLLEXPORT void firn_lease_main(Datum arg);

/* The first socket directory, as a host that is escaped; without one the loopback address. */
static void derive_url(char out[FIRN_URL_BUF])
{
    const char *p = Unix_socket_directories ? Unix_socket_directories : "";
    size_t n = (size_t)snprintf(out, FIRN_URL_BUF, "postgres://");
    while (*p == ' ')
        p++;
    if (*p == '\0' || *p == ',')
        n += (size_t)snprintf(out + n, FIRN_URL_BUF - n, "127.0.0.1");
    for (; *p && *p != ',' && n + 64 < FIRN_URL_BUF; p++)
        n += (size_t)snprintf(out + n, FIRN_URL_BUF - n, "%%%02X", (unsigned char)*p);
    snprintf(out + n, FIRN_URL_BUF - n, ":%d/postgres", PostPortNumber);
}

static void failed(int r, const char *text)
{
    char error[sizeof shm->error] = "";
    snprintf(error, sizeof error, "%s (%s)", text[0] ? text : firn_error_message(r),
             firn_error_name(r));
    ereport(LOG, errmsg("firn: no IDs: %s", error));
    SpinLockAcquire(&shm->lock);
    memcpy(shm->error, error, sizeof error);
    shm->failures++;
    SpinLockRelease(&shm->lock);
    ConditionVariableBroadcast(&shm->filled);
}

static bool open_node(void)
{
    struct firn_node_opts o = FIRN_NODE_OPTS_INIT;
    struct firn_diag d = { 0 };
    struct firn_node_info info;
    char derived[FIRN_URL_BUF];
    const char *url = GetConfigOption("firn.store", false, false);
    o.name = "postgresql-extension";
    o.layout = GetConfigOption("firn.layout", false, false);
    if (!url || !*url) {
        derive_url(derived);
        url = derived;
    }
    int r = firn_node_open(url, &o, &node, &d);
    if (r != 0) {
        failed(r, d.text);
        return false;
    }
    firn_node_info(node, &info);
    ereport(LOG, errmsg("firn: slot %u leased", info.slot));
    return true;
}

/* Make what is asked for; false after a failure. */
static bool serve(void)
{
    static uint64_t ids[FIRN_BATCH_MAX];
    struct firn_node_info info;
    size_t n = 0;
    int r, wanted;
    SpinLockAcquire(&shm->lock);
    wanted = shm->wanted;
    SpinLockRelease(&shm->lock);
    if (wanted == 0)
        return true;
    TimestampTz now = GetCurrentTimestamp();
    r = firn_node_fill(node, ids, (size_t)wanted, &n);
    if (r != 0) {
        firn_node_info(node, &info);
        failed(r, info.diag.text);
        return false;
    }
    SpinLockAcquire(&shm->lock);
    shm->error[0] = '\0';
    memcpy(shm->ids, ids, n * sizeof ids[0]);
    shm->at = 0;
    shm->n = (int)n;
    shm->made = now;
    shm->wanted = 0;
    SpinLockRelease(&shm->lock);
    ConditionVariableBroadcast(&shm->filled);
    return true;
}

static void on_leave(int code, Datum arg)
{
    SpinLockAcquire(&shm->lock);
    shm->worker = NULL;
    SpinLockRelease(&shm->lock);
    firn_node_close(node); /* gives the slot back, if the store still answers */
    node = NULL;
}

void firn_lease_main(Datum arg)
{
    bool found;
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    BackgroundWorkerUnblockSignals();
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    shm = ShmemInitStruct("firn", sizeof *shm, &found);
    LWLockRelease(AddinShmemInitLock);
    if (!found)
        ereport(FATAL, errmsg("firn: no shared memory: set shared_preload_libraries = 'firn'"));
    before_shmem_exit(on_leave, 0);
    SpinLockAcquire(&shm->lock);
    shm->worker = MyLatch;
    SpinLockRelease(&shm->lock);
    while (!ShutdownRequestPending) {
        bool good = (node || open_node()) && serve();
        int rc = WaitLatch(MyLatch, (good ? WL_LATCH_SET : 0) | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                           good ? 10 * RETRY_MS : RETRY_MS, PG_WAIT_EXTENSION);
        (void)rc;
        ResetLatch(MyLatch);
    }
    proc_exit(1); /* after 0 the postmaster would not start another one */
}
