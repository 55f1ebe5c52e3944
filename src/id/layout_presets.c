/* The layouts that people meet. Each row is a text that firn_layout_parse() reads, nothing more.
 * Tested in tests/unit/id/layout.c. */
#include "firn/layout.h"

static const struct firn_preset presets[] = {
    { "firn", "unused:1,time:41@1ms,node:10,seq:12;epoch=1609459200000",
      "the default: 1,024 nodes, 4,096 IDs per millisecond each, until 2090" },
    { "twitter", "unused:1,time:41@1ms,dc:5,worker:5,seq:12;epoch=1288834974657",
      "Twitter's Snowflake of 2010" },
    { "discord", "time:42@1ms,dc:5,worker:5,seq:12;epoch=1420070400000;unsigned",
      "Discord: worker and process numbers of 5 bits" },
    { "instagram", "time:41@1ms,shard:13,seq:10;epoch=1314220021721;unsigned",
      "Instagram: the logical shard is the identity" },
    { "mastodon", "time:48@1ms,seq:16;epoch=0;unsigned;decode-only",
      "Mastodon: milliseconds since 1970 and 16 bits that no node owns" },
    { "sonyflake", "unused:1,time:39@10ms,seq:8,node:16;epoch=1409529600000",
      "Sonyflake: 10 ms ticks, 65,536 machines, 256 IDs per tick" },
    { "uid-generator", "unused:1,time:28@1s,worker:22,seq:13;epoch=1463673600000",
      "Baidu's default: its 28 bits of seconds ran out in November 2024" },
    { "leaf", "unused:1,time:41@1ms,worker:10,seq:12;epoch=1288834974657",
      "Meituan's Leaf in Snowflake mode" },
    { "tsid", "time:42@1ms,node:10,seq:12;epoch=1577836800000;unsigned",
      "TSID with 1,024 nodes; its text is 13 characters of Crockford base32" },
    { "cockroach", "unused:1,time:48@10us,node:15;epoch=1420070400000",
      "CockroachDB's unique_rowid(): 10 us ticks, no sequence" },
    { "mission-8192", "time:41@1ms,dc:5,worker:5,seq:13;epoch=1704067200000;unsigned",
      "41/5/5/13: 8,192 IDs per millisecond; fills all 64 bits" },
    { "audit", "unused:1,time:41@1ms,shard:5,worker:5,seq:12;epoch=1609459200000",
      "audit logs: the database shard travels in the ID" },
    { "js53", "time:41@1ms,node:5,seq:7;epoch=1609459200000",
      "53 bits: exact as a JavaScript number" },
};

const struct firn_preset *firn_layout_presets(size_t *out_n)
{
    *out_n = sizeof presets / sizeof presets[0];
    return presets;
}
