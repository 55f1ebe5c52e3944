/*
 * firn-proxy's side of tests/differential/jose: one request per line on stdin, one answer per line
 * on stdout.
 *
 *   keys JWKS                   ok | error TEXT   keys and rules from now on: issuer "issuer", audience
 *                                                 "shop", a leeway of 5 s, sub becomes a header
 *   check NOW_S TOKEN           ok SUB | VERDICT
 */
#include "proxy/jwt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[512 * 1024];

int main(void)
{
    static const char *const issuer[] = { "issuer" }, *const audience[] = { "shop" };
    static struct jwks keys;
    const struct jwt_rules rules = { .issuers = issuer,
                                     .issuers_n = 1,
                                     .audiences = audience,
                                     .audiences_n = 1,
                                     .leeway_s = 5,
                                     .copy = { { "sub", "X-User-ID", false } },
                                     .copies_n = 1 };
    struct jwt_checker *c;
    if (jwt_checker_new(&rules, &keys, &c))
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        struct firn_diag why = { 0, "" };
        struct jwt_identity id;
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "keys ", 5) == 0) {
            jwks_done(&keys);
            int r = jwks_read(&keys, line + 5, strlen(line + 5), &why);
            jwt_checker_keys(c, &keys);
            printf(r ? "error %s\n" : "ok%s\n", why.text);
        } else if (strncmp(line, "check ", 6) == 0) {
            char *token;
            int64_t now = strtoll(line + 6, &token, 10);
            token += *token == ' ';
            enum jwt_verdict v = jwt_check(c, (struct slice){ token, strlen(token) }, now, &id);
            struct slice sub = v == JWT_OK ? jwt_copy_of(&id, 0) : (struct slice){ "", 0 };
            printf("%s%s%.*s\n", jwt_verdict_name(v), v == JWT_OK ? " " : "", (int)sub.len, sub.p);
        } else {
            puts("error unknown request");
        }
        fflush(stdout);
    }
    jwt_checker_free(c);
    jwks_done(&keys);
    return 0;
}
