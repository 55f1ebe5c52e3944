/* Ticket numbers: strict decimal text, and whose a number is when masters count in steps. */
#include "firn/ticket.h"

#include <stdbool.h>
#include <string.h>

static bool is_ticket(uint64_t number)
{
    return number >= 1 && number <= FIRN_TICKET_MAX;
}

int firn_ticket_parse(const char *p, size_t len, uint64_t *out)
{
    if (!p || !out)
        return FIRN_EINVAL;
    if (len == 0 || (p[0] == '0' && len > 1))
        return FIRN_EFORMAT;

    uint64_t number = 0; /* 19 digits cannot overflow it; of a longer text it is not used */
    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)(unsigned char)p[i] - '0';
        if (digit > 9)
            return FIRN_EFORMAT;
        number = number * 10 + digit;
    }
    if (len > FIRN_TICKET_TEXT_LEN_MAX || !is_ticket(number))
        return FIRN_ERANGE;
    *out = number;
    return 0;
}

size_t firn_ticket_format(uint64_t number, char out[FIRN_TICKET_TEXT_BUF])
{
    char text[FIRN_TICKET_TEXT_LEN_MAX];
    size_t at = sizeof text;
    if (is_ticket(number))
        for (; number; number /= 10)
            text[--at] = (char)('0' + number % 10);
    size_t len = sizeof text - at;
    memcpy(out, text + at, len);
    out[len] = '\0';
    return len;
}

int firn_ticket_check(uint64_t number, uint64_t offset, uint64_t step)
{
    if (!is_ticket(number) || step == 0 || offset > step)
        return FIRN_EINVAL;
    return number % step == offset % step ? 0 : FIRN_ERANGE;
}
