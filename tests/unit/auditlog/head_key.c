/* Signatures: of the head alone, by one of the keys, also while a key changes. */
#include "auditlog/head_key.h"
#include "audit.h"

#include <stdio.h>

static struct head head = {
    .shard = 1, .writer = "app-1", .seq = 1, .first = 1, .last = 9, .rows = 3
};

T_TEST(a_signature_is_of_its_head_and_key)
{
    struct head_signer *one = signer_of(1), *two = signer_of(2);
    struct head_keys *keys;
    struct head_sig sig, other;
    T_EQ(head_keys_new(&keys), 0);
    T_EQ(head_sign(one, &head, &sig), 0);
    T_EQ(head_check(keys, &head, &sig), FIRN_ENOENT);
    add_key(keys, 2);
    T_EQ(head_check(keys, &head, &sig), FIRN_ENOENT);
    add_key(keys, 1); /* the old and the new one */
    add_key(keys, 1);
    T_EQ(head_keys_count(keys), 2);
    T_EQ(head_check(keys, &head, &sig), 0);
    T_EQ(head_sign(two, &head, &other), 0);
    T_EQ(head_check(keys, &head, &other), 0);
    memcpy(other.key, sig.key, sizeof other.key); /* another's name on it */
    T_EQ(head_check(keys, &head, &other), FIRN_EAUTH);
    struct head changed = head;
    changed.last++;
    T_EQ(head_check(keys, &changed, &sig), FIRN_EAUTH);
    for (size_t i = 0; i < sizeof sig.bytes; i++) {
        struct head_sig bad = sig;
        bad.bytes[i] ^= (uint8_t)(1u << t_random_below(8));
        T_EQ(head_check(keys, &head, &bad), FIRN_EAUTH, "byte %zu", i);
    }
    sig.there = false;
    T_EQ(head_check(keys, &head, &sig), FIRN_ENOENT);
    head_keys_free(keys);
    head_keys_free(NULL);
    head_signer_free(one);
    head_signer_free(two);
    head_signer_free(NULL);
}

T_TEST(the_public_key_of_a_signer)
{
    struct head_signer *s = signer_of(7);
    struct head_keys *keys;
    struct head_sig sig;
    struct buf pem = { .max = 4096 };
    struct firn_diag d = { 0, "" };
    head_signer_public(s, &pem);
    T_EQ(head_keys_new(&keys), 0);
    T_EQ(head_keys_add(keys, (struct slice){ pem.p, pem.len }, &d), 0, "%s", d.text);
    T_EQ(head_sign(s, &head, &sig), 0);
    T_EQ(head_check(keys, &head, &sig), 0);
    buf_done(&pem);
    head_keys_free(keys);
    head_signer_free(s);
}

T_TEST(several_keys_in_one_text)
{
    struct head_keys *keys;
    struct firn_diag d = { 0, "" };
    char pem[512], all[HEAD_KEYS_MAX * 512 + 512] = "";
    T_EQ(head_keys_new(&keys), 0);
    for (unsigned i = 0; i < HEAD_KEYS_MAX; i++) {
        key_pem((uint8_t)(i + 10), true, pem);
        strcat(strcat(all, "a comment in between\n"), pem);
    }
    T_EQ(head_keys_add(keys, text_of(all), &d), 0, "%s", d.text);
    T_EQ(head_keys_count(keys), HEAD_KEYS_MAX);
    T_EQ(head_keys_add(keys, text_of(all), &d), 0, "all are there already");
    T_EQ(head_keys_add(keys, key_pem(99, true, pem), &d), FIRN_ERANGE);
    T_EQ(head_keys_count(keys), HEAD_KEYS_MAX);
    head_keys_free(keys);
}

#define P256                                                             \
    "-----BEGIN PUBLIC KEY-----\n"                                       \
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7\n" \
    "6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==\n"     \
    "-----END PUBLIC KEY-----\n"

T_TEST(keys_that_are_refused)
{
    struct head_keys *keys;
    struct head_signer *s = NULL;
    struct firn_diag d = { 0, "" };
    char pem[512], two[2048];
    T_EQ(head_keys_new(&keys), 0);
    T_EQ(head_keys_add(keys, text_of(""), &d), FIRN_EFORMAT);
    T_EQ(head_keys_add(keys, text_of("not PEM"), &d), FIRN_EFORMAT);
    T_EQ(head_keys_add(keys, key_pem(1, false, pem), &d), FIRN_EFORMAT,
         "a private key is no public one");
    T_EQ(head_keys_add(keys, text_of(P256), &d), FIRN_ENOTSUP);
    key_pem(1, true, pem);
    snprintf(two, sizeof two, "%s%s", pem, P256);
    T_EQ(head_keys_add(keys, text_of(two), &d), FIRN_ENOTSUP);
    snprintf(two, sizeof two, "%s-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
             pem);
    T_EQ(head_keys_add(keys, text_of(two), &d), FIRN_EFORMAT, "%s", d.text);
    T_EQ(head_keys_count(keys), 0, "none of a text that is not right as a whole");
    T_EQ(head_signer_new(text_of(""), &s, &d), FIRN_EFORMAT);
    T_OK(strstr(d.text, "openssl genpkey"), "%s", d.text);
    T_EQ(head_signer_new(key_pem(1, true, pem), &s, &d), FIRN_EFORMAT);
    T_OK(s == NULL);
    head_keys_free(keys);
}
