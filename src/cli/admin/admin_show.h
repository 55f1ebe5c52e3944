/* admin_show.h - what firn admin shows of a store: its slots, and the findings of the doctor. */
#ifndef FIRN_CLI_ADMIN_ADMIN_SHOW_H
#define FIRN_CLI_ADMIN_ADMIN_SHOW_H

#include "store/store.h"

#include <stdbool.h>

/* Each returns the status to exit with; `all` shows free slots, too. */
int admin_slots(struct firn_store *store, bool all, bool json);
int admin_doctor(struct firn_store *store, bool json);

/* The doctor for a store that could not be opened, which was reported with `status`: the stores
 * of a quorum can still be examined one by one. `url` as admin_quorum_urls() takes it. */
int admin_doctor_outside(const char *url, bool json, int status);

/* The URLs after "quorum:" in the --store option, or in FIRN_STORE if `url` is NULL. NULL: the
 * store is no quorum. */
const char *admin_quorum_urls(const char *url);

#endif
