-- The extension firn: see docs/bindings.md.
\echo Use "CREATE EXTENSION firn" to load this file. \quit

CREATE FUNCTION firn_id() RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_firn_id' LANGUAGE C VOLATILE PARALLEL SAFE;
CREATE FUNCTION firn_uuid7() RETURNS uuid
    AS 'MODULE_PATHNAME', 'pg_firn_uuid7' LANGUAGE C VOLATILE PARALLEL SAFE;
CREATE FUNCTION firn_ulid() RETURNS text
    AS 'MODULE_PATHNAME', 'pg_firn_ulid' LANGUAGE C VOLATILE PARALLEL SAFE;
CREATE FUNCTION firn_time(id bigint, layout text DEFAULT 'firn') RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'pg_firn_time' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION firn_time(id text, kind text) RETURNS timestamptz
    AS 'MODULE_PATHNAME', 'pg_firn_time_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION firn_shard(id bigint, layout text DEFAULT 'firn') RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_firn_shard' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION firn_text(id bigint, codec text) RETURNS text
    AS 'MODULE_PATHNAME', 'pg_firn_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION firn_parse(text text, codec text) RETURNS bigint
    AS 'MODULE_PATHNAME', 'pg_firn_parse' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION firn_version() RETURNS text
    AS 'MODULE_PATHNAME', 'pg_firn_version' LANGUAGE C STABLE PARALLEL SAFE;

-- Tickets are rows of the caller's transaction: what is rolled back comes again, so there is no gap.
CREATE TABLE firn_tickets (name text PRIMARY KEY CHECK (name <> ''), last bigint NOT NULL);
SELECT pg_catalog.pg_extension_config_dump('firn_tickets', '');
CREATE FUNCTION firn_ticket(name text) RETURNS bigint LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE AS $$
    INSERT INTO @extschema@.firn_tickets AS t VALUES ($1, 1)
    ON CONFLICT ON CONSTRAINT firn_tickets_pkey DO UPDATE SET last = t.last + 1 RETURNING last
$$;
