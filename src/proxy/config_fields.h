/* config_fields.h - keys whose value is a list of headers, for tables of services and routes. */
#ifndef FIRN_PROXY_CONFIG_FIELDS_H
#define FIRN_PROXY_CONFIG_FIELDS_H

#include "daemon/config_entries.h"

/* struct config_fields: a list of 'Name: value'. With min = 1 also headers that are the gateway's
 * own (to compare with, not to set). */
extern const struct entry_type config_fields_type;

/* Checks of texts. */
int config_check_field_name(const struct entry_reader *r, const struct entry_key *k, char *name);
int config_check_path(const struct entry_reader *r, const struct entry_key *k, char *text);
/* Whether all characters are of a class of wire/http_line.h, and there is one. */
bool config_all_are(const char *text, uint8_t what);

#endif
