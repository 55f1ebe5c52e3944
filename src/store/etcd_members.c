/*
 * HTTP requests to the members of an etcd cluster, by libcurl. libcurl retries by itself: when a
 * connection that was kept open turns out to be dead, it sends the request again on a new one,
 * although the server may have read the first. Bodies are therefore handed to it in pieces, and a
 * second reading of a write's body is refused. The pieces also tell whether anything was sent:
 * without a byte of its body a request cannot take effect.
 *
 * Tested by tests/store/etcd.py.
 */
#include "store/etcd_members.h"
#include "store/check.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "platform/mono.h"
#include "wire/url.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ANSWER_BYTES_MAX = 8 << 20, /* a page of full registers has about 1 MB */
    LISTEN_PAUSE_MS = 100,
    ORIGIN_BUF = 300,
    TROUBLE_BUF = 72,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_UNAUTHENTICATED = 16,
};

struct etcd_members {
    CURL *curl;
    CURL *listener; /* of its own: a watch ends with its connection */
    struct curl_slist *fields;
    char origin[STORE_HOSTS_MAX][ORIGIN_BUF];   /* "https://host:2379" */
    size_t hosts, at;                           /* the one in use */
    char trouble[STORE_HOSTS_MAX][TROUBLE_BUF]; /* of each when it was last asked; "": none */
    char user[128], password[256];              /* empty: none */
    char token[ETCD_TOKEN_BUF];
    bool open_door; /* a user was given, but etcd asks for none */

    struct etcd_text request;
    size_t given; /* bytes of it that libcurl took */
    bool write;   /* it must not be sent twice */
    char *answer;
    size_t answer_len, answer_room;
    bool answer_big;
    bool watching, woken; /* the watch began; there is news */
    long status;
    const char *brief; /* why no answer came, in a few words; NULL: one came */
    char error[CURL_ERROR_SIZE];
};

struct etcd_text *etcd_request(struct etcd_members *m)
{
    return &m->request;
}

struct firn_slice etcd_answer(const struct etcd_members *m)
{
    return firn_slice(m->answer, m->answer_len);
}

uint64_t etcd_answer_date(const struct etcd_members *m)
{
    struct curl_header *h;
    if (curl_easy_header(m->curl, "Date", 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return 0;
    time_t t = curl_getdate(h->value, NULL);
    return t > 0 ? (uint64_t)t * 1000 : 0;
}

const char *etcd_member(const struct etcd_members *m)
{
    return strstr(m->origin[m->at], "//") + 2;
}

/* ---- one request ---- */

static size_t give(char *to, size_t size, size_t n, void *user)
{
    struct etcd_members *m = user;
    firn_assert(m->given <= m->request.out.len, "given=%zu", m->given);
    size_t len = m->request.out.len - m->given;
    len = len < size * n ? len : size * n;
    memcpy(to, m->request.out.p + m->given, len);
    m->given += len;
    return len;
}

static int give_again(void *user, curl_off_t offset, int origin)
{
    struct etcd_members *m = user;
    if (m->write || offset != 0 || origin != SEEK_SET)
        return CURL_SEEKFUNC_FAIL;
    m->given = 0;
    return CURL_SEEKFUNC_OK;
}

static size_t take(char *p, size_t size, size_t n, void *user)
{
    struct etcd_members *m = user;
    size_t len = size * n;
    if (len > ANSWER_BYTES_MAX - m->answer_len) {
        m->answer_big = true;
        return 0;
    }
    if (m->answer_room - m->answer_len < len) {
        size_t room = (m->answer_len + len) * 2;
        char *bigger = realloc(m->answer, room);
        if (!bigger)
            return 0;
        m->answer = bigger;
        m->answer_room = room;
    }
    memcpy(m->answer + m->answer_len, p, len);
    m->answer_len += len;
    return len;
}

/* Of a watch. The first line says that it began; whatever follows is news, and the end of it. */
static size_t take_news(char *p, size_t size, size_t n, void *user)
{
    struct etcd_members *m = user;
    size_t len = size * n;
    const char *news = p;
    if (!m->watching) {
        const char *line_end = memchr(p, '\n', len);
        if (!line_end)
            return len;
        m->watching = true;
        news = line_end + 1;
    }
    m->woken = news < p + len;
    return m->woken ? 0 : len;
}

static bool put_fields(struct etcd_members *m)
{
    char token[ETCD_TOKEN_BUF + 32];
    struct curl_slist *fields = curl_slist_append(NULL, "Content-Type: application/json"), *more;
    more = fields ? curl_slist_append(fields, "Expect:") : NULL; /* no "100 Continue" */
    snprintf(token, sizeof token, "Authorization: %s", m->token);
    if (more && m->token[0])
        more = curl_slist_append(fields, token);
    explicit_bzero(token, sizeof token);
    if (!more) {
        curl_slist_free_all(fields);
        return false;
    }
    curl_easy_setopt(m->curl, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(m->listener, CURLOPT_HTTPHEADER, fields);
    curl_slist_free_all(m->fields);
    m->fields = fields;
    return true;
}

static CURLcode perform(struct etcd_members *m, CURL *c, const char *path, int64_t connect_ms,
                        int64_t total_ms)
{
    char url[ORIGIN_BUF + 64];
    snprintf(url, sizeof url, "%s%s", m->origin[m->at], path);
    m->given = m->answer_len = 0;
    m->answer_big = m->watching = m->woken = false;
    m->status = 0;
    m->error[0] = '\0';
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, (long)m->request.out.len);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)(connect_ms > 0 ? connect_ms : 1));
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(total_ms > 0 ? total_ms : 1));
    CURLcode rc = curl_easy_perform(c);
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &m->status);
    return rc;
}

/* m->request to the member in use. 0: an answer came, with m->status. FIRN_EIO: nothing was sent.
 * FIRN_EUNKNOWN: something was, and that is all that is known. */
static int post(struct etcd_members *m, const char *path, bool write, int64_t connect_ms,
                int64_t total_ms, struct firn_diag *d)
{
    m->write = write;
    CURLcode rc = perform(m, m->curl, path, connect_ms, total_ms);
    m->brief = rc == CURLE_OK ? NULL : curl_easy_strerror(rc);
    if (rc == CURLE_OK)
        return 0;
    firn__diag(d, 0, 0, "etcd at %.60s: %.110s", etcd_member(m),
               m->answer_big ? "its answer is too large"
               : m->error[0] ? m->error
                             : curl_easy_strerror(rc));
    return m->given == 0 ? FIRN_EIO : FIRN_EUNKNOWN;
}

/* An answer that is no success: its gRPC code. That no user was named is one way of being
 * unauthenticated; either way nothing was done. */
static int explain(const struct etcd_members *m, struct firn_diag *d)
{
    char text[120];
    int code = etcd_decode_error(etcd_answer(m), text, sizeof text);
    bool no_user = code == GRPC_INVALID_ARGUMENT && strstr(text, "user name is empty");
    firn__diag(d, 0, 0, "etcd at %.60s answered %ld %s%s", etcd_member(m), m->status, text,
               no_user && !m->user[0] ? ": give etcd://USER:PASSWORD@" : "");
    return no_user ? GRPC_UNAUTHENTICATED : code;
}

/* ---- the token ---- */

/* Takes the place of m->request for a moment. m->token is empty: etcd refuses even this request
 * when it comes with a token that is no longer good. */
static int log_in(struct etcd_members *m, int64_t ms, struct firn_diag *d)
{
    struct etcd_text mine = m->request;
    m->request = (struct etcd_text){ .compares = 0 };
    int r = !put_fields(m)
                ? firn__diag(d, FIRN_ENOMEM, 0, "out of memory") /* drops the old token */
            : !etcd_encode_login(&m->request, m->user, m->password)
                ? firn__diag(d, FIRN_EAUTH, 0, "etcd's user and password must be UTF-8")
                : post(m, ETCD_LOGIN, false, ms, ms, d);
    if (r != 0)
        goto restore;
    if (m->status == 200) {
        r = etcd_decode_login(etcd_answer(m), m->token);
        if (r != 0)
            firn__diag(d, r, 0, "etcd at %.60s gave no token", etcd_member(m));
    } else {
        int code = explain(m, d);
        m->open_door = code == GRPC_FAILED_PRECONDITION; /* authentication is off */
        r = m->open_door ? 0
            : code == GRPC_INVALID_ARGUMENT || code == GRPC_PERMISSION_DENIED ||
                    code == GRPC_UNAUTHENTICATED
                ? FIRN_EAUTH
                : FIRN_EIO;
    }
    if (m->answer)
        explicit_bzero(m->answer, m->answer_len);
    if (r == 0 && !put_fields(m))
        r = firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
restore:
    if (m->request.out.p)
        explicit_bzero(m->request.out.p, m->request.out.len);
    etcd_text_done(&m->request);
    m->request = mine;
    return r;
}

/* ---- a request to the members ---- */

/* The next member's turn. */
static void move_on(struct etcd_members *m)
{
    m->at = (m->at + 1) % m->hosts;
}

/* What is wrong with the member in use, without the words that name it: those come again. */
static void note_trouble(struct etcd_members *m, const char *why)
{
    const char *text = m->brief ? m->brief : strstr(why, etcd_member(m));
    if (text && !m->brief)
        text += strlen(etcd_member(m));
    text = text ? text : why;
    text += strspn(text, ": ");
    snprintf(m->trouble[m->at], sizeof m->trouble[0], "%s", text[0] ? text : "no answer");
}

/* A quorum is missing, not one member: name all of them, each with what was wrong with it when it
 * was last asked. */
static int all_troubles(const struct etcd_members *m, int error, const char *why,
                        struct firn_diag *d)
{
    char text[sizeof d->text];
    size_t n = 0, share = (sizeof text - 8) / m->hosts;
    if (m->hosts == 1)
        return firn__diag(d, error, 0, "%s", why);
    text[0] = '\0';
    for (size_t i = 0; i < m->hosts && n < sizeof text; i++) {
        char one[ORIGIN_BUF + TROUBLE_BUF + 4];
        snprintf(one, sizeof one, "%s: %s", strstr(m->origin[i], "//") + 2,
                 m->trouble[i][0] ? m->trouble[i] : "not asked");
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s", n ? "; " : "etcd ",
                              (int)(share > 2 ? share - 2 : 0), one);
    }
    return firn__diag(d, error, 0, "%s", text);
}

/* Each member gets its share of the time that is left, so that a silent one leaves
 * some for the next; a write that went out has it all. */
int etcd_ask(struct etcd_members *m, const char *path, bool write, int64_t end_ms,
             struct firn_diag *d)
{
    struct firn_diag why = { 0, "no time was left to ask etcd" };
    bool renewed = false;
    int r = FIRN_EIO;
    for (size_t tried = 0; tried < m->hosts;) {
        int64_t left = end_ms - mono_now_ms();
        if (left <= 0)
            break;
        int64_t share = left / (int64_t)(m->hosts - tried);
        r = m->user[0] && !m->token[0] && !m->open_door ? log_in(m, share, &why) : 0;
        if (r == FIRN_EAUTH) /* the other members would refuse it, too */
            break;
        if (r == 0)
            r = post(m, path, write, share, write ? end_ms - mono_now_ms() : share, &why);
        else
            r = FIRN_EIO; /* the request itself was not sent */
        if (r == 0 && m->status == 200) {
            m->trouble[m->at][0] = '\0';
            return 0;
        }
        if (r == 0 && explain(m, &why) == GRPC_UNAUTHENTICATED) {
            m->token[0] = '\0';
            m->open_door = false;
            if (m->user[0] && !renewed) {
                renewed = true;
                continue;
            }
            r = m->user[0] ? FIRN_EIO : FIRN_EAUTH;
            if (r == FIRN_EAUTH) /* the other members would say so, too */
                break;
        }
        note_trouble(m, why.text);
        move_on(m);
        tried++;
        if (write && r != FIRN_EIO)
            return all_troubles(m, FIRN_EUNKNOWN, why.text, d);
    }
    return r == FIRN_EAUTH ? firn__diag(d, FIRN_EIO, 0, "%s", why.text)
                           : all_troubles(m, FIRN_EIO, why.text, d);
}

int etcd_distrust(struct etcd_members *m, int error, struct firn_diag *d)
{
    firn__diag(d, error, 0, "etcd at %.60s gave an answer that firn does not understand",
               etcd_member(m));
    move_on(m);
    return error;
}

void etcd_listen(struct etcd_members *m, int64_t ms)
{
    int64_t began = mono_now_ms();
    m->write = false;
    (void)perform(m, m->listener, ETCD_WATCH, ms, ms);
    int64_t took = mono_now_ms() - began;
    if (!m->woken && took < ms) /* it failed; not so fast again */
        store_sleep_ms(ms - took < LISTEN_PAUSE_MS ? ms - took : LISTEN_PAUSE_MS);
}

/* ---- opening and closing ---- */

static bool dress(struct etcd_members *m, CURL *c, const struct store_url *u)
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
           curl_easy_setopt(c, CURLOPT_ERRORBUFFER, m->error) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_READFUNCTION, give) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_READDATA, m) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, give_again) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_SEEKDATA, m) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, c == m->listener ? take_news : take) ==
               CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEDATA, m) == CURLE_OK;
}

static int take_url(struct etcd_members *m, const struct store_url *u, struct firn_diag *d)
{
    const char *tls = store_url_param(u, "tls");
    bool secure = tls && strcmp(tls, "yes") == 0;
    if (tls && !secure && strcmp(tls, "no") != 0)
        return firn__diag(d, FIRN_EFORMAT, 0, "etcd:// takes tls=yes or tls=no");
    for (size_t i = 0; !secure && i < u->param_n; i++)
        if (strcmp(u->param[i].name, "tls") != 0)
            return firn__diag(d, FIRN_EFORMAT, 0, "etcd:// takes %s= only with tls=yes",
                              u->param[i].name);
    if (store_url_param(u, "key") && !store_url_param(u, "cert"))
        return firn__diag(d, FIRN_EFORMAT, 0, "etcd:// takes key= only with cert=");
    for (size_t i = 0; i < u->host_n; i++) {
        char at[HOST_PORT_BUF];
        const char *name = u->host[i].name;
        bool v6 = strchr(name, ':') != NULL;
        if (name[strspn(name, v6 ? "0123456789abcdefABCDEF:."
                                 : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789.-_")])
            return firn__diag(d, FIRN_EFORMAT, 0, "'%.80s' is no host name", name);
        snprintf(m->origin[i], sizeof m->origin[i], "%s://%s", secure ? "https" : "http",
                 host_port_write(name, u->host[i].port, at));
    }
    m->hosts = u->host_n;
    memcpy(m->user, u->user, sizeof m->user);
    memcpy(m->password, u->password, sizeof m->password);
    return 0;
}

void etcd_members_close(struct etcd_members *m)
{
    if (!m)
        return;
    curl_easy_cleanup(m->curl);
    curl_easy_cleanup(m->listener);
    curl_slist_free_all(m->fields);
    etcd_text_done(&m->request);
    free(m->answer);
    explicit_bzero(m, sizeof *m);
    free(m);
    curl_global_cleanup();
}

int etcd_members_open(const struct store_url *u, struct etcd_members **out, struct firn_diag *d)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return firn__diag(d, FIRN_ENOMEM, 0, "libcurl does not start");
    struct etcd_members *m = calloc(1, sizeof *m);
    if (!m) {
        curl_global_cleanup();
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    }
    m->curl = curl_easy_init();
    m->listener = curl_easy_init();
    int r = take_url(m, u, d);
    if (r == 0 && (!m->curl || !m->listener || !put_fields(m)))
        r = firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    if (r == 0 && (!dress(m, m->curl, u) || !dress(m, m->listener, u)))
        r = firn__diag(d, FIRN_ENOTSUP, 0, "this libcurl lacks TLS or an option that firn needs");
    if (r != 0)
        etcd_members_close(m);
    else
        *out = m;
    return r;
}
