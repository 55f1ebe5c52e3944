/* web.h - files of the tree in the program (cmake/embed.cmake). */
#ifndef FIRN_AUDITLOG_WEB_H
#define FIRN_AUDITLOG_WEB_H

#include <stddef.h>

extern const unsigned char web_auditlog_openapi_json[];
extern const size_t web_auditlog_openapi_json_len;

#endif
