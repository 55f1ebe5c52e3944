/*
 * UUIDs and ULIDs: make, write, read, sort by time.
 *
 *     cc uuid_ulid.c $(pkg-config --cflags --libs libfirn) -o uuid_ulid && ./uuid_ulid
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <firn/clock.h>
#include <firn/random.h>
#include <firn/ulid.h>
#include <firn/uuid.h>

static uint64_t now_ms(void)
{
    const struct firn_clock *clock = firn_clock_coarse();
    return clock->now_ns(clock) / 1000000;
}

static int uuids(void)
{
    /* Time and randomness are arguments: the library asks for neither behind your back. This one is
     * seeded by the kernel, belongs to the calling thread and survives fork(). */
    struct firn_rng *rng = firn_rng_thread();
    struct firn_uuid id, read;
    char text[FIRN_UUID_TEXT_BUF];

    firn_uuid_v4(rng, &id); /* 122 random bits: nothing to be known from it */
    firn_uuid_format(&id, text);
    printf("v4    %s\n", text);

    /* Version 7 begins with the time. One generator's UUIDs rise, also within a millisecond. */
    struct firn_uuid_v7_gen gen = FIRN_UUID_V7_GEN_INIT;
    for (int i = 0; i < 3; i++) {
        int r = firn_uuid_v7(&gen, now_ms(), rng, &id);
        if (r != 0)
            return r;
        firn_uuid_format(&id, text);
        printf("v7    %s\n", text);
    }

    /* The same name always gives the same UUID. */
    firn_uuid_v5(&firn_uuid_ns_dns, "www.example.com", 15, &read);
    firn_uuid_format(&read, text);
    printf("v5    %s\n", text);

    /* Reading is strict; firn_uuid_parse_any() also takes urn:uuid:, braces and bare digits. */
    uint64_t ms;
    firn_uuid_format(&id, text);
    int r = firn_uuid_parse(text, strlen(text), &read);
    if (r == 0)
        r = firn_uuid_unix_ms(&read, &ms);
    if (r == 0)
        printf("      version %d, made at %" PRIu64 " ms\n", firn_uuid_version(&read), ms);
    return r;
}

static int ulids(void)
{
    struct firn_rng *rng = firn_rng_thread();
    struct firn_ulid_gen gen = FIRN_ULID_GEN_INIT;
    struct firn_ulid id, last, read;
    char text[FIRN_ULID_TEXT_BUF];
    memset(&last, 0, sizeof last);
    for (int i = 0; i < 3; i++) {
        /* FIRN_EOVERFLOW is possible by the specification, and next to impossible by chance. */
        int r = firn_ulid_next(&gen, now_ms(), rng, &id);
        if (r != 0)
            return r;
        firn_ulid_format(&id, text);
        printf("ulid  %s %s\n", text, firn_ulid_cmp(&id, &last) > 0 ? "rising" : "not rising?");
        last = id;
    }
    int r = firn_ulid_parse(text, strlen(text), &read);
    if (r == 0)
        printf("      made at %" PRIu64 " ms\n", firn_ulid_unix_ms(&read));

    /* The letters that look like digits are not in the alphabet: a typo is refused, not guessed. */
    text[0] = 'O';
    printf("      %s: %s\n", text, firn_error_message(firn_ulid_parse(text, strlen(text), &read)));
    return r;
}

int main(void)
{
    int r = uuids();
    if (r == 0)
        r = ulids();
    if (r != 0)
        fprintf(stderr, "%s: %s\n", firn_error_name(r), firn_error_message(r));
    return r != 0;
}
