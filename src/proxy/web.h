/* web.h - the files of the admin page, put into the program by cmake/embed.cmake. */
#ifndef FIRN_PROXY_WEB_H
#define FIRN_PROXY_WEB_H

#include <stddef.h>

extern const unsigned char web_gateway_html[], web_gateway_js[], web_page_js[], web_words_js[],
    web_dashboard_css[];
extern const size_t web_gateway_html_len, web_gateway_js_len, web_page_js_len, web_words_js_len,
    web_dashboard_css_len;

#endif
