/* TLS in memory: OpenSSL's client on one side, wire/tls.c on the other, the test carries the
 * bytes. */
#include "t.h"

#include "certs.h"
#include "wire/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

enum { CARRY_BYTES = 4096 };

struct world {
    struct cert ca, other_ca, ours, client, stranger;
    char cert[64], key[64], client_ca[64];
    struct tls_context *server;
};

struct client {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in, *out; /* what it reads, what it has written */
};

struct pair {
    struct client c;
    struct tls *t;
    struct buf sealed; /* from the server, not yet carried */
    char plain[2 * TLS_PLAIN_BYTES];
    size_t plain_len;
    int result; /* of the last tls_read() */
};

static void load(struct world *w, bool client_certs)
{
    struct firn_diag d = { 0, "" };
    struct tls_files f = { w->cert, w->key, client_certs ? w->client_ca : NULL, "" };
    T_EQ(tls_context_load(w->server, &f, &d), 0, "%s", d.text);
}

static void world_make(struct world *w, bool client_certs)
{
    w->ca = cert_make("firn test authority", NULL);
    w->other_ca = cert_make("another authority", NULL);
    w->ours = cert_make("localhost", &w->ca);
    w->client = cert_make("billing", &w->ca);
    w->stranger = cert_make("billing", &w->other_ca);
    cert_write(&w->ours, false, w->cert);
    cert_write(&w->ours, true, w->key);
    cert_write(&w->ca, false, w->client_ca);
    T_EQ(tls_context_new(TLS_SERVER, &w->server), 0);
    T_OK(!tls_context_on(w->server));
    load(w, client_certs);
    T_OK(tls_context_on(w->server));
}

static void world_done(struct world *w)
{
    struct cert *all[] = { &w->ca, &w->other_ca, &w->ours, &w->client, &w->stranger };
    for (size_t i = 0; i < T_LEN(all); i++)
        cert_free(all[i]);
    unlink(w->cert);
    unlink(w->key);
    unlink(w->client_ca);
    tls_context_free(w->server);
}

static void client_make(struct client *c, const struct cert *authority, const struct cert *own)
{
    c->ctx = SSL_CTX_new(TLS_client_method());
    X509_STORE_add_cert(SSL_CTX_get_cert_store(c->ctx), authority->x509);
    SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER, NULL);
    if (own) {
        SSL_CTX_use_certificate(c->ctx, own->x509);
        SSL_CTX_use_PrivateKey(c->ctx, own->key);
    }
    c->ssl = SSL_new(c->ctx);
    c->in = BIO_new(BIO_s_mem());
    c->out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(c->in, -1);
    SSL_set_bio(c->ssl, c->in, c->out);
    SSL_set_connect_state(c->ssl);
}

static void pair_make(struct pair *p, struct world *w, const struct cert *authority,
                      const struct cert *own)
{
    memset(p, 0, sizeof *p);
    buf_init(&p->sealed, 1 << 24);
    client_make(&p->c, authority, own);
    T_EQ(tls_accept(w->server, &p->t), 0);
}

static void pair_done(struct pair *p)
{
    SSL_free(p->c.ssl);
    SSL_CTX_free(p->c.ctx);
    tls_free(p->t);
    buf_done(&p->sealed);
    ERR_clear_error();
}

static void feed(struct pair *p, const char *bytes, size_t len)
{
    size_t got = 0;
    p->result = tls_read(p->t, bytes, len, p->plain + p->plain_len, sizeof p->plain - p->plain_len,
                         &got, &p->sealed);
    p->plain_len += got;
}

/* Carries what is there, in pieces of `step` bytes, in both directions; says whether there was
 * any. */
static bool carry(struct pair *p, size_t step)
{
    char bytes[CARRY_BYTES];
    bool any = p->sealed.len > 0;
    int n;
    BIO_write(p->c.in, p->sealed.p, (int)p->sealed.len);
    p->sealed.len = 0;
    while ((n = BIO_read(p->c.out, bytes, (int)step)) > 0) {
        any = true;
        feed(p, bytes, (size_t)n);
    }
    return any;
}

static void shake(struct pair *p, size_t step)
{
    for (int i = 0; i < 10; i++) {
        SSL_do_handshake(p->c.ssl);
        if (!carry(p, step))
            break;
    }
}

static bool both_ready(const struct pair *p)
{
    return SSL_is_init_finished(p->c.ssl) && tls_ready(p->t);
}

static struct world w;
static struct pair p;

T_TEST(tls_carries_both_ways)
{
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    static const size_t steps[] = { 1, 7, CARRY_BYTES };
    world_make(&w, false);
    for (size_t v = 0; v < T_LEN(versions); v++)
        for (size_t s = 0; s < T_LEN(steps); s++) {
            char back[16];
            pair_make(&p, &w, &w.ca, NULL);
            SSL_set_max_proto_version(p.c.ssl, versions[v]);
            SSL_set_alpn_protos(p.c.ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
            T_OK(!tls_ready(p.t) && tls_write(p.t, "x", 1, &p.sealed) == FIRN_EINVAL);
            shake(&p, steps[s]);
            T_OK(both_ready(&p));
            T_EQ(SSL_version(p.c.ssl), versions[v]);
            const unsigned char *alpn;
            unsigned alpn_len;
            SSL_get0_alpn_selected(p.c.ssl, &alpn, &alpn_len);
            T_OK(alpn_len == 8 && memcmp(alpn, "http/1.1", 8) == 0);
            T_OK(tls_peer_name(p.t) == NULL);

            SSL_write(p.c.ssl, "hello", 5);
            carry(&p, steps[s]);
            T_OK(p.result == 0 && p.plain_len == 5 && memcmp(p.plain, "hello", 5) == 0);
            T_EQ(tls_write(p.t, "world", 5, &p.sealed), 0);
            carry(&p, steps[s]);
            T_EQ(SSL_read(p.c.ssl, back, sizeof back), 5);
            T_OK(memcmp(back, "world", 5) == 0);

            SSL_shutdown(p.c.ssl);
            carry(&p, steps[s]);
            T_EQ(p.result, FIRN_ECLOSED);
            T_EQ(tls_write(p.t, "late", 4, &p.sealed), 0); /* we may still answer */
            tls_bye(p.t, &p.sealed);
            tls_bye(p.t, &p.sealed);
            carry(&p, steps[s]);
            T_EQ(SSL_read(p.c.ssl, back, sizeof back), 4);
            T_OK(SSL_read(p.c.ssl, back, sizeof back) == 0 &&
                 SSL_get_error(p.c.ssl, 0) == SSL_ERROR_ZERO_RETURN);
            pair_done(&p);
        }
    world_done(&w);
}

T_TEST(tls_large_data_fits_the_bounds)
{
    static char much[200 * 1000];
    t_random_bytes(much, sizeof much);
    world_make(&w, false);
    pair_make(&p, &w, &w.ca, NULL);
    shake(&p, CARRY_BYTES);
    T_OK(both_ready(&p));

    SSL_write(p.c.ssl, much, sizeof much);
    char *sent;
    size_t sent_len = (size_t)BIO_get_mem_data(p.c.out, &sent), at = 0, checked = 0;
    while (at < sent_len) { /* reads as large as they may be, cutting records anywhere */
        size_t part = 1 + t_random_below(TLS_READ_BYTES);
        part = part < sent_len - at ? part : sent_len - at;
        p.plain_len = 0;
        feed(&p, sent + at, part);
        T_EQ(p.result, 0);
        T_OK(p.plain_len <= TLS_PLAIN_BYTES && checked + p.plain_len <= sizeof much);
        T_OK(memcmp(p.plain, much + checked, p.plain_len) == 0);
        checked += p.plain_len;
        at += part;
    }
    T_EQ(checked, sizeof much);

    T_EQ(tls_write(p.t, much, sizeof much, &p.sealed), 0);
    T_OK(p.sealed.len > sizeof much && p.sealed.len < sizeof much + sizeof much / 256);
    BIO_write(p.c.in, p.sealed.p, (int)p.sealed.len);
    static char back[sizeof much];
    size_t n, got = 0;
    while (got < sizeof back && SSL_read_ex(p.c.ssl, back + got, sizeof back - got, &n) == 1)
        got += n;
    T_OK(got == sizeof much && memcmp(back, much, got) == 0);

    T_EQ(tls_read(p.t, much, TLS_READ_BYTES + 1, p.plain, sizeof p.plain, &n, &p.sealed),
         FIRN_EINVAL);
    T_EQ(tls_read(p.t, much, 1, p.plain, TLS_PLAIN_BYTES - 1, &n, &p.sealed), FIRN_EINVAL);
    pair_done(&p);
    world_done(&w);
}

T_TEST(tls_client_certificates)
{
    world_make(&w, true);
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    for (size_t v = 0; v < T_LEN(versions); v++) {
        pair_make(&p, &w, &w.ca, &w.client);
        SSL_set_max_proto_version(p.c.ssl, versions[v]);
        shake(&p, CARRY_BYTES);
        T_OK(both_ready(&p));
        T_STR(tls_peer_name(p.t), "billing");
        pair_done(&p);

        const struct cert *refused[] = { NULL, &w.stranger };
        for (size_t i = 0; i < T_LEN(refused); i++) {
            pair_make(&p, &w, &w.ca, refused[i]);
            SSL_set_max_proto_version(p.c.ssl, versions[v]);
            shake(&p, CARRY_BYTES);
            T_OK(!tls_ready(p.t) && tls_peer_name(p.t) == NULL);
            T_EQ(p.result, FIRN_EFORMAT);
            char byte;
            T_OK(SSL_read(p.c.ssl, &byte, 1) <= 0); /* 1.3's client learns it only now */
            T_EQ(SSL_get_error(p.c.ssl, -1), SSL_ERROR_SSL);
            pair_done(&p);
        }
    }
    world_done(&w);
}

T_TEST(tls_names_that_are_unclear_are_none)
{
    static const char *const names[] = { "two|names", "new\nline", "del\x7f" };
    world_make(&w, true);
    for (size_t i = 0; i < T_LEN(names); i++) {
        struct cert c = cert_make(names[i], &w.ca);
        pair_make(&p, &w, &w.ca, &c);
        shake(&p, CARRY_BYTES);
        T_OK(both_ready(&p));
        T_OK(tls_peer_name(p.t) == NULL);
        pair_done(&p);
        cert_free(&c);
    }
    world_done(&w);
}

T_TEST(tls_client_does_not_trust_us)
{
    world_make(&w, false);
    pair_make(&p, &w, &w.other_ca, NULL);
    shake(&p, CARRY_BYTES);
    T_OK(!SSL_is_init_finished(p.c.ssl));
    T_EQ(p.result, FIRN_EFORMAT); /* its alert */
    T_EQ(tls_write(p.t, "x", 1, &p.sealed), FIRN_EFORMAT);
    size_t n;
    T_EQ(tls_read(p.t, "x", 1, p.plain, sizeof p.plain, &n, &p.sealed), FIRN_EFORMAT);
    pair_done(&p);
    world_done(&w);
}

T_TEST(tls_resumes_with_the_name_but_not_across_a_load)
{
    static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
    world_make(&w, true);
    for (size_t v = 0; v < T_LEN(versions); v++) {
        char byte;
        pair_make(&p, &w, &w.ca, &w.client);
        SSL_set_max_proto_version(p.c.ssl, versions[v]);
        shake(&p, CARRY_BYTES);
        SSL_read(p.c.ssl, &byte, 1); /* takes in the tickets */
        SSL_SESSION *s = SSL_get1_session(p.c.ssl);
        SSL_shutdown(p.c.ssl);
        pair_done(&p);
        T_OK(s && SSL_SESSION_is_resumable(s));

        for (int again = 0; again < 2; again++) {
            pair_make(&p, &w, &w.ca, &w.client);
            SSL_set_max_proto_version(p.c.ssl, versions[v]);
            SSL_set_session(p.c.ssl, s);
            shake(&p, CARRY_BYTES);
            T_OK(both_ready(&p));
            T_EQ(SSL_session_reused(p.c.ssl), !again);
            T_STR(tls_peer_name(p.t), "billing");
            pair_done(&p);
            load(&w, true);
        }
        SSL_SESSION_free(s);
    }
    world_done(&w);
}

T_TEST(tls_old_versions_and_other_protocols_are_refused)
{
    world_make(&w, false);
    pair_make(&p, &w, &w.ca, NULL);
    SSL_set_security_level(p.c.ssl, 0);
    SSL_set_min_proto_version(p.c.ssl, TLS1_VERSION);
    SSL_set_max_proto_version(p.c.ssl, TLS1_1_VERSION);
    shake(&p, CARRY_BYTES);
    T_OK(!tls_ready(p.t));
    T_EQ(p.result, FIRN_EFORMAT);
    pair_done(&p);

    pair_make(&p, &w, &w.ca, NULL);
    SSL_set_alpn_protos(p.c.ssl, (const unsigned char *)"\x02h2", 3);
    shake(&p, CARRY_BYTES);
    T_EQ(p.result, FIRN_EFORMAT);
    pair_done(&p);
    world_done(&w);
}

T_TEST(tls_no_renegotiation)
{
    world_make(&w, false);
    pair_make(&p, &w, &w.ca, NULL);
    SSL_set_max_proto_version(p.c.ssl, TLS1_2_VERSION);
    shake(&p, CARRY_BYTES);
    T_OK(both_ready(&p));
    SSL_renegotiate(p.c.ssl);
    shake(&p, CARRY_BYTES);
    T_OK(!SSL_is_init_finished(p.c.ssl));
    pair_done(&p);
    world_done(&w);
}

T_TEST(tls_garbage_gets_an_alert)
{
    world_make(&w, false);
    for (int i = 0; i < 200; i++) {
        char bytes[600];
        size_t len = 1 + t_random_below(sizeof bytes);
        pair_make(&p, &w, &w.ca, NULL);
        t_random_bytes(bytes, sizeof bytes);
        bytes[0] = TLS_FIRST_BYTE;
        if (i % 2)
            memcpy(bytes + 1, "\x03\x01\x00\x40\x01", 5);
        feed(&p, bytes, len);
        T_OK(p.result == 0 || p.result == FIRN_EFORMAT);
        T_OK(!tls_ready(p.t) && p.plain_len == 0);
        T_OK(p.sealed.len < 64); /* an alert at most */
        pair_done(&p);
    }
    world_done(&w);
}

/* A handshake that ends anywhere leaves nothing behind; one with a byte changed does not end
 * well. */
T_TEST(tls_truncated_and_changed)
{
    char flight[CARRY_BYTES];
    world_make(&w, false);
    pair_make(&p, &w, &w.ca, NULL);
    SSL_do_handshake(p.c.ssl);
    int len = BIO_read(p.c.out, flight, sizeof flight);
    pair_done(&p);
    T_OK(len > 100);
    for (size_t cut = 0; cut < (size_t)len; cut++) {
        pair_make(&p, &w, &w.ca, NULL);
        feed(&p, flight, cut);
        T_OK(p.result == 0 && p.sealed.len == 0 && !tls_ready(p.t));
        tls_bye(p.t, &p.sealed); /* says nothing before there is anybody */
        T_EQ(p.sealed.len, 0);
        pair_done(&p);
    }
    for (int i = 0; i < 200; i++) {
        pair_make(&p, &w, &w.ca, NULL);
        SSL_do_handshake(p.c.ssl);
        int n = BIO_read(p.c.out, flight, sizeof flight);
        /* Behind the record's head: its version is not part of the transcript and may be any
         * 3.x. */
        flight[5 + t_random_below((uint64_t)n - 5)] ^= (char)(1 + t_random_below(255));
        feed(&p, flight, (size_t)n);
        shake(&p, CARRY_BYTES);
        T_OK(!both_ready(&p)); /* the transcripts differ */
        pair_done(&p);
    }
    world_done(&w);
}

T_TEST(tls_load_is_all_or_nothing)
{
    struct firn_diag d;
    world_make(&w, false);
    struct cert next = cert_make("next", &w.ca);
    char cert[64], key[64];
    cert_write(&next, false, cert);
    cert_write(&next, true, key);
    const struct tls_files bad[] = {
        { "/nonexistent.pem", w.key, NULL, "" },
        { w.cert, "/nonexistent.pem", NULL, "" },
        { w.cert, key, NULL, "" },
        { w.key, w.key, NULL, "" },
        { w.cert, w.cert, NULL, "" },
        { w.cert, w.key, "/nonexistent.pem", "" },
        { w.cert, w.key, w.key, "" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        d.text[0] = '\0';
        T_EQ(tls_context_load(w.server, &bad[i], &d), FIRN_EIO);
        T_OK(strstr(d.text, "cannot be used"), "%s", d.text);
        T_OK(tls_context_on(w.server));
    }

    /* Connections on both sides of a load. */
    static struct pair old;
    pair_make(&old, &w, &w.ca, NULL);
    shake(&old, CARRY_BYTES);
    struct tls_files f = { cert, key, NULL, "" };
    T_EQ(tls_context_load(w.server, &f, &d), 0);
    pair_make(&p, &w, &w.ca, NULL);
    shake(&p, CARRY_BYTES);
    T_OK(both_ready(&p));
    X509 *seen = SSL_get1_peer_certificate(p.c.ssl);
    T_EQ(X509_cmp(seen, next.x509), 0);
    X509_free(seen);
    SSL_write(old.c.ssl, "still", 5);
    carry(&old, CARRY_BYTES);
    T_OK(old.plain_len == 5);

    struct tls_files off = { 0 };
    T_EQ(tls_context_load(w.server, &off, &d), 0);
    T_OK(!tls_context_on(w.server) && !tls_context_on(NULL));
    struct tls *none;
    T_EQ(tls_accept(w.server, &none), FIRN_ENOENT);
    unlink(cert);
    unlink(key);
    cert_free(&next);
    world_done(&w); /* the connections outlive it */
    SSL_write(old.c.ssl, "even so", 7);
    carry(&old, CARRY_BYTES);
    T_OK(old.plain_len == 12);
    pair_done(&old);
    pair_done(&p);
}

/* --- the connecting side, against the accepting one --- */

struct side {
    struct tls *t;
    struct buf sealed;
    char plain[TLS_PLAIN_BYTES];
    size_t plain_len;
    int result;
};

static void side_feed(struct side *to, const char *bytes, size_t len)
{
    if (to->result != FIRN_EFORMAT)
        to->result = tls_read(to->t, bytes, len, to->plain, sizeof to->plain, &to->plain_len,
                              &to->sealed);
}

static bool side_carry(struct side *from, struct side *to, size_t step)
{
    bool any = from->sealed.len > 0;
    for (size_t n; from->sealed.len > 0; buf_consume(&from->sealed, n)) {
        n = from->sealed.len < step ? from->sealed.len : step;
        side_feed(to, from->sealed.p, n);
    }
    return any;
}

static struct side near, far; /* who connects, who accepts */

static void sides_make(struct tls_context *client, const char *host, struct tls_context *server)
{
    memset(&near, 0, sizeof near);
    memset(&far, 0, sizeof far);
    buf_init(&near.sealed, 1 << 20);
    buf_init(&far.sealed, 1 << 20);
    T_EQ(tls_connect(client, host, &near.t), 0);
    T_EQ(tls_accept(server, &far.t), 0);
    side_feed(&near, NULL, 0);
    T_OK(near.sealed.len > 100); /* the ClientHello */
    bool moved = true;
    while (moved) {
        moved = side_carry(&near, &far, 700);
        moved |= side_carry(&far, &near, 700);
    }
}

static void sides_done(void)
{
    tls_free(near.t);
    tls_free(far.t);
    buf_done(&near.sealed);
    buf_done(&far.sealed);
}

T_TEST(tls_connects_to_the_name_it_was_given)
{
    static const struct {
        const char *host;
        bool good;
    } hosts[] = { { "localhost", true },
                  { "127.0.0.1", true },
                  { "other.example", false },
                  { "127.0.0.2", false },
                  { "::1", false } };
    struct firn_diag d = { 0, "" };
    struct tls_context *client;
    world_make(&w, false);
    T_EQ(tls_context_open(TLS_CLIENT, &(struct tls_files){ .ca = w.client_ca, .area = "" }, &client,
                          &d),
         0, "%s", d.text);
    for (size_t i = 0; i < T_LEN(hosts); i++) {
        sides_make(client, hosts[i].host, w.server);
        T_EQ(tls_ready(near.t), hosts[i].good, "%s", hosts[i].host);
        T_EQ(near.result, hosts[i].good ? 0 : FIRN_EFORMAT);
        if (hosts[i].good) {
            T_EQ(tls_write(near.t, "hello", 5, &near.sealed), 0);
            side_carry(&near, &far, 3);
            T_OK(far.plain_len == 5 && memcmp(far.plain, "hello", 5) == 0);
            T_EQ(tls_write(far.t, "world", 5, &far.sealed), 0);
            side_carry(&far, &near, 1000);
            T_OK(near.plain_len == 5 && memcmp(near.plain, "world", 5) == 0);
            tls_bye(far.t, &far.sealed);
            side_carry(&far, &near, 1000);
            T_EQ(near.result, FIRN_ECLOSED);
        } else {
            T_OK(strstr(tls_why(near.t), "mismatch"), "%s", tls_why(near.t));
            T_EQ(far.result, FIRN_EFORMAT); /* it was sent an alert */
        }
        sides_done();
    }
    tls_context_free(client);
    world_done(&w);
}

T_TEST(tls_connects_only_to_trusted_servers)
{
    struct firn_diag d = { 0, "" };
    struct tls_context *client;
    char other[64];
    world_make(&w, false);
    cert_write(&w.other_ca, false, other);
    const struct tls_files untrusting[] = { { .ca = other, .area = "" },
                                            { .area = "" } }; /* nor does the system */
    for (size_t i = 0; i < T_LEN(untrusting); i++) {
        T_EQ(tls_context_open(TLS_CLIENT, &untrusting[i], &client, &d), 0, "%s", d.text);
        sides_make(client, "localhost", w.server);
        T_OK(!tls_ready(near.t) && near.result == FIRN_EFORMAT);
        T_OK(strstr(tls_why(near.t), "issuer certificate"), "%s", tls_why(near.t));
        sides_done();
        tls_context_free(client);
    }
    const struct tls_files bad[] = { { .ca = "/nonexistent.pem", .area = "" },
                                     { w.cert, "/nonexistent.pem", w.client_ca, "" },
                                     { "/nonexistent.pem", w.key, w.client_ca, "" } };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        T_EQ(tls_context_open(TLS_CLIENT, &bad[i], &client, &d), FIRN_EIO);
        T_OK(strstr(d.text, "/nonexistent.pem cannot be used: No such file"), "%s", d.text);
    }
    unlink(other);
    world_done(&w);
}

/* The same context on both ends, as members of a cluster have it. */
T_TEST(tls_members_show_certificates_to_each_other)
{
    struct firn_diag d = { 0, "" };
    struct tls_context *member, *bare, *stranger;
    char cert[64], key[64];
    world_make(&w, false);
    struct cert foreign = cert_make("localhost", &w.other_ca);
    cert_write(&foreign, false, cert);
    cert_write(&foreign, true, key);
    struct tls_files ours = { w.cert, w.key, w.client_ca, "cluster.tls_" };
    T_EQ(tls_context_open(TLS_MEMBER, &ours, &member, &d), 0, "%s", d.text);
    T_EQ(tls_context_open(TLS_CLIENT, &(struct tls_files){ .ca = w.client_ca, .area = "" }, &bare,
                          &d),
         0);
    T_EQ(tls_context_open(TLS_CLIENT, &(struct tls_files){ cert, key, w.client_ca, "" }, &stranger,
                          &d),
         0);

    sides_make(member, "localhost", member);
    T_OK(tls_ready(near.t) && tls_ready(far.t));
    T_STR(tls_peer_name(far.t), "localhost");
    T_EQ(tls_context_load(member, &ours, &d), 0); /* a reload leaves what is connected */
    T_EQ(tls_write(near.t, "hello", 5, &near.sealed), 0);
    side_carry(&near, &far, 1000);
    T_EQ(far.plain_len, 5);
    sides_done();

    struct tls_context *refused[] = { bare, stranger };
    for (size_t i = 0; i < T_LEN(refused); i++) {
        sides_make(refused[i], "localhost", member);
        T_OK(!tls_ready(far.t) && far.result == FIRN_EFORMAT);
        sides_done();
    }
    T_EQ(tls_context_load(member, &(struct tls_files){ w.cert, key, w.client_ca, "cluster.tls_" },
                          &d),
         FIRN_EIO);
    T_OK(strncmp(d.text, "cluster.tls_key=", 16) == 0 && strstr(d.text, "does not belong to"), "%s",
         d.text);

    pair_make(&p, &w, &w.ca, NULL); /* TLS 1.2 is refused */
    tls_free(p.t);
    T_EQ(tls_accept(member, &p.t), 0);
    SSL_set_max_proto_version(p.c.ssl, TLS1_2_VERSION);
    shake(&p, CARRY_BYTES);
    T_EQ(p.result, FIRN_EFORMAT);
    pair_done(&p);

    tls_context_free(member);
    tls_context_free(bare);
    tls_context_free(stranger);
    cert_free(&foreign);
    unlink(cert);
    unlink(key);
    world_done(&w);
}
