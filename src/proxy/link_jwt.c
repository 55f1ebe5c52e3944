/*
 * The link `jwt`: a route that asks for a token gets requests with a valid one, and claims of it as
 * headers; others are answered with 401. Each loop has its own checkers, whose caches spare it the
 * signatures of tokens that it has seen. Tested in tests/integration/gateway_guards.py.
 */
#include "platform/mono.h"
#include "proxy/admin.h"
#include "proxy/links.h"
#include "wire/json_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct view_token { /* a token as one loop has it */
    struct jwt_checker *checker;
    struct token_keys *keys;
    uint64_t generation;
};

void view_tokens_free(struct view *v)
{
    for (size_t i = 0; v->tokens && i < v->plan->guards->tokens_n; i++) {
        jwt_checker_free(v->tokens[i].checker);
        token_keys_unref(v->tokens[i].keys);
    }
    free(v->tokens);
}

/* The loop's checker, with the keys in force. NULL: no memory. */
static struct jwt_checker *checker_of(struct call *c, struct token *t)
{
    const struct guards *g = c->view->plan->guards;
    if (!c->view->tokens)
        c->view->tokens = calloc(g->tokens_n, sizeof *c->view->tokens);
    if (!c->view->tokens)
        return NULL;
    struct view_token *k = &c->view->tokens[t - g->token];
    if (k->checker && k->generation == atomic_load(&t->generation))
        return k->checker;
    uint64_t generation;
    struct token_keys *keys = token_keys_take(t, &generation);
    struct jwt_rules rules = t->rules;
    rules.stats = &c->worker->jwt_stats;
    if (k->checker) {
        jwt_checker_keys(k->checker, &keys->set);
    } else if (jwt_checker_new(&rules, &keys->set, &k->checker) != 0) {
        token_keys_unref(keys);
        return NULL;
    }
    token_keys_unref(k->keys);
    k->keys = keys;
    k->generation = generation;
    return k->checker;
}

static enum link_result refuse(struct call *c, enum jwt_verdict v)
{
    char fields[160];
    snprintf(fields, sizeof fields, "WWW-Authenticate: %s\r\n", jwt_challenge(v));
    c->why = jwt_verdict_text(v);
    c->verdict = jwt_verdict_name(v);
    call_problem_with(c, 401, fields, "this needs a valid bearer token");
    return LINK_DONE;
}

enum link_result jwt_request(struct call *c)
{
    struct token *t = call_guard(c)->token;
    struct jwt_identity id;
    if (!t)
        return LINK_NEXT;
    /* More than one such header is no HTTP to the parser: gateway and server see the same token. */
    struct slice value = http_head_value(c->head, "authorization");
    struct jwt_checker *k = checker_of(c, t);
    int64_t now_s = (int64_t)(clock_read_ns(CLOCK_REALTIME) / 1000000000);
    enum jwt_verdict v = k ? jwt_check(k, jwt_bearer(value), now_s, &id) : JWT_INTERNAL;
    /* A service might read a token in what is none here ("Bearer<TAB>x"): only no field is nobody. */
    if (v == JWT_MISSING && c->route->token_optional && !value.p)
        return LINK_NEXT;
    if (v == JWT_INTERNAL) {
        c->verdict = jwt_verdict_name(v);
        call_problem(c, 503, "the gateway is out of memory");
        return LINK_DONE;
    }
    if (v != JWT_OK)
        return refuse(c, v);
    struct slice kept = call_copy(c, (struct slice){ (const char *)&id, sizeof id });
    if (!kept.p) {
        call_problem(c, 503, "the gateway is out of memory");
        return LINK_DONE;
    }
    c->identity = (const struct jwt_identity *)(const void *)kept.p;
    c->user = jwt_copy_of(c->identity, 0);
    return LINK_NEXT;
}

void jwt_add_fields(struct call *c)
{
    if (!c->identity)
        return;
    const struct config_token *t = call_guard(c)->token->conf;
    if (!t->forward)
        fields_remove(&c->request, slice_of("Authorization"));
    for (size_t i = 0; i < t->copy.n; i++) {
        struct slice value = jwt_copy_of(c->identity, i);
        if (value.len > 0)
            fields_set(&c->request, slice_of(t->copy.v[i].header), value);
    }
}

/* --- for the operator --- */

static void sum_up(const struct app *a, struct jwt_stats *s)
{
    *s = (struct jwt_stats){ .hits = 0 };
    for (size_t i = 0; i < a->workers_n; i++) {
        const struct jwt_stats *w = &a->workers[i].jwt_stats;
        s->hits += __atomic_load_n(&w->hits, __ATOMIC_RELAXED);
        s->misses += __atomic_load_n(&w->misses, __ATOMIC_RELAXED);
        for (size_t v = 0; v <= JWT_INTERNAL; v++)
            s->verdict[v] += __atomic_load_n(&w->verdict[v], __ATOMIC_RELAXED);
    }
}

void jwt_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    const struct guards *g = p->guards;
    struct jwt_stats s;
    if (g->tokens_n == 0)
        return;
    sum_up(a, &s);
    metric_head(m, "firn_proxy_tokens_total", "Tokens that were looked at, by what was found.");
    for (size_t v = 0; v <= JWT_INTERNAL; v++)
        metric_value(m, "firn_proxy_tokens_total", "verdict", jwt_verdict_name((enum jwt_verdict)v),
                     s.verdict[v]);
    metric(m, "firn_proxy_token_cache_hits_total", "Tokens whose signature was known already.",
           (double)s.hits);
    metric_head(m, "firn_proxy_token_key_errors_total",
                "Key files that were refused; the keys before them stayed in force.");
    for (size_t i = 0; i < g->tokens_n; i++)
        metric_value(m, "firn_proxy_token_key_errors_total", "token", g->token[i].conf->name,
                     atomic_load(&g->token[i].key_errors));
    metric_head(m, "firn_proxy_token_keys", "Keys in force.");
    for (size_t i = 0; i < g->tokens_n; i++) {
        uint64_t unused;
        struct token_keys *k = token_keys_take(&g->token[i], &unused);
        metric_value(m, "firn_proxy_token_keys", "token", g->token[i].conf->name, k->set.n);
        token_keys_unref(k);
    }
}

void jwt_status(struct app *a, const struct plan *p, struct buf *b)
{
    (void)a;
    json_begin(b, "tokens", '[');
    for (size_t i = 0; i < p->guards->tokens_n; i++) {
        struct token *t = &p->guards->token[i];
        pthread_mutex_lock(&t->lock);
        json_begin(b, NULL, '{');
        json_text(b, "name", t->conf->name);
        json_count(b, "keys", t->keys->set.n);
        json_count(b, "keys_ignored", t->keys->set.ignored);
        json_text(b, "error", t->error[0] ? t->error : NULL);
        json_end(b, '}');
        pthread_mutex_unlock(&t->lock);
    }
    json_end(b, ']');
}
