/*
 * json_pick.h - values inside of a JSON text, by name and place, without a tree: a value is the
 * slice of the text that holds it. The text was checked as a whole before (json_whole()); what is
 * not there is absent. Pure; any thread.
 */
#ifndef FIRN_PROXY_JSON_PICK_H
#define FIRN_PROXY_JSON_PICK_H

#include "wire/json_read.h"

/* The value of a whole text, without the space around it; absent if it is not JSON. */
struct slice json_whole(const char *p, size_t len);

enum json_type json_type_of(struct slice value);

/* The member called `name` of an object; of an array the element with that number. */
struct slice json_pick(struct slice value, const char *name);

/* Element by element: start with *place = 0. False at the end, and for what is no array. */
bool json_each_element(struct slice array, size_t *place, struct slice *out);

/* The text of a string, number or boolean, as a path or query has it. False: it is null, an object
 * or an array, or `out` is full. */
bool json_as_text(struct slice value, struct buf *out);

#endif
