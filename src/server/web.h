/* web.h - the files of web/, and pages of docs/, put into the program by cmake/embed.cmake. */
#ifndef FIRN_SERVER_WEB_H
#define FIRN_SERVER_WEB_H

#include <stddef.h>

/* The documentation in the dashboard, each page by gzip: src/server/CMakeLists.txt and web/docs.js
 * have the same list. Written by hand, as the formatter changes such a list at each run. */
/* clang-format off */
#define WEB_DOCS(X) \
    X(overview) X(tutorial) X(choosing) X(faq) X(troubleshooting) X(formats) X(layouts) \
    X(generators) X(http) X(redis) X(dashboard) X(client) X(clients) X(bindings) X(recipes) \
    X(browsers) X(tools) X(election) X(lab) X(gateway) X(coordination) X(cluster) X(containers) \
    X(kubernetes) X(operations) X(alerts) X(tracing) X(security) X(upgrading) X(benchmarks)
/* clang-format on */

#define WEB_SCRIPTS(X) X(page) X(dashboard) X(views) X(playground) X(docs) X(words) X(lab)

extern const unsigned char web_index_html[], web_dashboard_css[], web_lab_html[], web_lab_css[];
extern const size_t web_index_html_len, web_dashboard_css_len, web_lab_html_len, web_lab_css_len;
extern const unsigned char web_lab_json_gz[]; /* what firn lab all --json prints, by gzip */
extern const size_t web_lab_json_gz_len;

#define X(name)                                   \
    extern const unsigned char web_##name##_js[]; \
    extern const size_t web_##name##_js_len;
WEB_SCRIPTS(X)
#undef X

#define X(name)                                   \
    extern const unsigned char web_##name##_md[]; \
    extern const size_t web_##name##_md_len;
WEB_DOCS(X)
#undef X

#endif
