/*
 * Bytes into the server's side of TLS. The first byte chooses the way: bytes as they are, from the
 * very start; or a real client's handshake and request in which the input changes bytes, so that
 * what lies behind the first message is reached too. Whatever comes, there is an answer in bounds,
 * and no plaintext before the handshake is over.
 */
#include "wire/tls.h"

#include "../lib/certs.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tls_context *server;
static SSL_CTX *client_ctx;

static void check(bool ok)
{
    if (!ok)
        abort();
}

static void setup(void)
{
    struct cert ca = cert_make("authority", NULL), ours = cert_make("localhost", &ca),
                client = cert_make("client", &ca);
    char cert[64], key[64], authority[64];
    struct firn_diag d;
    cert_write(&ours, false, cert);
    cert_write(&ours, true, key);
    cert_write(&ca, false, authority);
    check(tls_context_new(TLS_SERVER, &server) == 0);
    check(tls_context_load(server, &(struct tls_files){ cert, key, authority, "" }, &d) == 0);
    unlink(cert);
    unlink(key);
    unlink(authority);
    client_ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_use_certificate(client_ctx, client.x509);
    SSL_CTX_use_PrivateKey(client_ctx, client.key);
    cert_free(&ca);
    cert_free(&ours);
    cert_free(&client);
}

/* As a connection does; returns the plaintext's length, or an error. */
static int feed(struct tls *t, const char *p, size_t len, struct buf *sealed)
{
    static char plain[TLS_PLAIN_BYTES];
    size_t got = 0;
    bool was_ready = tls_ready(t);
    char *copy = malloc(len ? len : 1); /* exactly so long: a read past it is seen */
    check(copy != NULL);
    memcpy(copy, p, len);
    int r = tls_read(t, copy, len, plain, sizeof plain, &got, sealed);
    free(copy);
    check(r == 0 || r == FIRN_ECLOSED || r == FIRN_EFORMAT);
    check(got == 0 || tls_ready(t));
    check(tls_ready(t) || !was_ready);
    check(!sealed->failed);
    check(!tls_peer_name(t) || tls_ready(t));
    if (got > 0 && tls_write(t, plain, got, sealed) != 0)
        return FIRN_EFORMAT;
    return r;
}

static void raw(struct tls *t, const uint8_t *data, size_t size, struct buf *sealed)
{
    size_t step = size > 1 ? data[1] + 1u : 1;
    for (size_t at = 0; at < size; at += step)
        if (feed(t, (const char *)data + at, step < size - at ? step : size - at, sealed) != 0)
            return;
}

/* Input: pairs of (how many bytes to pass over, what to change the next one by). */
static void changed(struct tls *t, const uint8_t *data, size_t size, struct buf *sealed,
                    int version)
{
    SSL *ssl = SSL_new(client_ctx);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    char bytes[4096];
    size_t at = 0, skip = size > 1 ? data[0] : SIZE_MAX;
    BIO_set_mem_eof_return(in, -1);
    SSL_set_bio(ssl, in, out);
    SSL_set_connect_state(ssl);
    SSL_set_max_proto_version(ssl, version);
    for (int turn = 0; turn < 8; turn++) {
        if (SSL_do_handshake(ssl) == 1)
            SSL_write(ssl, "GET / HTTP/1.1\r\n\r\n", 18);
        int n = BIO_read(out, bytes, sizeof bytes);
        if (n <= 0)
            break;
        for (int i = 0; i < n; i++, skip -= skip != SIZE_MAX)
            if (skip == 0 && at + 1 < size) {
                bytes[i] ^= (char)data[at + 1];
                at += 2;
                skip = at + 1 < size ? data[at] + 1u : SIZE_MAX;
            }
        if (feed(t, bytes, (size_t)n, sealed) != 0)
            break;
        BIO_write(in, sealed->p, (int)sealed->len);
        sealed->len = 0;
    }
    SSL_free(ssl);
    ERR_clear_error();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    struct tls *t;
    struct buf sealed;
    if (!ready)
        setup();
    ready = true;
    if (size == 0)
        return 0;
    check(tls_accept(server, &t) == 0);
    buf_init(&sealed, 1 << 20);
    if (data[0] & 1)
        changed(t, data + 1, size - 1, &sealed, data[0] & 2 ? TLS1_3_VERSION : TLS1_2_VERSION);
    else
        raw(t, data + 1, size - 1, &sealed);
    tls_bye(t, &sealed);
    tls_free(t);
    buf_done(&sealed);
    return 0;
}
