/* ulid_text.h - the paths of firn/ulid.h that need no particular processor, for tests to
 * compare. */
#ifndef FIRN_ID_ULID_TEXT_H
#define FIRN_ID_ULID_TEXT_H

#include "firn/ulid.h"

/* FIRN_ULID_TEXT_LEN characters, without a NUL. */
int firn__ulid_parse_portable(const char *p, struct firn_ulid *out);
void firn__ulid_format_portable(const struct firn_ulid *id, char *out);

#endif
