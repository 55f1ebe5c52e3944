/* uuid_text.h - the path of firn_uuid_parse() that needs no particular processor, for tests. */
#ifndef FIRN_ID_UUID_TEXT_H
#define FIRN_ID_UUID_TEXT_H

#include "firn/uuid.h"

/* FIRN_UUID_TEXT_LEN characters. */
int firn__uuid_parse_portable(const char *p, struct firn_uuid *out);

#endif
