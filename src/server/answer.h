/*
 * answer.h - lists of IDs as HTTP answers: JSON, one line per ID, octets, or runs. Everything is
 * written straight into the reply's buffer; nothing else is allocated. For the reply's thread.
 */
#ifndef FIRN_SERVER_ANSWER_H
#define FIRN_SERVER_ANSWER_H

#include "coord/sequence.h"
#include "firn/mint.h"
#include "firn/text.h"
#include "net/service.h"

/* Octets: a big-endian 64-bit number per ID. Runs: three such numbers per run of IDs that count up
 * evenly: the first, the step, how many. IDs made at once are such runs: a hundredth of the size.
 */
enum answer_format { ANSWER_JSON, ANSWER_TEXT, ANSWER_OCTETS, ANSWER_RUNS };

static inline bool answer_is_binary(enum answer_format f)
{
    return f == ANSWER_OCTETS || f == ANSWER_RUNS;
}

struct answer { /* how it is to be written; zero: one ID as JSON, a decimal number */
    enum answer_format format;
    bool list;                      /* {"ids":[...]} even if there is only one */
    bool replayed;                  /* Idempotent-Replayed: true */
    const struct firn_codec *codec; /* NULL: decimal */
    const char *prefix;             /* NULL, or stands in front with an underscore */
    size_t prefix_len;
};

/* The format that Accept asks for. Without it, or if it names none that we have: JSON. */
enum answer_format answer_format(struct slice accept);

/* The bound on one answer, below the network's own on unsent bytes (16 MiB). */
enum { ANSWER_BYTES_MAX = 12 * 1024 * 1024 };

/* Bytes that n texts of up to text_max characters take. */
uint64_t answer_bytes(const struct answer *a, uint64_t n, size_t text_max);

/* Whole answers with status 200, Cache-Control: no-store; at least one number. */
void answer_numbers(struct reply *r, const struct answer *a, const uint64_t *ids, size_t n);
void answer_range(struct reply *r, const struct answer *a, const struct seq_range *range);

/* Texts that write(user, i, out) makes, each at most FIRN_MINT_TEXT_BUF - 1 bytes and free of what
 * JSON would have to escape. It returns the length, or an error: then the reply stays empty, and
 * this returns the error. Not for binary formats. */
typedef int answer_text_fn(void *user, size_t i, char out[FIRN_MINT_TEXT_BUF]);
FIRN_MUSTUSE int answer_texts(struct reply *r, const struct answer *a, size_t n,
                              answer_text_fn *write, void *user);

/* The hot path: one number as JSON, nothing to choose. */
void answer_one(struct reply *r, uint64_t id);

#endif
