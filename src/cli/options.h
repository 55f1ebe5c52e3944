/*
 * options.h - one table per command: it reads the options, writes --help and feeds the completions.
 * Options and operands may come in any order; `--` ends the options; -n5, -n 5, --count=5 and
 * --count 5 are the same. One thread.
 */
#ifndef FIRN_CLI_OPTIONS_H
#define FIRN_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opt_type {
    OPT_FLAG,   /* a bool becomes true */
    OPT_TEXT,   /* a const char *, borrowed from argv */
    OPT_NUMBER, /* a uint64_t within min..max */
    OPT_COUNT,  /* the same; k, M or G may follow: 100M */
    OPT_TIME,   /* a uint64_t of milliseconds within min..max; written as duration.h reads it */
};

#define OPT_NOT_GIVEN UINT64_MAX /* preset of numbers whose absence matters */

struct opt {
    const char *name; /* without its dashes; NULL ends the table */
    char letter;      /* 0: none */
    enum opt_type type;
    size_t at;         /* offset in the command's struct */
    const char *value; /* name of the value in the help; NULL for flags */
    const char *words; /* what completes the value: see words.h; NULL: anything */
    uint64_t min, max;
    const char *about;
};

#define OPT_NUMBER(struct_, member, name_, value_, min_, max_, about_)                      \
    {                                                                                       \
        .name = name_, .type = OPT_COUNT, .at = offsetof(struct_, member), .value = value_, \
        .min = min_, .max = max_, .about = about_                                           \
    }
#define OPT_WORDS(struct_, member, name_, value_, about_)                                  \
    {                                                                                      \
        .name = name_, .type = OPT_TEXT, .at = offsetof(struct_, member), .value = value_, \
        .about = about_                                                                    \
    }
/* Every command that prints data has it. */
#define OPT_JSON(type, member)                                       \
    {                                                                \
        .name = "json", .letter = 'j', .at = offsetof(type, member), \
        .about = "JSON instead of text"                              \
    }

struct usage {
    const char *name;     /* "gen" */
    const char *examples; /* lines, each indented by two blanks */
    const char *synopsis; /* what follows "Usage: "; more lines are indented by hand */
    const char *about;    /* lines */
    const char *operands; /* what completes operands: see words.h; NULL: nothing */
    const struct opt *opts;
};

/* A row of the table of commands in main.c. */
struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
    const struct usage *usage;
};

/* Read argv[1..] into `into`, a struct of the command. Operands move to argv[1..*out_operands].
 * -1: go on; otherwise the status to exit with, after help or an error message. */
int options_parse(const struct usage *u, int argc, char **argv, void *into, int *out_operands);

/* Print the help text to stdout. */
void options_help(const struct usage *u);

/* Digits only, as options and operands are read; `suffix` allows k, M, G. False: something else, or
 * beyond 64 bits. */
bool options_number(const char *text, bool suffix, uint64_t *out);

#endif
