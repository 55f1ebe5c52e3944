/* Places for connections: the limit, the places above it, the limit of one network. */
#include "t.h"

#include "net/places.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static struct places p;

static struct network v6(const char *text)
{
    struct sockaddr_in6 sa = { .sin6_family = AF_INET6 };
    T_EQ(inet_pton(AF_INET6, text, &sa.sin6_addr), 1);
    return network_of((struct sockaddr *)&sa);
}

static struct network v4(const char *text)
{
    struct sockaddr_in sa = { .sin_family = AF_INET };
    T_EQ(inet_pton(AF_INET, text, &sa.sin_addr), 1);
    return network_of((struct sockaddr *)&sa);
}

T_TEST(network_is_an_address_or_64_bits)
{
    T_EQ(v6("2001:db8:1:2::1").id, v6("2001:db8:1:2:ffff:ffff:ffff:ffff").id);
    T_OK(v6("2001:db8:1:2::1").id != v6("2001:db8:1:3::1").id);
    T_OK(v4("10.0.0.1").id != v4("10.0.0.2").id);
    T_EQ(v6("::ffff:10.0.0.1").id, v4("10.0.0.1").id);
    T_OK(v4("127.0.0.1").loopback && v4("127.9.9.9").loopback && v6("::1").loopback);
    T_OK(v6("::ffff:127.0.0.1").loopback);
    T_OK(!v4("128.0.0.1").loopback && !v4("10.0.0.1").loopback && !v6("::2").loopback);
    T_OK(v6("::1").id != 0);
    struct sockaddr other = { .sa_family = AF_UNIX };
    T_OK(network_of(&other).id == 0 && !network_of(&other).loopback);
}

T_TEST(places_above_the_limit)
{
    struct network a = v4("10.0.0.1"), b = v4("10.0.0.2");
    places_init(&p, 3, 0, 42);
    for (int i = 0; i < 3; i++)
        T_EQ(places_take(&p, a), PLACE_OPEN);
    for (int i = 0; i < PLACES_EXTRA_PER_NETWORK; i++)
        T_EQ(places_take(&p, a), PLACE_EXTRA);
    T_EQ(places_take(&p, a), PLACE_NONE, "one network does not take all of them");
    for (int i = 0; i < PLACES_EXTRA - PLACES_EXTRA_PER_NETWORK; i++)
        T_EQ(places_take(&p, b), PLACE_EXTRA);
    T_EQ(places_take(&p, b), PLACE_NONE);
    T_EQ(p.open, 3 + PLACES_EXTRA + 2);
    places_give(&p, a, PLACE_NONE);
    places_give(&p, b, PLACE_NONE);
    places_give(&p, a, PLACE_EXTRA);
    T_EQ(places_take(&p, a), PLACE_EXTRA, "a place that was given back");
    for (int i = 0; i < PLACES_EXTRA / 2; i++) {
        places_give(&p, a, PLACE_EXTRA);
        places_give(&p, b, PLACE_EXTRA);
    }
    T_EQ(places_take(&p, b), PLACE_EXTRA, "three are open");
    places_give(&p, b, PLACE_EXTRA);
    places_give(&p, a, PLACE_OPEN);
    T_EQ(places_take(&p, b), PLACE_OPEN);
    places_give(&p, b, PLACE_OPEN);
    places_give(&p, a, PLACE_OPEN);
    places_give(&p, a, PLACE_OPEN);
    T_EQ(p.open, 0);
    T_EQ(p.extra, 0);
}

T_TEST(places_of_one_network)
{
    struct network a = v6("2001:db8::1"), same = v6("2001:db8::2"), b = v6("2001:db8:0:1::1");
    places_init(&p, 100, 2, 42);
    T_EQ(places_take(&p, a), PLACE_OPEN);
    T_EQ(places_take(&p, same), PLACE_OPEN);
    T_EQ(places_take(&p, same), PLACE_CROWDED);
    T_EQ(places_take(&p, b), PLACE_OPEN);
    places_give(&p, same, PLACE_CROWDED);
    places_give(&p, a, PLACE_OPEN);
    T_EQ(places_take(&p, a), PLACE_OPEN);
    for (int i = 0; i < 90; i++) /* a proxy on this machine stands for many clients */
        T_EQ(places_take(&p, v4("127.0.0.1")), PLACE_OPEN);
}
