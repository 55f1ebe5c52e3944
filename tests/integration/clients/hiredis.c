/* hiredis, as a C program would use it. Usage: hiredis PORT; ends with 0 when all was as
 * expected. */
#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const redisContext *c, const redisReply *r)
{
    fprintf(stderr, "%s: %s\n", what, r && r->str ? r->str : c->errstr);
    exit(1);
}

/* The reply of the next command in the pipe, which must be of this type. */
static redisReply *take(redisContext *c, int type, const char *what)
{
    redisReply *r = NULL;
    if (redisGetReply(c, (void **)&r) != REDIS_OK || !r || r->type != type)
        fail(what, c, r);
    return r;
}

static long long integer(redisContext *c, const char *what)
{
    redisReply *r = take(c, REDIS_REPLY_INTEGER, what);
    long long v = r->integer;
    freeReplyObject(r);
    return v;
}

int main(int argc, char **argv)
{
    enum { DEPTH = 10000 };
    struct timeval limit = { 20, 0 };
    redisContext *c = redisConnectWithTimeout("127.0.0.1", argc > 1 ? atoi(argv[1]) : 9002, limit);
    if (!c || c->err)
        fail("connect", c, NULL);
    redisSetTimeout(c, limit);

    redisAppendCommand(c, "PING");
    redisReply *r = take(c, REDIS_REPLY_STATUS, "PING");
    if (strcmp(r->str, "PONG") != 0)
        fail("PING", c, r);
    freeReplyObject(r);

    redisAppendCommand(c, "INCR %s", "hiredis");
    long long first = integer(c, "INCR");
    redisAppendCommand(c, "INCRBY %s %d", "hiredis", 10);
    if (integer(c, "INCRBY") != first + 10)
        fail("INCRBY does not answer with the last of ten", c, NULL);

    for (int i = 0; i < DEPTH; i++)
        redisAppendCommand(c, "INCR hiredis");
    for (int i = 1; i <= DEPTH; i++)
        if (integer(c, "INCR in a pipe") != first + 10 + i)
            fail("numbers of a pipe are not in order", c, NULL);

    redisAppendCommand(c, "FIRN.NEXT snowflake COUNT %d", 1000);
    r = take(c, REDIS_REPLY_ARRAY, "FIRN.NEXT");
    if (r->elements != 1000)
        fail("FIRN.NEXT gave another number of IDs", c, NULL);
    for (size_t i = 1; i < r->elements; i++)
        if (strtoull(r->element[i]->str, NULL, 10) <= strtoull(r->element[i - 1]->str, NULL, 10))
            fail("Snowflake IDs do not rise", c, NULL);
    freeReplyObject(r);

    redisAppendCommand(c, "MULTI"); /* the deferred ones of a transaction stay in their order */
    for (int i = 0; i < 200; i++)
        redisAppendCommand(c, i % 2 ? "INCR default" : "INCR hiredis:multi");
    redisAppendCommand(c, "EXEC");
    redisAppendCommand(c, "INCR hiredis:multi");
    freeReplyObject(take(c, REDIS_REPLY_STATUS, "MULTI"));
    for (int i = 0; i < 200; i++)
        freeReplyObject(take(c, REDIS_REPLY_STATUS, "QUEUED"));
    r = take(c, REDIS_REPLY_ARRAY, "EXEC");
    if (r->elements != 200)
        fail("EXEC gave another number of answers", c, NULL);
    for (size_t i = 0; i < 200; i++)
        if (r->element[i]->type != REDIS_REPLY_INTEGER ||
            r->element[i]->integer != (i % 2 ? 100001 : 1) + (long long)i / 2)
            fail("numbers of a transaction are not in order", c, r->element[i]);
    freeReplyObject(r);
    if (integer(c, "INCR behind EXEC") != 101)
        fail("INCR behind EXEC", c, NULL);

    redisAppendCommand(c, "SET %b %b", "a", (size_t)1, "\r\n", (size_t)2);
    r = take(c, REDIS_REPLY_ERROR, "SET");
    if (strncmp(r->str, "ERR unknown command 'SET'", 25) != 0)
        fail("unknown command", c, r);
    freeReplyObject(r);

    redisAppendCommand(c, "QUIT");
    freeReplyObject(take(c, REDIS_REPLY_STATUS, "QUIT"));
    redisFree(c);
    puts("hiredis: as expected");
    return 0;
}
