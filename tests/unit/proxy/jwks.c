/* Key sets: the RFCs' keys, keys that cannot be used, and errors that name the key. */
#include "proxy/jwks.h"
#include "jose.h"
#include "t.h"

#include <openssl/bio.h>
#include <openssl/pem.h>

static struct jwks set;
static struct firn_diag why;

static int load(const char *text)
{
    jwks_done(&set);
    why = (struct firn_diag){ 0, "" };
    return jwks_read(&set, text, strlen(text), &why);
}

static const struct jwks_key *find(const char *alg, const char *kid, bool *ambiguous)
{
    return jwks_find(&set, (struct slice){ alg, strlen(alg) },
                     (struct slice){ kid, kid ? strlen(kid) : 0 }, ambiguous);
}

#define EC_X "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\""
#define EC_Y "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\""
#define EC   "\"kty\":\"EC\",\"crv\":\"P-256\"," EC_X "," EC_Y
#define OKP \
    "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\""
#define OCT "\"kty\":\"oct\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr8\""

T_TEST(a_set_of_several_kinds)
{
    bool ambiguous;
    T_EQ(load("{\"issuer\":{\"a\":[1]},\"keys\":[{" EC ",\"kid\":\"a\",\"use\":\"sig\"},"
              "{" OKP ",\"kid\":\"b\",\"alg\":\"EdDSA\"},{" OCT
              ",\"key_ops\":[\"sign\",\"verify\"]},"
              "{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"AA\",\"y\":\"AA\",\"kid\":\"c\"},"
              "{" OKP ",\"use\":\"enc\"},{" EC ",\"alg\":\"ES384\"},{" OCT
              ",\"key_ops\":[\"sign\"]}],"
              "\"more\":1}"),
         0, "%s", why.text);
    T_EQ(set.n, 3);
    T_EQ(set.ignored, 4);
    T_OK(find("ES256", "a", &ambiguous) == &set.key[0]);
    T_OK(find("EdDSA", "b", &ambiguous) == &set.key[1]);
    T_OK(find("HS256", NULL, &ambiguous) == &set.key[2]);
    T_OK(find("ES256", NULL, &ambiguous) == &set.key[0]); /* the only one of that algorithm */
    /* The kid chooses the key, the key has one algorithm. */
    static const char *const other[] = { "HS256", "RS256", "EdDSA", "none", "None", "", "es256" };
    for (size_t i = 0; i < T_LEN(other); i++)
        T_OK(find(other[i], "a", &ambiguous) == NULL, "%s", other[i]);
    T_OK(find("HS256", "a kid that no key has", &ambiguous) == NULL);
    jwks_done(&set);
}

T_TEST(two_keys_of_one_algorithm_need_a_kid)
{
    bool ambiguous;
    T_EQ(load("{\"keys\":[{" EC ",\"kid\":\"old\"},{" EC ",\"kid\":\"new\"}]}"), 0, "%s", why.text);
    T_OK(find("ES256", NULL, &ambiguous) == NULL);
    T_OK(ambiguous);
    T_OK(find("ES256", "new", &ambiguous) == &set.key[1]);
    T_OK(!ambiguous);
    jwks_done(&set);
}

T_TEST(one_key_alone)
{
    T_EQ(load("{" EC "}"), 0, "%s", why.text);
    T_EQ(set.n, 1);
    jwks_done(&set);
}

T_TEST(errors_name_the_cause)
{
    static const struct {
        const char *text, *says;
    } row[] = {
        { "", "ends too early" },
        { "[]", "an object" },
        { "{}", "kty" },
        { "{\"keys\":[]}", "no key for" },
        { "{\"keys\":[{" EC ",\"use\":\"enc\"}]}", "1 of other kinds" },
        { "{\"keys\":[{" EC "},{\"kty\":\"EC\",\"crv\":\"P-256\"," EC_X "}]}",
          "key 1: the member \"y\"" },
        { "{\"keys\":[{" EC ",\"d\":\"AA\"}]}", "private" },
        { "{\"keys\":[{" EC ",\"kid\":\"a\"},{" EC ",\"kid\":\"a\"}]}",
          "two keys have the kid \"a\"" },
        { "{\"keys\":[{" EC ",\"kid\":1}]}", "a string" },
        { "{\"keys\":[{" EC ",\"kty\":\"EC\"}]}", "twice" },
        { "{\"keys\":[{" EC "}],\"keys\":[]}", "twice" },
        { "{\"keys\":[{" EC "}]} x", "follows" },
        { "{\"kty\":\"oct\",\"k\":\"c2hvcnQ\"}", "5 bytes (32 to" },
        { "{\"kty\":\"oct\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ+EstJQLr8\"}",
          "not base64url" },
        { "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}", "3 bytes, not 32" },
        { "{\"kty\":\"RSA\",\"n\":\"sXchDaQebHnPiGvyDOAT4saGEUetSyo9MKLOoWFsueri23bOdgWp4Dy1Wl"
          "UzewbgBHod5pcM9H95GQRV3JDXboIRROSBigeC5yjU1hGzHHyXss8UDpre\",\"e\":\"AQAB\"}",
          "at least 2048" },
        /* Not on the curve: y with another last bit. */
        { "{\"kty\":\"EC\",\"crv\":\"P-256\"," EC_X
          ",\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a4\"}",
          "not valid" },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        T_EQ(load(row[i].text), FIRN_EFORMAT, "%s", row[i].text);
        T_OK(strstr(why.text, row[i].says), "'%s' says '%s'", row[i].text, why.text);
        T_EQ(set.n, 0);
    }
}

T_TEST(an_error_leaves_the_set_as_it_was)
{
    static const char bad[] = "{\"keys\":[{" OKP "},{\"kty\":\"EC\",\"crv\":\"P-256\"}]}";
    T_EQ(load("{" EC ",\"kid\":\"a\"}"), 0);
    T_EQ(jwks_read(&set, bad, strlen(bad), NULL), FIRN_EFORMAT);
    T_EQ(set.n, 1);
    T_EQ(set.ignored, 0);
    jwks_done(&set);
}

T_TEST(too_many)
{
    static char text[64 * 1024] = "{\"keys\":[";
    for (int i = 0; i <= JWKS_KEYS_MAX; i++)
        sprintf(text + strlen(text), "%s{" OKP ",\"kid\":\"%d\"}", i ? "," : "", i);
    strcat(text, "]}");
    T_EQ(load(text), FIRN_ERANGE);
    T_OK(strstr(why.text, "at most 64"), "%s", why.text);
}

T_TEST(a_secret_and_a_pem_key)
{
    bool ambiguous;
    char *pem;
    struct jose_key key = jose_key_new("ES256");
    BIO *bio = BIO_new(BIO_s_mem());
    jwks_done(&set);
    T_EQ(jwks_add_secret(&set, NULL, "short", 5, &why), FIRN_EFORMAT);
    T_EQ(jwks_add_secret(&set, NULL, "0123456789abcdef0123456789abcdef", 32, &why), 0);
    T_OK(find("HS256", "whatever the issuer calls it", &ambiguous) == &set.key[0]);
    T_OK(PEM_write_bio_PUBKEY(bio, key.pkey));
    long len = BIO_get_mem_data(bio, &pem);
    T_EQ(jwks_add_pem(&set, "k", pem, (size_t)len, &why), 0, "%s", why.text);
    T_OK(find("ES256", "k", &ambiguous) == &set.key[1]);
    T_EQ(jwks_add_pem(&set, "half", pem, (size_t)len / 2, &why), FIRN_EFORMAT);
    (void)BIO_reset(bio);
    T_OK(PEM_write_bio_PrivateKey(bio, key.pkey, NULL, NULL, 0, NULL, NULL));
    len = BIO_get_mem_data(bio, &pem);
    T_EQ(jwks_add_pem(&set, "p", pem, (size_t)len, &why), FIRN_EFORMAT);
    T_OK(strstr(why.text, "private"), "%s", why.text);
    BIO_free(bio);
    jose_key_done(&key);
    jwks_done(&set);
}
