/*
 * etcd_json.h - requests to etcd's JSON gateway and its answers: pure functions over text.
 *
 * The gateway forgives too much: it ignores fields that it does not know, and a transaction without
 * a compare succeeds. So the encoder counts its compares, and its bytes are fixed by tests. The
 * decoder takes nothing for granted: an answer that is not wholly as it must be is FIRN_EFORMAT.
 */
#ifndef FIRN_STORE_ETCD_JSON_H
#define FIRN_STORE_ETCD_JSON_H

#include "store/store.h"
#include "wire/buf.h"

#define ETCD_ROOT_MAX  160  /* bytes in front of every key: "/" + the URL's path + "/" */
#define ETCD_TOKEN_BUF 2048 /* simple tokens are short, a JWT may have a kilobyte */

/* etcd allows 128 operations in a transaction and takes the outer ones off that for the inner ones:
 * one is left for each of 127. */
enum { ETCD_MANY_MAX = 127 };

struct etcd_text { /* a request; starts zeroed, reused, freed by etcd_text_done() */
    struct buf out;
    size_t compares;
};

struct etcd_head { /* of every answer */
    uint64_t cluster, revision;
};

void etcd_text_done(struct etcd_text *t);

/* ---- requests; each begins the text anew. false: no memory ---- */

/* /v3/kv/txn. A register that must be absent is compared by its create revision 0: a live key
 * never has that, and where the gateway would ignore the field or the target, it would still
 * mean absent. */
bool etcd_encode_cas(struct etcd_text *t, struct firn_slice root, const struct firn_cas *want);
bool etcd_encode_cas_many(struct etcd_text *t, struct firn_slice root, const struct firn_cas *want,
                          size_t count);

/* /v3/kv/range: one register; or those that begin with `prefix`, after the key `after` unless
 * its p is NULL, at most `limit`. Without a sort order etcd gives them by key, and reads no more
 * than that. */
bool etcd_encode_read(struct etcd_text *t, struct firn_slice root, struct firn_slice key,
                      bool fresh);
bool etcd_encode_scan(struct etcd_text *t, struct firn_slice root, struct firn_slice prefix,
                      struct firn_slice after, unsigned limit);

/* /v3/watch: every change of the register from that revision on. */
bool etcd_encode_watch(struct etcd_text *t, struct firn_slice root, struct firn_slice key,
                       uint64_t revision);

/* /v3/maintenance/status, which asks for nothing. */
bool etcd_encode_status(struct etcd_text *t);

/* /v3/auth/authenticate; false also for what is not UTF-8. */
bool etcd_encode_login(struct etcd_text *t, const char *user, const char *password);

/* ---- answers with status 200: FIRN_EFORMAT, then nothing is written ---- */

/* 0, or FIRN_ECONFLICT; `remove`: it was asked to remove. */
int etcd_decode_cas(struct firn_slice body, bool remove, struct etcd_head *head);
int etcd_decode_cas_many(struct firn_slice body, const struct firn_cas *want, size_t count,
                         int *result, struct etcd_head *head);

struct etcd_range {           /* starts zeroed but for its first part; serves all pages of a scan */
    uint64_t cluster;         /* whose registers they must be; 0: any cluster's */
    struct firn_slice root;   /* what keys begin with; taken off */
    struct firn_slice prefix; /* what they go on with */
    firn_record_fn *each;
    void *user;
    struct etcd_head head;
    size_t count; /* registers so far */
    bool more;    /* there is another page */
    bool stopped; /* by `each` */
    char last[STORE_KEY_MAX];
    size_t last_len;
};

/* Calls `each` for every register; keys must rise, over all pages. FIRN_EFORMAT may come after
 * some calls, FIRN_ESTORE (another cluster's) comes before any. When `each` answers anything but
 * 0, that is the answer. */
int etcd_decode_range(struct firn_slice body, struct etcd_range *range);

int etcd_decode_login(struct firn_slice body, char token[ETCD_TOKEN_BUF]);

/* The member's version, as in { 3, 4, 23 }. */
int etcd_decode_status(struct firn_slice body, unsigned version[3]);

/* ---- answers with another status ---- */

/* The gRPC code, or 0 where there is none; the message is truncated and has no control
 * characters. */
int etcd_decode_error(struct firn_slice body, char *message, size_t size);

#endif
