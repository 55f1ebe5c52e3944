/*
 * follow.h - lines of a file that grows, or of standard input, as they are completed.
 * A line counts once its newline is there. A file that was truncated is read from its beginning
 * again, and so is a new file of the same name once the old one is read to its end (log rotation).
 * One thread.
 */
#ifndef FIRN_CLI_VERIFY_FOLLOW_H
#define FIRN_CLI_VERIFY_FOLLOW_H

#include "cli/verify/lines.h"
#include "firn/error.h"

enum follow_result {
    FOLLOW_NOTHING = 0, /* no whole line now; perhaps later */
    FOLLOW_LINE = 1,  /* without its newline or \r\n; at most LINES_TEXT_MAX bytes, may be empty */
    FOLLOW_LONG = 2,  /* a longer line: skipped, no text is given */
    FOLLOW_END = 3,   /* standard input has ended; of a file, if it is not followed */
    FOLLOW_AGAIN = 4, /* the file was truncated or replaced: lines count from 1 again */
    /* negative: a FIRN_E... code; `why` says what the system answered */
};

struct follow {
    const char *path; /* borrowed; "-": standard input */
    int fd;
    bool grows; /* wait for more at its end */
    bool eof, skipping;
    uint64_t inode;
    uint64_t identity_; /* see follow_identity(); 0: not known yet */
    uint64_t offset;    /* of the first byte that belongs to no line given yet */
    uint64_t line;      /* the number of the last line given */
    size_t at, end;
    char *buf;
    char why[128];
};

/* FIRN_EIO: it cannot be opened, FIRN_ENOMEM. */
FIRN_MUSTUSE int follow_open(struct follow *f, const char *path, bool grows);
void follow_close(struct follow *f);

/* What tells this file from one that takes its name later: its inode, which may be used again,
 * and its first line. 0 for standard input, and while there is no whole line. */
uint64_t follow_identity(struct follow *f);

/* Continue after a position that was read before: the file's identity, the offset, and the
 * number of the line before it. Does nothing if it is another file, or a shorter one. */
void follow_resume(struct follow *f, uint64_t identity, uint64_t offset, uint64_t line);

/* The next line, valid until the next call. Never waits: see follow_wait(). */
FIRN_MUSTUSE int follow_next(struct follow *f, const char **out_p, size_t *out_len);

/* Wait until there may be more, `ms` have passed, or a signal came. */
void follow_wait(struct follow *f, unsigned ms);

/* Bytes of the file after the last line given; 0 for standard input. */
uint64_t follow_lag(const struct follow *f);

#endif
