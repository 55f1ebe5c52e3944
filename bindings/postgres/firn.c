/*
 * PostgreSQL extension `firn`: the SQL functions. One background worker (firn_lease.c) leases one
 * slot for the whole server and makes IDs into shared memory; backends take them in order under a
 * spinlock. So backends use up no slots, and one server's IDs rise whichever backend asks. IDs
 * older than FRESH_US are dropped: an ID's time is when it was asked for, within that. A crash
 * of any backend clears the shared memory, and the next worker leases anew: nothing comes twice.
 * Tests: bindings/postgres/test.py.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "firn_shm.h"

#include <firn/firn.h>

PG_MODULE_MAGIC;

enum { FRESH_US = 10000, FIRST_BATCH = 16, WAIT_MS = 10000 };

static struct firn_shm *shm;
static char *store_url, *layout_text;
static shmem_startup_hook_type next_startup;
static shmem_request_hook_type next_request;

void _PG_init(void);
PG_FUNCTION_INFO_V1(pg_firn_id);
PG_FUNCTION_INFO_V1(pg_firn_uuid7);
PG_FUNCTION_INFO_V1(pg_firn_ulid);
PG_FUNCTION_INFO_V1(pg_firn_time);
PG_FUNCTION_INFO_V1(pg_firn_time_text);
PG_FUNCTION_INFO_V1(pg_firn_shard);
PG_FUNCTION_INFO_V1(pg_firn_text);
PG_FUNCTION_INFO_V1(pg_firn_parse);
PG_FUNCTION_INFO_V1(pg_firn_version);

static void on_request(void)
{
    if (next_request)
        next_request();
    RequestAddinShmemSpace(sizeof(struct firn_shm));
}

static void on_startup(void)
{
    bool found;
    if (next_startup)
        next_startup();
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    shm = ShmemInitStruct("firn", sizeof *shm, &found);
    if (!found) {
        memset(shm, 0, sizeof *shm);
        SpinLockInit(&shm->lock);
        ConditionVariableInit(&shm->filled);
    }
    LWLockRelease(AddinShmemInitLock);
}

void _PG_init(void)
{
    BackgroundWorker w = { 0 };
    if (!process_shared_preload_libraries_in_progress)
        return; /* all functions but firn_id() work */
    DefineCustomStringVariable("firn.store", "Store that the server's slot is leased from.",
                               "Empty: the database postgres of this server, by its socket.",
                               &store_url, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY, NULL, NULL,
                               NULL);
    DefineCustomStringVariable("firn.layout", "Layout of the IDs of firn_id().", NULL, &layout_text,
                               "firn", PGC_POSTMASTER, 0, NULL, NULL, NULL);
    MarkGUCPrefixReserved("firn");
    next_request = shmem_request_hook;
    shmem_request_hook = on_request;
    next_startup = shmem_startup_hook;
    shmem_startup_hook = on_startup;
    /* The worker's own library is not loaded here: the stores' clients do not belong in the
     * postmaster. */
    w.bgw_flags = BGWORKER_SHMEM_ACCESS;
    w.bgw_start_time = BgWorkerStart_RecoveryFinished; /* a standby leases nothing */
    w.bgw_restart_time = 1;
    strlcpy(w.bgw_library_name, "firn_lease", BGW_MAXLEN);
    strlcpy(w.bgw_function_name, "firn_lease_main", BGW_MAXLEN);
    strlcpy(w.bgw_name, "firn lease", BGW_MAXLEN);
    strlcpy(w.bgw_type, "firn lease", BGW_MAXLEN);
    RegisterBackgroundWorker(&w);
}

/* One ID, or 0 after asking the worker for more. */
static uint64 take(uint64 *failures)
{
    TimestampTz now = GetCurrentTimestamp();
    uint64 id = 0;
    Latch *worker = NULL;
    SpinLockAcquire(&shm->lock);
    bool fresh = now >= shm->made && now - shm->made < FRESH_US;
    if (shm->at < shm->n && fresh) {
        id = shm->ids[shm->at++];
    } else {
        if (shm->wanted == 0) {
            shm->wanted = !fresh || shm->n == 0 ? FIRST_BATCH : Min(2 * shm->n, FIRN_BATCH_MAX);
            shm->at = shm->n;
        }
        worker = shm->worker;
    }
    *failures = shm->failures;
    SpinLockRelease(&shm->lock);
    if (worker)
        SetLatch(worker);
    return id;
}

Datum pg_firn_id(PG_FUNCTION_ARGS)
{
    uint64 before, failures, id;
    if (!shm)
        ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                errmsg("firn_id() needs firn in shared memory"),
                errhint("Set shared_preload_libraries = 'firn' and restart the server."));
    if (RecoveryInProgress())
        ereport(ERROR, errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                errmsg("firn_id() has no ID: a standby leases no slot before its promotion"),
                errhint("Ask the primary."));
    id = take(&before);
    if (id == 0) {
        TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), WAIT_MS);
        ConditionVariablePrepareToSleep(&shm->filled);
        while ((id = take(&failures)) == 0) {
            /* The second failure is of an attempt that began after this call. */
            if (failures >= before + 2 || GetCurrentTimestamp() >= end)
                break;
            ConditionVariableTimedSleep(&shm->filled, 100, PG_WAIT_EXTENSION);
        }
        ConditionVariableCancelSleep();
    }
    if (id == 0) {
        char error[sizeof shm->error];
        SpinLockAcquire(&shm->lock);
        memcpy(error, shm->error, sizeof error);
        SpinLockRelease(&shm->lock);
        ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                errmsg("firn_id() has no ID: %s",
                       error[0] ? error : "the lease worker does not answer"),
                errhint("The server's log has more."));
    }
    PG_RETURN_INT64((int64)id);
}

static void check(int r, const char *what, const struct firn_diag *d)
{
    if (r != 0)
        ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                errmsg("%s: %s (%s)", what, d && d->text[0] ? d->text : firn_error_message(r),
                       firn_error_name(r)));
}

Datum pg_firn_uuid7(PG_FUNCTION_ARGS)
{
    pg_uuid_t *out = palloc(sizeof *out);
    struct firn_uuid u;
    check(firn_uuid_v7_now(&u), "firn_uuid7", NULL);
    StaticAssertStmt(sizeof u == UUID_LEN, "both are 16 bytes");
    memcpy(out->data, &u, UUID_LEN);
    PG_RETURN_UUID_P(out);
}

Datum pg_firn_ulid(PG_FUNCTION_ARGS)
{
    char out[FIRN_ULID_TEXT_BUF];
    check(firn_ulid_now_text(out), "firn_ulid", NULL);
    PG_RETURN_TEXT_P(cstring_to_text(out));
}

static TimestampTz from_unix_us(int64 us)
{
    int64 out;
    if (pg_sub_s64_overflow(us, (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY, &out) ||
        !IS_VALID_TIMESTAMP(out))
        check(FIRN_ERANGE, "firn_time", NULL);
    return out;
}

static struct firn_parts parts_of(int64 id, text *layout, const char *what, struct firn_layout *l)
{
    struct firn_diag d = { 0 };
    struct firn_parts parts;
    check(firn_layout_parse(VARDATA_ANY(layout), VARSIZE_ANY_EXHDR(layout), 0, l, &d), what, &d);
    check(firn_layout_decompose(l, (uint64)id, &parts), what, NULL);
    return parts;
}

Datum pg_firn_time(PG_FUNCTION_ARGS)
{
    struct firn_layout l;
    struct firn_parts p = parts_of(PG_GETARG_INT64(0), PG_GETARG_TEXT_PP(1), "firn_time", &l);
    PG_RETURN_TIMESTAMPTZ(from_unix_us(firn_layout_unix_us(&l, p.field[FIRN_FIELD_TIME])));
}

Datum pg_firn_time_text(PG_FUNCTION_ARGS)
{
    text *id = PG_GETARG_TEXT_PP(0), *name = PG_GETARG_TEXT_PP(1);
    const struct firn_kind *kind = firn_kind_find(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
    struct firn_diag d = { 0 };
    struct firn_reading got;
    if (!kind)
        check(FIRN_ENOENT, "firn_time: the kind", NULL);
    check(firn_read(kind, VARDATA_ANY(id), VARSIZE_ANY_EXHDR(id), NULL, &got, &d), "firn_time", &d);
    if (!got.has_time)
        PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(from_unix_us(got.unix_us));
}

/* The shard where the layout has that field, otherwise the node: dc and node joined. */
Datum pg_firn_shard(PG_FUNCTION_ARGS)
{
    struct firn_layout l;
    struct firn_parts p = parts_of(PG_GETARG_INT64(0), PG_GETARG_TEXT_PP(1), "firn_shard", &l);
    uint64 node = p.field[FIRN_FIELD_DC] << l.field[FIRN_FIELD_NODE].width |
                  p.field[FIRN_FIELD_NODE];
    PG_RETURN_INT64((int64)(l.field[FIRN_FIELD_SHARD].width ? p.field[FIRN_FIELD_SHARD] : node));
}

static const struct firn_codec *codec_of(text *name)
{
    const struct firn_codec *c = firn_codec_find(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
    if (!c)
        ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                errmsg("there is no codec \"%s\"", text_to_cstring(name)),
                errhint("There are decimal, hex, crockford, crockford-check, base32hex, base36, "
                        "base58, base62, base64url."));
    return c;
}

Datum pg_firn_text(PG_FUNCTION_ARGS)
{
    char out[FIRN_CODEC_TEXT_BUF];
    check(firn_codec_encode64(codec_of(PG_GETARG_TEXT_PP(1)), (uint64)PG_GETARG_INT64(0), out,
                              sizeof out, NULL),
          "firn_text", NULL);
    PG_RETURN_TEXT_P(cstring_to_text(out));
}

Datum pg_firn_parse(PG_FUNCTION_ARGS)
{
    text *in = PG_GETARG_TEXT_PP(0);
    uint64_t out;
    check(firn_codec_decode64(codec_of(PG_GETARG_TEXT_PP(1)), VARDATA_ANY(in),
                              VARSIZE_ANY_EXHDR(in), &out),
          "firn_parse", NULL);
    PG_RETURN_INT64((int64)out);
}

Datum pg_firn_version(PG_FUNCTION_ARGS)
{
    PG_RETURN_TEXT_P(cstring_to_text(firn_version()));
}
