/* web.h - the files of web/, put into the program by cmake/embed.cmake. */
#ifndef FIRN_SERVER_WEB_H
#define FIRN_SERVER_WEB_H

#include <stddef.h>

extern const unsigned char web_index_html[];
extern const size_t web_index_html_len;

#endif
