/* Names and messages of the error list, and the one way to fill a struct firn_diag. */
#include "firn/error.h"
#include "id/diag.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    int error;
    const char *name, *message;
} errors[] = { { FIRN_OK, "FIRN_OK", "success" },
#define X(name, number, message) { FIRN_##name, "FIRN_" #name, message },
               FIRN_ERRORS(X)
#undef X
};

enum { ERRORS = sizeof errors / sizeof errors[0] };

const char *firn_error_name(int error)
{
    for (int i = 0; i < ERRORS; i++)
        if (errors[i].error == error)
            return errors[i].name;
    return "FIRN_E?";
}

const char *firn_error_message(int error)
{
    for (int i = 0; i < ERRORS; i++)
        if (errors[i].error == error)
            return errors[i].message;
    return "unknown error";
}

int firn__diag(struct firn_diag *d, int error, size_t column, const char *fmt, ...)
{
    if (!d)
        return error;
    va_list args;
    va_start(args, fmt);
    d->column = column;
    vsnprintf(d->text, sizeof d->text, fmt, args);
    va_end(args);
    return error;
}
