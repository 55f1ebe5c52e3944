/*
 * The chain: which links a request passes, in order. Tested in tests/integration/gateway.py.
 */
#include "proxy/bodies.h"
#include "proxy/cache_link.h"
#include "proxy/capture.h"
#include "proxy/compose.h"
#include "proxy/forward.h"
#include "proxy/held.h"
#include "proxy/links.h"
#include "proxy/query.h"
#include "proxy/tracing.h"

const struct link chain[] = {
    { "log", .done = log_done, .metrics = log_metrics },
    { "id", .request = id_request, .answer = id_answer },
    { "trace", .request = trace_request, .answer = trace_answer, .done = trace_done,
      .metrics = trace_metrics, .status = trace_status },
    { "route", .request = route_request },
    { "gzip", .answer = gzip_answer, .metrics = gzip_metrics },
    { "capture", .request = capture_request, .answer = capture_answer },
    { "limit", .request = limit_request, .answer = limit_head, .done = limit_done,
      .metrics = limit_metrics, .status = limit_status },
    { "jwt", .request = jwt_request, .metrics = jwt_metrics, .status = jwt_status },
    { "limit_user", .request = limit_user_request },
    { "fault", .request = fault_request, .done = fault_done, .metrics = fault_metrics,
      .status = fault_status },
    { "transform", .request = transform_request, .answer = transform_answer },
    { "json", .request = json_request, .answer = json_answer, .done = json_done,
      .metrics = held_metrics },
    { "split", .request = split_request, .metrics = split_metrics, .status = split_status },
    { "compose", .request = compose_request, .done = compose_done, .metrics = compose_metrics },
    { "graphql", .request = query_request, .done = query_done, .metrics = query_metrics },
    { "cache", .request = cache_request, .answer = cache_answer, .done = cache_done,
      .metrics = cache_metrics, .status = cache_status },
    { "breaker", .request = breaker_request, .done = breaker_done },
    { "forward", .request = forward_request, .done = forward_done, .metrics = forward_metrics },
};
const size_t chain_n = sizeof chain / sizeof chain[0];
