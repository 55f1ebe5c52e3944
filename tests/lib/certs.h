/*
 * certs.h - certificates for tests, made on the spot and written to a folder that goes away. P-256
 * keys: they take microseconds. For test programs that link OpenSSL; each makes what it needs once.
 */
#ifndef TESTS_CERTS_H
#define TESTS_CERTS_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cert {
    EVP_PKEY *key;
    X509 *x509;
};

static inline void certs_check(bool ok)
{
    if (!ok) {
        fprintf(stderr, "cannot make a certificate\n");
        abort();
    }
}

static inline void cert_extend(struct cert *c, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    certs_check(e && X509_add_ext(c->x509, e, -1));
    X509_EXTENSION_free(e);
}

/* A certificate for `name`, signed by `by`, or by itself as an authority when that is NULL. One for
 * "localhost" is good for 127.0.0.1 too. */
static inline struct cert cert_make(const char *name, const struct cert *by)
{
    static long serial = 1;
    struct cert c = { EVP_EC_gen("P-256"), X509_new() };
    certs_check(c.key && c.x509);
    X509_set_version(c.x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(c.x509), serial++);
    X509_gmtime_adj(X509_getm_notBefore(c.x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(c.x509), 3600);
    X509_set_pubkey(c.x509, c.key);
    X509_NAME *subject = X509_get_subject_name(c.x509);
    for (const char *p = name; *p;) { /* "a|b": two common names */
        int len = (int)strcspn(p, "|");
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)p, len, -1,
                                   0);
        p += len + (p[len] == '|');
    }
    X509_set_issuer_name(c.x509, by ? X509_get_subject_name(by->x509) : subject);
    cert_extend(&c, NID_basic_constraints, by ? "CA:FALSE" : "critical,CA:TRUE");
    if (strcmp(name, "localhost") == 0)
        cert_extend(&c, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    certs_check(X509_sign(c.x509, by ? by->key : c.key, EVP_sha256()) > 0);
    return c;
}

static inline void cert_free(struct cert *c)
{
    EVP_PKEY_free(c->key);
    X509_free(c->x509);
}

/* Writes PEM to a new file; the name goes to `path`. Either may be NULL. */
static inline void cert_write(const struct cert *c, bool key, char path[64])
{
    snprintf(path, 64, "/tmp/firn-cert-XXXXXX");
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    certs_check(f && (key ? PEM_write_PrivateKey(f, c->key, NULL, NULL, 0, NULL, NULL)
                          : PEM_write_X509(f, c->x509)) == 1);
    certs_check(fclose(f) == 0);
}

#endif
