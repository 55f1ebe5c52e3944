/*
 * trace.h - what happened between a few parties, step by step: the data of a sequence diagram.
 * Players (cli/lab/raft.c, cli/lab/paxos.c) write one while the real code runs; the command line
 * draws it. A step is a message that arrived or was lost, or something that one party did by
 * itself, and the state of all parties after it. One thread.
 */
#ifndef FIRN_CLI_LAB_TRACE_H
#define FIRN_CLI_LAB_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAB_PARTIES_MAX = 6,
    LAB_FIELDS_MAX = 7,
    LAB_NAME_BUF = 16,
    LAB_CELL_BUF = 24,
    LAB_LABEL_BUF = 96,
    LAB_WHY_BUF = 288,
    LAB_TITLE_BUF = 160,
    LAB_STEPS_MAX = 1000, /* far above any run; a player in an endless loop stops here */
};

enum lab_kind {
    LAB_CHAPTER, /* a heading; from and to are LAB_NOBODY */
    LAB_MESSAGE, /* from one to another */
    LAB_LOST,    /* the same, but it never arrived */
    LAB_NOTE,    /* something that `from` did */
    LAB_FAULT,   /* something that was done to `from`, or to the link between from and to */
    LAB_QUIET,   /* messages that changed nothing, counted and left out; of no party */
};
#define LAB_NOBODY (-1)

struct lab_step {
    enum lab_kind kind;
    const char *event; /* what it was, for programs: "commit"; static */
    int from, to;      /* parties */
    uint64_t at_ms;    /* virtual time since the trace begins */
    uint64_t term;     /* Raft: term, Paxos: round of the ballot; 0: none */
    uint64_t index;    /* Raft: of the log; 0: none */
    char label[LAB_LABEL_BUF];
    char why[LAB_WHY_BUF];                                    /* a sentence or two for the reader */
    char cell[LAB_PARTIES_MAX][LAB_FIELDS_MAX][LAB_CELL_BUF]; /* state; "" where it has none */
};

struct lab_trace {
    const char *lab; /* "raft"; static */
    char title[LAB_TITLE_BUF];
    uint64_t seed;
    unsigned parties, fields;
    char party[LAB_PARTIES_MAX][LAB_NAME_BUF];
    const char *field[LAB_FIELDS_MAX]; /* static */
    struct lab_step *step;
    size_t steps, room;
    bool full; /* out of memory, or LAB_STEPS_MAX */
};

void lab_trace_init(struct lab_trace *t, const char *lab, uint64_t seed);
void lab_trace_done(struct lab_trace *t);

/* Returns its number. */
int lab_trace_party(struct lab_trace *t, const char *name);
void lab_trace_field(struct lab_trace *t, const char *name);

/* A new step with the state of the one before; never NULL, but without effect when the trace is
 * full. */
struct lab_step *lab_trace_add(struct lab_trace *t, enum lab_kind kind, const char *event, int from,
                               int to, uint64_t at_ms);
__attribute__((format(printf, 2, 3))) void lab_label(struct lab_step *s, const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void lab_why(struct lab_step *s, const char *fmt, ...);

/* The state of a party in a step. */
__attribute__((format(printf, 4, 5))) void lab_cell(struct lab_step *s, int party, unsigned field,
                                                    const char *fmt, ...);

/* The first step from number `from` on with that event, or t->steps. */
size_t lab_trace_find(const struct lab_trace *t, size_t from, const char *event);

#endif
