/*
 * linear_check FILE... - are these histories of registers linearizable? Each file has one register.
 * One operation a line, in any order, times in nanoseconds of one clock:
 *     CALL RETURN CLIENT read VALUE
 *     CALL RETURN CLIENT cas OLD NEW ok|conflict|unknown
 * Values are words without spaces, `-` is "absent". The register is absent before the first
 * operation. What is left out: reads that failed, and changes that were answered with "nothing was
 * written". Prints one line a file; where a history is not linearizable, also the operations around
 * the place where no order goes on. Exit status 0: all are; 1: one is not; 2: something else is
 * wrong.
 */
#include "linear.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 1500, AROUND = 12 };
#define STATES_MAX ((size_t)4000000)

struct history {
    struct lin_op *op;
    size_t n, room;
    char **value; /* by number; [0] is "-" */
    size_t values, value_room;
};

static void *more(void *p, size_t *room, size_t n, size_t size)
{
    if (n < *room)
        return p;
    *room = *room ? *room * 2 : 64;
    p = realloc(p, *room * size);
    if (!p) {
        fprintf(stderr, "linear_check: out of memory\n");
        exit(2);
    }
    return p;
}

static uint32_t number_of(struct history *h, const char *word)
{
    for (size_t i = h->values; i-- > 0;) /* it mostly is one of the last */
        if (strcmp(h->value[i], word) == 0)
            return (uint32_t)i;
    h->value = more(h->value, &h->value_room, h->values, sizeof *h->value);
    h->value[h->values] = strdup(word);
    return (uint32_t)h->values++;
}

static bool parse(struct history *h, char *line)
{
    static char what[8], one[WORD_MAX + 1], two[WORD_MAX + 1], how[10];
    struct lin_op op = { 0 };
    int n = sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu32 " %7s %1500s %1500s %9s", &op.call,
                   &op.ret, &op.user, what, one, two, how);
    if (n < 5)
        return false;
    op.old = number_of(h, one);
    if (strcmp(what, "read") == 0) {
        op.kind = LIN_READ;
    } else if (strcmp(what, "cas") == 0 && n == 7) {
        op.new = number_of(h, two);
        op.kind = strcmp(how, "ok") == 0         ? LIN_OK
                  : strcmp(how, "conflict") == 0 ? LIN_CONFLICT
                                                 : LIN_UNKNOWN;
        if (op.kind == LIN_UNKNOWN && strcmp(how, "unknown") != 0)
            return false;
    } else {
        return false;
    }
    h->op = more(h->op, &h->room, h->n, sizeof *h->op);
    h->op[h->n++] = op;
    return true;
}

static bool load(struct history *h, const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0, at = 0;
    bool right = f != NULL;
    if (!f)
        fprintf(stderr, "linear_check: %s: %s\n", path, strerror(errno));
    number_of(h, "-");
    while (right && getline(&line, &room, f) > 0) {
        at++;
        right = line[0] == '#' || parse(h, line);
        if (!right)
            fprintf(stderr, "linear_check: %s:%zu: not an operation\n", path, at);
    }
    free(line);
    if (f)
        fclose(f);
    return right;
}

static int by_call(const void *x, const void *y)
{
    const struct lin_op *a = x, *b = y;
    return a->call < b->call ? -1 : a->call > b->call;
}

static void show(const struct history *h, size_t stuck, const struct lin_found *found)
{
    static const char *const how[] = { "", "ok", "conflict", "unknown" };
    uint64_t zero = h->op[0].call;
    size_t from = stuck > AROUND ? stuck - AROUND : 0;
    printf(
        "  after the best order of %zu operations the register is '%s', and no order explains the "
        "marked one:\n",
        found->ordered, h->value[found->value]);
    for (size_t i = from; i < h->n && i <= stuck + AROUND; i++) {
        const struct lin_op *o = &h->op[i];
        printf("  %c client %u  %10.3f ms to ", i == stuck ? '>' : ' ', o->user,
               (double)(o->call - zero) / 1e6);
        if (o->kind == LIN_UNKNOWN)
            printf("%10s   ", "?");
        else
            printf("%10.3f ms", (double)(o->ret - zero) / 1e6);
        if (o->kind == LIN_READ)
            printf("  read '%s'\n", h->value[o->old]);
        else
            printf("  cas '%s' -> '%s': %s\n", h->value[o->old], h->value[o->new], how[o->kind]);
    }
}

static int check(const char *path)
{
    struct history h = { 0 };
    struct lin_found found;
    size_t unknown = 0;
    int status = 2;
    if (load(&h, path)) {
        qsort(h.op, h.n, sizeof *h.op, by_call);
        for (size_t i = 0; i < h.n; i++)
            unknown += h.op[i].kind == LIN_UNKNOWN;
        enum lin_verdict v = lin_check(h.op, h.n, 0, STATES_MAX, &found);
        printf("%s: %zu operations, %zu unknown, %zu states: %s\n", path, h.n, unknown,
               found.looked,
               v == LIN_YES        ? "linearizable"
               : v == LIN_NO       ? "NOT LINEARIZABLE"
               : v == LIN_TOO_HARD ? "TOO HARD TO TELL"
                                   : "OUT OF MEMORY");
        if (v == LIN_NO)
            show(&h, found.stuck, &found);
        status = v == LIN_YES ? 0 : v == LIN_NO ? 1 : 2;
    }
    for (size_t i = 0; i < h.values; i++)
        free(h.value[i]);
    free(h.value);
    free(h.op);
    return status;
}

int main(int argc, char **argv)
{
    int worst = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: linear_check FILE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        int status = check(argv[i]);
        worst = status > worst ? status : worst;
    }
    return worst;
}
