/* config_split.h - the keys `split` and `split_by` of a route: services and their shares. */
#ifndef FIRN_PROXY_CONFIG_SPLIT_H
#define FIRN_PROXY_CONFIG_SPLIT_H

#include "daemon/config_entries.h"

/* struct config_split: a list of 'service' or 'service WEIGHT'. */
extern const struct entry_type config_split_type;

/* address, user, header:NAME or cookie:NAME. */
int config_check_split_by(const struct entry_reader *r, const struct entry_key *k, char *text);

#endif
