/* hex.h - the value of a hexadecimal digit. */
#ifndef FIRN_ID_HEX_H
#define FIRN_ID_HEX_H

/* 0..15, of either case; -1: it is none. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
