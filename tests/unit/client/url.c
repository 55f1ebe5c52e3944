/* The URL of a client: servers, options, and the errors about them. */
#include "client/url.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>

static struct client_opts o;
static struct firn_diag d;

static int parse(const char *url)
{
    d.text[0] = '\0';
    return client_url_parse(url, &o, &d);
}

T_TEST(defaults_are_the_stated_ones)
{
    T_EQ(parse("firn://a"), 0, "%s", d.text);
    T_EQ(o.servers, 1);
    T_STR(o.server[0].host, "a");
    T_EQ(o.server[0].port, 9001);
    T_EQ(o.mode, MODE_REMOTE);
    T_EQ(o.proto, PROTO_HTTP);
    T_STR(o.kind, "snowflake");
    T_EQ(o.timeout_ms, 2000);
    T_EQ(o.retries, 3);
    T_EQ(o.retry_delay_ms, 1000);
    T_EQ(o.deadline_ms, 2000 + 3 * 3000);
    T_EQ(o.fresh_ms, 1000);
    T_EQ(o.tls, 0);
}

T_TEST(everything_can_be_said)
{
    T_EQ(
        parse(
            "firns://a:1,[::1]:2,c/?mode=prefetch&proto=resp&seq=or:ders&token=s%25cret&timeout=250ms"
            "&retries=0&retry_delay=0s&deadline=1m&fresh=5s&block=10&ca=%2Fx&cert=y&key=z&discover=1"
            "&background=1"),
        0, "%s", d.text);
    T_EQ(o.servers, 3);
    T_STR(o.server[1].host, "::1");
    T_EQ(o.server[1].port, 2);
    T_EQ(o.server[2].port, 9001);
    T_EQ(o.mode, MODE_PREFETCH);
    T_EQ(o.proto, PROTO_RESP);
    T_STR(o.kind, "ticket");
    T_STR(o.seq, "or:ders");
    T_STR(o.token, "s%cret");
    T_EQ(o.timeout_ms, 250);
    T_EQ(o.retries, 0);
    T_EQ(o.retry_delay_ms, 0);
    T_EQ(o.deadline_ms, 60000);
    T_EQ(o.fresh_ms, 5000);
    T_EQ(o.block, 10);
    T_STR(o.ca, "/x");
    T_EQ(o.tls + o.discover + o.background, 3);
}

T_TEST(tickets_may_be_of_any_age_unless_said)
{
    T_EQ(parse("firn://a?seq=x&mode=prefetch"), 0);
    T_EQ(o.fresh_ms, 0);
    T_EQ(parse("firn://a?seq=x&mode=prefetch&fresh=1s"), 0);
    T_EQ(o.fresh_ms, 1000);
    T_EQ(parse("firn://a?kind=ticket"), 0);
    T_STR(o.seq, "default");
}

T_TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *url, *says;
    } bad[] = {
        { "", "firn://" },
        { "http://a", "firn://" },
        { "firn://", "HOST" },
        { "firn://a,,b", "HOST" },
        { "firn://a:0", "65535" },
        { "firn://a:65536", "65535" },
        { "firn://a:x", "65535" },
        { "firn://[::1", "']' is missing" },
        { "firn://[::1]x", "port" },
        { "firn://u@h", "token" },
        { "firn://a/x", "path" },
        { "firn://a?tokn=1", "did you mean token?" },
        { "firn://a?moed=remote", "did you mean mode?" },
        { "firn://a?retry_dealy=1s", "did you mean retry_delay?" },
        { "firn://a?mode=fast", "remote|prefetch|leased" },
        { "firn://a?timeout=2", "unit" },
        { "firn://a?timeout=0s", "out of range" },
        { "firn://a?timeout=99999999999999999999s", "out of range" },
        { "firn://a?tls=2", "0|1" },
        { "firn://a?retries=1&retries=2", "twice" },
        { "firn://a?token=%0a", "line breaks" },
        { "firn://a?token=%4", "line breaks" },
        { "firn://a?seq=x&kind=ulid", "seq is for tickets" },
        { "firn://a?seq=a%2fb", "sequence" },
        { "firn://a?mode=leased&seq=x", "Snowflake" },
        { "firn://a?mode=prefetch&kind=ulid", "mode=remote" },
        { "firn://a?mode=prefetch&fresh=10ms", "50 ms" },
        { "firn://a?ca=x", "firns://" },
        { "firns://a?cert=x", "need each other" },
        { "firn://a?token=x&token_file=y", "exclude each other" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        T_OK(parse(bad[i].url) < 0, "%s is refused", bad[i].url);
        T_OK(strstr(d.text, bad[i].says), "%s: '%s' in '%s'", bad[i].url, bad[i].says, d.text);
    }
}

T_TEST(too_many_servers_are_refused)
{
    char url[1024] = "firn://a";
    for (int i = 1; i < SERVERS_MAX; i++)
        strcat(url, ",a");
    T_EQ(parse(url), 0);
    strcat(url, ",a");
    T_EQ(parse(url), FIRN_ERANGE);
}

/* Whatever comes in, nothing is read beyond it and nothing is left half set. */
T_TEST(noise_is_refused_or_understood)
{
    static const char alphabet[] = "firn://a:9001,b?mode=prefetch&timeout=2s%[]@&=";
    for (uint64_t i = 0; i < t_scale(100000); i++) {
        size_t len = t_random_below(60);
        char *url = malloc(len + 8 + 1); /* its own memory: a sanitizer sees a step too far */
        memcpy(url, "firn://", 7);
        for (size_t k = 0; k < len; k++)
            url[7 + k] = alphabet[t_random_below(sizeof alphabet - 1)];
        url[7 + len] = '\0';
        memset(&o, 0, sizeof o);
        int r = parse(url);
        T_OK(r == 0 ? o.servers > 0 : o.servers == 0 && d.text[0], "%s", url);
        free(url);
    }
}
