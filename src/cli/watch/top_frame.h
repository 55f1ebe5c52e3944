/*
 * top_frame.h - one frame of firn top, drawn into memory for a screen of a given size. Pure: the
 * result depends on the arguments only. One thread.
 */
#ifndef FIRN_CLI_WATCH_TOP_FRAME_H
#define FIRN_CLI_WATCH_TOP_FRAME_H

#include "cli/watch/top_node.h"

#include <stdio.h>

struct top_view {
    const struct top_node *node;
    size_t nodes;
    size_t width, height; /* of the screen; 0: unlimited */
    bool colour;
    const double *history; /* IDs per second of all nodes, the newest last */
    size_t history_n;
    const char *when; /* the time, for the first line */
    bool keys;        /* show the keys */
};

/* Lines without cursor movement; columns that do not fit are left out, the least important
 * first, and lines that do not fit are counted in the last one. */
void top_frame(const struct top_view *v, FILE *out);

#endif
