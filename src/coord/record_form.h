/*
 * record_form.h - a kind of record as a table of fields; the encoder and the parser both walk it.
 * The order of the table is the order of the lines, and it is part of the format: a change needs a
 * new version. For the files that define records; other files use their encode and parse
 * functions.
 */
#ifndef FIRN_COORD_RECORD_FORM_H
#define FIRN_COORD_RECORD_FORM_H

#include "coord/record.h"

enum record_type { NUMBER, NONCE, TEXT, NOTE, CHOICE };

struct record_field {
    const char *name;
    enum record_type type;
    size_t offset;
    size_t max;                /* TEXT, NOTE: longest; */
    const char *const *choice; /* CHOICE: names of 0, 1, ... up to NULL */
};

struct record_form {
    const char *head; /* first line: kind and version */
    const struct record_field *field;
    size_t count;
};

#define F(kind, member, ...)                                  \
    {                                                         \
#member, __VA_ARGS__, offsetof(kind, member), 0, NULL \
    }
#define FT(kind, member, type_)                                                       \
    {                                                                                 \
#member, type_, offsetof(kind, member), sizeof(((kind *)0)->member) - 1, NULL \
    }
#define FC(kind, member, choice_)                           \
    {                                                       \
#member, CHOICE, offsetof(kind, member), 0, choice_ \
    }

/* The text's length. `out` has room for the longest text of this form. */
size_t record_encode(const struct record_form *form, const void *record, char *out);

/* The whole text, or FIRN_EFORMAT with the place. */
FIRN_MUSTUSE int record_parse(const struct record_form *form, const char *p, size_t len,
                              void *record, struct firn_diag *d);

/* The same for a record that goes on after the table's lines, at *out_used. */
FIRN_MUSTUSE int record_parse_head(const struct record_form *form, const char *p, size_t len,
                                   void *record, size_t *out_used, struct firn_diag *d);

/* Parts of values: numbers as encode writes them. false: not the text that it would write. */
size_t record_put_number(char *out, uint64_t v);
bool record_get_number(const char *p, size_t len, uint64_t *out);

/* "slot/00012": registers by number, so that byte order is number order. */
size_t record_number_key(const char *prefix, uint32_t n, char out[RECORD_KEY_BUF]);
FIRN_MUSTUSE int record_number_key_parse(const char *prefix, const char *p, size_t len,
                                         uint32_t *out);
/* "seq/<name>" */
size_t record_name_key(const char *prefix, const char *name, size_t len, char out[RECORD_KEY_BUF]);

#endif
