/* Whether a database may be used. Tested in tests/integration/auditlog.py. */
#include "auditlog/check.h"
#include "auditlog/statement.h"
#include "platform/mono.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHECK_MS = 10000 };

static bool refuse(struct session_why *why, const char *text)
{
    snprintf(why->text, sizeof why->text, "%s", text);
    return false;
}

bool check_database(struct session *s, const struct schema_place *place, uint32_t ahead_days,
                    struct session_why *why)
{
    char at[48];
    const char days[4] = { (char)(ahead_days >> 24), (char)(ahead_days >> 16),
                           (char)(ahead_days >> 8), (char)ahead_days };
    const struct query q = statement_check(days);
    PGresult *res = NULL;
    enum session_end end = session_run(s, &q, 1, &res, mono_now_ms() + CHECK_MS, why);
    if (end == SESSION_REFUSED &&
        (strcmp(why->sqlstate, "42P01") == 0 || strcmp(why->sqlstate, "3F000") == 0))
        return refuse(why, "the tables are missing: run `firn-auditlog init`");
    if (end == SESSION_REFUSED && strcmp(why->sqlstate, "42501") == 0)
        return refuse(why, "its user may not write: GRANT firn_audit_writer TO that user");
    if (end != SESSION_OK)
        return false;
    const char *v[CHECK_MADE];
    for (int i = 0; i < CHECK_MADE; i++)
        v[i] = PQntuples(res) == 1 ? PQgetvalue(res, 0, i) : "";
    bool ok = true;
    snprintf(at, sizeof at, "%zu/%zu", place->database, place->databases);
    if (strtol(v[CHECK_SCHEMA], NULL, 10) < schema_version())
        ok = refuse(why, "the tables are of an older version: run `firn-auditlog init`");
    else if (strcmp(v[CHECK_STANDBY], "false") != 0)
        ok = refuse(why, "it is a standby: give the primary");
    else if (strcmp(v[CHECK_FSYNC], "on") != 0)
        ok = refuse(why, "it runs with fsync=off and may forget what it confirmed: set fsync = on "
                         "in postgresql.conf and reload it");
    else if (strcmp(v[CHECK_PLACE], at) != 0)
        ok = refuse(why, "it was set up with another place in `shards` (firn_audit.place says "
                         "which): give the databases as before");
    PQclear(res);
    return ok;
}
