/*
 * composition.h - a declared composition: which parts a request is made of, where their targets get
 * their values from, and the shape of the answer. Made of an entry of `compositions`. Pure; a
 * composition is constant.
 */
#ifndef FIRN_PROXY_COMPOSITION_H
#define FIRN_PROXY_COMPOSITION_H

#include "proxy/config.h"
#include "proxy/shape.h"
#include "proxy/template.h"

enum { COMPOSITION_PARTS_MAX = 16, COMPOSITION_REST_MAX = 8 };

struct composition_part {
    const char *name, *service;
    size_t backend; /* its place in the plan, which sets it */
    struct template target;
    uint32_t needs; /* a bit for each part whose values it has; all stand before it */
    bool required;
};

struct composition {
    const struct config_composition *conf;
    struct arena memory;
    size_t n, rest_n;
    struct composition_part part[COMPOSITION_PARTS_MAX];
    struct slice rest[COMPOSITION_REST_MAX]; /* segments behind the route's path */
    bool rest_var[COMPOSITION_REST_MAX];     /* it is a value's name, not a text */
    struct shape_node shape;                 /* child NULL: the parts as they are */
};

/* Everything but whether its services are there. FIRN_EFORMAT: *key says which key is to blame. */
FIRN_MUSTUSE int composition_make(const struct config_composition *conf, struct composition *out,
                                  const char **key, struct firn_diag *why);
void composition_free(struct composition *c); /* does nothing to a zeroed one */

/* Where a value of a target comes from. */
enum composition_value {
    COMPOSITION_REST,   /* "user" or "1": a segment of the path */
    COMPOSITION_HEADER, /* "header:X-User-ID", as the service would get it */
    COMPOSITION_QUERY,  /* "query:page" */
    COMPOSITION_PART,   /* "user.city": of a part before */
};
struct composition_source {
    enum composition_value from;
    size_t index;      /* of the segment or part */
    struct slice name; /* of the header or parameter; the path in the part */
};

/* FIRN_EFORMAT: there is no such value. */
FIRN_MUSTUSE int composition_source(const struct composition *c, struct slice name,
                                    struct composition_source *out);

/* The segments of a path behind the route's own, still encoded; true if they are what the
 * composition declares. */
bool composition_rest(const struct composition *c, struct slice rest,
                      struct slice out[COMPOSITION_REST_MAX]);

#endif
