/*
 * The registers in etcd, through its JSON gateway (etcd_json.h says what is said).
 *
 * A read may be asked of one member after another. A write may not: once a byte of it went out it may
 * land, even long after its answer was given up, and a second copy would meet the first as a conflict
 * although "nothing changed" is a lie then. So a write goes on to the next member only while nothing
 * was sent. libcurl would break that by itself: when a connection that was kept open turns out to be
 * dead, it sends the request again on a new one. Bodies are therefore handed to it piece by piece, and
 * a second reading of a write's body is refused.
 *
 * etcd cannot tell that it was restored from a snapshot: cluster id and keys are as before. What falls
 * is the revision. Answers that are ordered after each other (all but serializable reads, which a
 * lagging member may give) never show that otherwise, so a fall means another store.
 */
#include "store/engines.h"
#include "store/etcd_json.h"
#include "id/diag.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ANSWER_BYTES_MAX = 8 << 20, /* a page of full registers has about 1 MB */
    PAGE_REGISTERS = 500,
    LOOK_MS_MIN = 250, /* what wait() takes at least to look once */
    WATCH_PAUSE_MS = 100,
    ORIGIN_BUF = 300,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_UNAUTHENTICATED = 16,
};

#define KV_RANGE     "/v3/kv/range"
#define KV_TXN       "/v3/kv/txn"
#define WATCH        "/v3/watch"
#define AUTHENTICATE "/v3/auth/authenticate"
#define STATUS       "/v3/maintenance/status"

struct etcd {
    struct firn_store base;
    CURL *curl,
        *watcher; /* two, so that ending a watch does not end the connection of the others */
    struct curl_slist *fields;
    char origin[STORE_HOSTS_MAX][ORIGIN_BUF]; /* "https://host:2379" */
    size_t hosts, at;                         /* the member in use */
    char root[ETCD_ROOT_MAX];
    size_t root_len;
    char user[128], password[256]; /* empty: none */
    char token[ETCD_TOKEN_BUF];
    bool open_door; /* a user was given, but etcd asks for none */
    uint32_t timeout_ms;

    struct etcd_text request;
    size_t given; /* bytes of it that libcurl took */
    bool write;   /* it must not be sent twice */
    char *answer;
    size_t answer_len, answer_room;
    bool answer_big;
    bool watching, woken; /* the watch began; there is news */
    long status;
    char error[CURL_ERROR_SIZE];

    struct etcd_head seen; /* the cluster that was opened, its highest revision */
    bool changed;          /* what answers is another store */
    struct firn_diag why;  /* how that was seen */
};

static int64_t mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void sleep_ms(int64_t ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    if (ms > 0)
        nanosleep(&t, NULL);
}

static struct firn_slice root(const struct etcd *s)
{
    return firn_slice(s->root, s->root_len);
}

static struct firn_slice answer(const struct etcd *s)
{
    return firn_slice(s->answer, s->answer_len);
}

/* The member in use, for people. */
static const char *member(const struct etcd *s)
{
    return strstr(s->origin[s->at], "//") + 2;
}

/* ---- one request ---- */

static size_t give(char *to, size_t size, size_t n, void *user)
{
    struct etcd *s = user;
    size_t len = s->request.len - s->given;
    len = len < size * n ? len : size * n;
    memcpy(to, s->request.p + s->given, len);
    s->given += len;
    return len;
}

static int give_again(void *user, curl_off_t offset, int origin)
{
    struct etcd *s = user;
    if (s->write || offset != 0 || origin != SEEK_SET)
        return CURL_SEEKFUNC_FAIL;
    s->given = 0;
    return CURL_SEEKFUNC_OK;
}

static size_t take(char *p, size_t size, size_t n, void *user)
{
    struct etcd *s = user;
    size_t len = size * n;
    if (len > ANSWER_BYTES_MAX - s->answer_len) {
        s->answer_big = true;
        return 0;
    }
    if (s->answer_room - s->answer_len < len) {
        size_t room = (s->answer_len + len) * 2;
        char *bigger = realloc(s->answer, room);
        if (!bigger)
            return 0;
        s->answer = bigger;
        s->answer_room = room;
    }
    memcpy(s->answer + s->answer_len, p, len);
    s->answer_len += len;
    return len;
}

/* Of a watch. The first line says that it began; whatever follows is news, and the end of it. */
static size_t take_news(char *p, size_t size, size_t n, void *user)
{
    struct etcd *s = user;
    size_t len = size * n;
    const char *news = p;
    if (!s->watching) {
        const char *line_end = memchr(p, '\n', len);
        if (!line_end)
            return len;
        s->watching = true;
        news = line_end + 1;
    }
    s->woken = news < p + len;
    return s->woken ? 0 : len;
}

static bool put_fields(struct etcd *s)
{
    char token[ETCD_TOKEN_BUF + 32];
    struct curl_slist *fields = curl_slist_append(NULL, "Content-Type: application/json"), *more;
    more = fields ? curl_slist_append(fields, "Expect:") : NULL; /* no "100 Continue" */
    snprintf(token, sizeof token, "Authorization: %s", s->token);
    if (more && s->token[0])
        more = curl_slist_append(fields, token);
    explicit_bzero(token, sizeof token);
    if (!more) {
        curl_slist_free_all(fields);
        return false;
    }
    curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(s->watcher, CURLOPT_HTTPHEADER, fields);
    curl_slist_free_all(s->fields);
    s->fields = fields;
    return true;
}

static CURLcode perform(struct etcd *s, CURL *c, const char *path, int64_t connect_ms,
                        int64_t total_ms)
{
    char url[ORIGIN_BUF + 64];
    snprintf(url, sizeof url, "%s%s", s->origin[s->at], path);
    s->given = s->answer_len = 0;
    s->answer_big = s->watching = s->woken = false;
    s->status = 0;
    s->error[0] = '\0';
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, (long)s->request.len);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)(connect_ms > 0 ? connect_ms : 1));
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(total_ms > 0 ? total_ms : 1));
    CURLcode rc = curl_easy_perform(c);
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &s->status);
    return rc;
}

/* s->request to the member in use. 0: an answer came, with s->status. FIRN_EIO: nothing was sent.
 * FIRN_EUNKNOWN: something was, and that is all that is known. */
static int post(struct etcd *s, const char *path, bool write, int64_t connect_ms, int64_t total_ms,
                struct firn_diag *d)
{
    s->write = write;
    CURLcode rc = perform(s, s->curl, path, connect_ms, total_ms);
    if (rc == CURLE_OK)
        return 0;
    firn__diag(d, 0, 0, "etcd at %.60s: %.110s", member(s),
               s->answer_big ? "its answer is too large"
               : s->error[0] ? s->error
                             : curl_easy_strerror(rc));
    return s->given == 0 ? FIRN_EIO : FIRN_EUNKNOWN;
}

/* An answer that is no success: its gRPC code. */
static int explain(const struct etcd *s, struct firn_diag *d)
{
    char text[120];
    int code = etcd_decode_error(answer(s), text, sizeof text);
    firn__diag(d, 0, 0, "etcd at %.60s answered %ld %s%s", member(s), s->status, text,
               code == GRPC_INVALID_ARGUMENT && strstr(text, "user name is empty") && !s->user[0]
                   ? ": give etcd://USER:PASSWORD@"
                   : "");
    return code;
}

/* Refused at the door for want of a valid token: nothing was done. */
static bool turned_away(const struct etcd *s, int code)
{
    char text[120];
    (void)etcd_decode_error(answer(s), text, sizeof text);
    return code == GRPC_UNAUTHENTICATED ||
           (code == GRPC_INVALID_ARGUMENT && strstr(text, "user name is empty"));
}

/* ---- the token ---- */

/* Takes the place of s->request for a moment. s->token is empty: etcd refuses even this request when
 * it comes with a token that is no longer good. */
static int log_in(struct etcd *s, int64_t ms, struct firn_diag *d)
{
    struct etcd_text mine = s->request;
    s->request = (struct etcd_text){ 0 };
    int r = !put_fields(s)
                ? firn__diag(d, FIRN_ENOMEM, 0, "out of memory") /* drops the old token */
            : !etcd_encode_login(&s->request, s->user, s->password)
                ? firn__diag(d, FIRN_EAUTH, 0, "etcd's user and password must be UTF-8")
                : post(s, AUTHENTICATE, false, ms, ms, d);
    if (r != 0)
        goto restore;
    if (s->status == 200) {
        r = etcd_decode_login(answer(s), s->token);
        if (r != 0)
            firn__diag(d, r, 0, "etcd at %.60s gave no token", member(s));
    } else if (explain(s, d) == GRPC_FAILED_PRECONDITION) { /* etcd asks nobody */
        s->open_door = true;
    } else {
        r = FIRN_EAUTH;
    }
    if (s->answer)
        explicit_bzero(s->answer, s->answer_len);
    if (r == 0 && !put_fields(s))
        r = firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
restore:
    if (s->request.p)
        explicit_bzero(s->request.p, s->request.len);
    etcd_text_done(&s->request);
    s->request = mine;
    return r;
}

/* ---- a request to the members ---- */

/* The next member's turn. */
static void move_on(struct etcd *s)
{
    s->at = (s->at + 1) % s->hosts;
}

/* 0: s->answer is an answer with status 200. FIRN_EIO: nothing was done. FIRN_EUNKNOWN: a write whose
 * outcome is open. Each member gets its share of the time that is left, so that a silent one leaves
 * some for the next; a write that went out has it all. */
static int ask(struct etcd *s, const char *path, bool write, int64_t end, struct firn_diag *d)
{
    struct firn_diag why = { 0, "no time was left to ask etcd" };
    bool renewed = false;
    int r = FIRN_EIO;
    for (size_t tried = 0; tried < s->hosts;) {
        int64_t left = end - mono_ms();
        if (left <= 0)
            break;
        int64_t share = left / (int64_t)(s->hosts - tried);
        r = s->user[0] && !s->token[0] && !s->open_door ? log_in(s, share, &why) : 0;
        if (r == FIRN_EAUTH) /* the others would say the same */
            break;
        if (r == 0)
            r = post(s, path, write, share, write ? end - mono_ms() : share, &why);
        else
            r = FIRN_EIO; /* the request itself was not sent */
        if (r == 0 && s->status == 200)
            return 0;
        if (r == 0 && turned_away(s, explain(s, &why))) {
            s->token[0] = '\0';
            s->open_door = false;
            if (s->user[0] && !renewed) {
                renewed = true;
                continue;
            }
            r = FIRN_EIO;
        }
        move_on(s);
        tried++;
        if (write && r != FIRN_EIO)
            return firn__diag(d, FIRN_EUNKNOWN, 0, "%s", why.text);
    }
    return firn__diag(d, FIRN_EIO, 0, "%s", why.text);
}

static int garbled(struct etcd *s, int error, struct firn_diag *d)
{
    firn__diag(d, error, 0, "etcd at %.60s gave an answer that firn does not understand",
               member(s));
    move_on(s);
    return error;
}

/* ---- is it still the same store? ---- */

/* What an answer tells. `ordered`: it is at least as new as every earlier ordered one; `by` 1 for a
 * write that was done, which raised the revision. */
static void notice(struct etcd *s, const struct etcd_head *head, bool ordered, uint64_t by)
{
    if (s->changed)
        return;
    if (head->cluster != s->seen.cluster) {
        s->changed = true;
        firn__diag(&s->why, 0, 0,
                   "etcd at %.60s is of the cluster %" PRIx64 ", not %" PRIx64
                   ": mend the store's URL",
                   member(s), head->cluster, s->seen.cluster);
    } else if (ordered && head->revision < s->seen.revision + by) {
        s->changed = true;
        firn__diag(&s->why, 0, 0,
                   "etcd went back from revision %" PRIu64 " to %" PRIu64
                   ": it was restored or wiped, so `firn fence` is due",
                   s->seen.revision, head->revision);
    } else if (ordered) {
        s->seen.revision = head->revision;
    }
}

static int another(const struct etcd *s, int error, struct firn_diag *d)
{
    return firn__diag(d, error, 0, "%s", s->why.text);
}

/* ---- reading ---- */

struct one { /* a register that is being read */
    struct firn_slice key;
    struct firn_record *out;
    bool found;
};

static int take_one(void *user, struct firn_slice key, struct firn_slice value)
{
    struct one *o = user;
    if (key.len != o->key.len || o->found)
        return FIRN_EFORMAT;
    memcpy(o->out->value, value.p, value.len);
    o->out->len = value.len;
    o->found = true;
    return 0;
}

/* The HTTP Date of the answer, whole seconds. */
static uint64_t store_ms(const struct etcd *s)
{
    struct curl_header *h;
    if (curl_easy_header(s->curl, "Date", 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return 0;
    time_t t = curl_getdate(h->value, NULL);
    return t > 0 ? (uint64_t)t * 1000 : 0;
}

static int look(struct etcd *s, struct firn_slice key, bool fresh, int64_t end,
                struct firn_record *out, struct etcd_head *head, struct firn_diag *d)
{
    struct one one = { key, out, false };
    struct etcd_range range = { .root = root(s), .prefix = key, .each = take_one, .user = &one };
    if (key.len > STORE_KEY_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "key too long");
    if (!etcd_encode_read(&s->request, root(s), key, fresh))
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    int r = ask(s, KV_RANGE, false, end, d);
    if (r != 0)
        return r;
    if (etcd_decode_range(answer(s), &range) != 0 || range.more)
        return garbled(s, FIRN_EIO, d);
    out->store_ms = store_ms(s);
    *head = range.head;
    return one.found ? 0 : FIRN_ENOENT;
}

static int look_and_notice(struct etcd *s, struct firn_slice key, bool fresh, int64_t end,
                           struct firn_record *out, struct etcd_head *head, struct firn_diag *d)
{
    int r = look(s, key, fresh, end, out, head, d);
    if (r == 0 || r == FIRN_ENOENT) {
        notice(s, head, fresh, 0);
        if (head->cluster != s->seen.cluster) /* its registers are none of ours */
            return another(s, FIRN_ESTORE, d);
    }
    return r;
}

static int etcd_read(struct firn_store *base, struct firn_slice key, bool fresh,
                     struct firn_record *out, struct firn_diag *d)
{
    struct etcd *s = (struct etcd *)base;
    struct etcd_head head;
    return look_and_notice(s, key, fresh, mono_ms() + s->timeout_ms, out, &head, d);
}

/* Linearizable: a slot that a lagging member does not know yet would pass for a missing one. */
static int etcd_scan(struct firn_store *base, struct firn_slice prefix, firn_record_fn *each,
                     void *user, struct firn_diag *d)
{
    struct etcd *s = (struct etcd *)base;
    struct etcd_range range = { .root = root(s), .prefix = prefix, .each = each, .user = user };
    struct firn_slice after = { NULL, 0 };
    int64_t end = mono_ms() + s->timeout_ms;
    if (prefix.len > STORE_KEY_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "prefix too long");
    do {
        if (!etcd_encode_scan(&s->request, root(s), prefix, after, PAGE_REGISTERS))
            return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
        int r = ask(s, KV_RANGE, false, end, d);
        if (r != 0)
            return r;
        r = etcd_decode_range(answer(s), &range);
        if (r == FIRN_EFORMAT && !range.stopped)
            return garbled(s, FIRN_EIO, d);
        if (r != 0)
            return r;
        notice(s, &range.head, true, 0);
        if (range.head.cluster != s->seen.cluster)
            return another(s, FIRN_ESTORE, d);
        after = firn_slice(range.last, range.last_len);
    } while (range.more);
    return 0;
}

/* ---- writing ---- */

static int may_write(const struct etcd *s, const struct firn_cas *want, size_t count,
                     struct firn_diag *d)
{
    for (size_t i = 0; i < count; i++) {
        if (want[i].key.len > STORE_KEY_MAX || want[i].value.len > STORE_VALUE_MAX)
            return firn__diag(d, FIRN_EINVAL, 0, "key or value too long");
        if (!want[i].old.p && !want[i].value.p)
            return firn__diag(d, FIRN_EINVAL, 0, "a register to be removed needs its old value");
    }
    return s->changed ? another(s, FIRN_ESTORE, d) : 0;
}

static int etcd_cas(struct firn_store *base, const struct firn_cas *want, struct firn_diag *d)
{
    struct etcd *s = (struct etcd *)base;
    struct etcd_head head;
    int r = may_write(s, want, 1, d);
    if (r != 0)
        return r;
    if (!etcd_encode_cas(&s->request, root(s), want))
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    r = ask(s, KV_TXN, true, mono_ms() + s->timeout_ms, d);
    if (r != 0)
        return r;
    r = etcd_decode_cas(answer(s), !want->value.p, &head);
    if (r == FIRN_EFORMAT)
        return garbled(s, FIRN_EUNKNOWN, d);
    notice(s, &head, true, r == 0);
    if (s->changed) /* what was written then was written to the other store */
        return another(s, r == 0 ? FIRN_EUNKNOWN : FIRN_ESTORE, d);
    return r;
}

static int etcd_cas_many(struct firn_store *base, const struct firn_cas *want, size_t count,
                         int *result, struct firn_diag *d)
{
    struct etcd *s = (struct etcd *)base;
    struct etcd_head head;
    int each[ETCD_MANY_MAX];
    if (count > ETCD_MANY_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "%zu registers in one transaction, etcd takes %d",
                          count, ETCD_MANY_MAX);
    int r = may_write(s, want, count, d);
    if (r != 0 || count == 0)
        return r;
    if (!etcd_encode_cas_many(&s->request, root(s), want, count))
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    r = ask(s, KV_TXN, true, mono_ms() + s->timeout_ms, d);
    if (r != 0)
        return r;
    if (etcd_decode_cas_many(answer(s), want, count, each, &head) != 0)
        return garbled(s, FIRN_EUNKNOWN, d);
    bool wrote = false;
    for (size_t i = 0; i < count; i++)
        wrote |= each[i] == 0;
    notice(s, &head, true, wrote);
    if (s->changed)
        return another(s, wrote ? FIRN_EUNKNOWN : FIRN_ESTORE, d);
    memcpy(result, each, count * sizeof *result);
    return 0;
}

/* ---- waiting ---- */

/* Until something happens to the register from that revision on, or seems to. Whatever goes wrong here
 * only makes the caller look again. */
static void watch(struct etcd *s, struct firn_slice key, uint64_t revision, int64_t ms)
{
    int64_t began = mono_ms();
    if (etcd_encode_watch(&s->request, root(s), key, revision))
        (void)perform(s, s->watcher, WATCH, ms, ms);
    int64_t took = mono_ms() - began;
    if (!s->woken && took < ms) /* it failed; not so fast again */
        sleep_ms(ms - took < WATCH_PAUSE_MS ? ms - took : WATCH_PAUSE_MS);
}

/* The watch begins at the revision after the one that was looked at, so nothing falls in between. A
 * member that was cut off has no news: so no watch is longer than the time-out of a call, and then
 * another look finds a member that has. */
static int etcd_wait(struct firn_store *base, struct firn_slice key, struct firn_slice old,
                     uint32_t timeout_ms, struct firn_record *out, struct firn_diag *d)
{
    struct etcd *s = (struct etcd *)base;
    int64_t end = mono_ms() + timeout_ms;
    for (bool first = true;; first = false) {
        struct etcd_head head;
        int64_t now = mono_ms(), left = end - now;
        if (left <= 0 && !first)
            return FIRN_EAGAIN;
        if (first && left < LOOK_MS_MIN)
            left = LOOK_MS_MIN;
        left = left < s->timeout_ms ? left : s->timeout_ms;
        int r = look_and_notice(s, key, true, now + left, out, &head, d);
        if (r == FIRN_EIO && !first && mono_ms() >= end)
            return FIRN_EAGAIN;
        bool same = r == FIRN_ENOENT ? !old.p
                                     : r == 0 && old.p && out->len == old.len &&
                                           memcmp(out->value, old.p, old.len) == 0;
        if (!same)
            return r;
        left = end - mono_ms();
        if (left > 0)
            watch(s, key, head.revision + 1, left < s->timeout_ms ? left : s->timeout_ms);
    }
}

/* ---- opening and closing ---- */

/* Look anew: what answers now is the store. */
static int etcd_identity(struct firn_store *base, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    struct etcd *s = (struct etcd *)base;
    struct firn_record rec;
    int r = look(s, firn_slice("", 0), true, mono_ms() + s->timeout_ms, &rec, &s->seen, d);
    if (r != 0 && r != FIRN_ENOENT)
        return r;
    s->changed = false;
    snprintf(out, STORE_ID_TEXT_BUF, "etcd:%016" PRIx64, s->seen.cluster);
    return 0;
}

static void etcd_close(struct firn_store *base)
{
    struct etcd *s = (struct etcd *)base;
    curl_easy_cleanup(s->curl);
    curl_easy_cleanup(s->watcher);
    curl_slist_free_all(s->fields);
    etcd_text_done(&s->request);
    free(s->answer);
    explicit_bzero(s, sizeof *s);
    free(s);
    curl_global_cleanup();
}

static const struct firn_store_ops ops = {
    .size = sizeof ops,
    .scheme = "etcd",
    .shared = true,
    .read = etcd_read,
    .cas = etcd_cas,
    .cas_many = etcd_cas_many,
    .scan = etcd_scan,
    .identity = etcd_identity,
    .close = etcd_close,
    .wait = etcd_wait,
};

/* Before these versions a single member could forget writes that it had acknowledged when it crashed
 * (etcd-io/etcd#14370). */
static int check_version(struct etcd *s, struct firn_diag *d)
{
    unsigned v[3];
    if (!etcd_encode_status(&s->request))
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    int r = ask(s, STATUS, false, mono_ms() + s->timeout_ms, d);
    if (r != 0)
        return r;
    if (etcd_decode_status(answer(s), v) != 0)
        return garbled(s, FIRN_EIO, d);
    if (v[0] < 3 ||
        (v[0] == 3 && (v[1] < 4 || (v[1] == 4 && v[2] < 21) || (v[1] == 5 && v[2] < 5))))
        return firn__diag(d, FIRN_ENOTSUP, 0,
                          "etcd at %.60s is %u.%u.%u, which can lose writes: use 3.4.21, 3.5.5 or "
                          "later",
                          member(s), v[0], v[1], v[2]);
    return 0;
}

static bool dress(struct etcd *s, CURL *c, const struct store_url *u)
{
    const char *ca = store_url_param(u, "ca"), *cert = store_url_param(u, "cert"),
               *key = store_url_param(u, "key");
    return curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) == CURLE_OK &&
           (!ca || curl_easy_setopt(c, CURLOPT_CAINFO, ca) == CURLE_OK) &&
           (!cert || curl_easy_setopt(c, CURLOPT_SSLCERT, cert) == CURLE_OK) &&
           (!key || curl_easy_setopt(c, CURLOPT_SSLKEY, key) == CURLE_OK) &&
           curl_easy_setopt(c, CURLOPT_ERRORBUFFER, s->error) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_READFUNCTION, give) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_READDATA, s) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, give_again) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_SEEKDATA, s) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, c == s->watcher ? take_news : take) ==
               CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEDATA, s) == CURLE_OK;
}

static int take_url(struct etcd *s, const struct store_url *u, struct firn_diag *d)
{
    const char *tls = store_url_param(u, "tls");
    bool secure = tls && strcmp(tls, "yes") == 0;
    size_t len = strlen(u->path);
    if (tls && !secure && strcmp(tls, "no") != 0)
        return firn__diag(d, FIRN_EFORMAT, 0, "etcd:// takes tls=yes or tls=no");
    for (size_t i = 0; !secure && i < u->param_n; i++)
        if (strcmp(u->param[i].name, "tls") != 0)
            return firn__diag(d, FIRN_EFORMAT, 0, "etcd:// takes %s= only with tls=yes",
                              u->param[i].name);
    if (store_url_param(u, "key") && !store_url_param(u, "cert"))
        return firn__diag(d, FIRN_EFORMAT, 0, "etcd:// takes key= only with cert=");
    for (size_t i = 0; i < u->host_n; i++) {
        const char *name = u->host[i].name;
        bool v6 = strchr(name, ':') != NULL;
        if (name[strspn(name, v6 ? "0123456789abcdefABCDEF:."
                                 : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789.-_")])
            return firn__diag(d, FIRN_EFORMAT, 0, "'%.80s' is no host name", name);
        snprintf(s->origin[i], sizeof s->origin[i], "%s://%s%s%s:%u", secure ? "https" : "http",
                 v6 ? "[" : "", name, v6 ? "]" : "", u->host[i].port);
    }
    s->hosts = u->host_n;
    while (len > 0 && u->path[len - 1] == '/')
        len--;
    s->root_len = (size_t)snprintf(s->root, sizeof s->root, "/%.*s/", len ? (int)len : 4,
                                   len ? u->path : "firn");
    memcpy(s->user, u->user, sizeof s->user);
    memcpy(s->password, u->password, sizeof s->password);
    return 0;
}

int firn_store_etcd_open(const struct store_url *u, uint32_t timeout_ms, struct firn_store **out,
                         struct firn_diag *d)
{
    char id[STORE_ID_TEXT_BUF];
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return firn__diag(d, FIRN_ENOMEM, 0, "libcurl does not start");
    struct etcd *s = calloc(1, sizeof *s);
    if (!s) {
        curl_global_cleanup();
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    }
    s->base.ops = &ops;
    s->timeout_ms = timeout_ms;
    s->curl = curl_easy_init();
    s->watcher = curl_easy_init();
    int r = take_url(s, u, d);
    if (r == 0 && (!s->curl || !s->watcher || !put_fields(s)))
        r = firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    if (r == 0 && (!dress(s, s->curl, u) || !dress(s, s->watcher, u)))
        r = firn__diag(d, FIRN_ENOTSUP, 0, "this libcurl lacks TLS or an option that firn needs");
    if (r == 0)
        r = check_version(s, d);
    if (r == 0)
        r = etcd_identity(&s->base, id, d);
    if (r != 0) {
        etcd_close(&s->base);
        return r;
    }
    *out = &s->base;
    return 0;
}
