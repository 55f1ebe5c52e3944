/*
 * The chain: which links a request passes, in order. Tested in tests/integration/gateway.py.
 */
#include "proxy/forward.h"
#include "proxy/links.h"

const struct link chain[] = {
    { "log", NULL, NULL, log_done },
    { "id", id_request, id_answer, NULL },
    { "route", route_request, NULL, NULL },
    { "transform", transform_request, transform_answer, NULL },
    { "breaker", breaker_request, NULL, breaker_done },
    { "forward", forward_request, NULL, forward_done },
};
const size_t chain_n = sizeof chain / sizeof chain[0];
