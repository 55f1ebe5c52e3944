-- Run by pg_regress on a server that has firn in shared_preload_libraries and a store.
CREATE EXTENSION firn;
SET timezone = 'UTC';
-- IDs as a default: distinct, and rising in one session
CREATE TABLE account (id bigint PRIMARY KEY DEFAULT firn_id(), n int);
INSERT INTO account (n) SELECT generate_series(1, 5000);
SELECT count(*), count(DISTINCT id), count(DISTINCT firn_shard(id)) AS slots FROM account;
SELECT count(*) AS fell FROM (SELECT id < lag(id) OVER (ORDER BY n) AS fell FROM account) s WHERE fell;
SELECT abs(extract(epoch FROM firn_time(max(id)) - now())) < 86400 AS today FROM account;
-- texts
SELECT firn_text(9223372036854775807, 'base62'), firn_text(-1, 'decimal'), firn_text(42, 'crockford-check');
SELECT firn_parse('AzL8n0Y58m7', 'base62'), firn_parse('18446744073709551615', 'decimal'), firn_parse(NULL, 'hex');
SELECT firn_text(1, 'base63');
SELECT firn_parse('?', 'hex');
-- times and shards
SELECT firn_time(1541815603606036480, 'twitter'), firn_shard(1541815603606036480, 'twitter');
SELECT firn_shard(11637205501278089, 'instagram');
SELECT firn_time('01ARZ3NDEKTSV4RRFFQ69G5FAV', 'ulid'), firn_time('919108f7-52d1-4320-9bac-f847db4148a8', 'uuid');
SELECT firn_time(-1);
CREATE INDEX ON account (firn_time(id));
CREATE INDEX ON account (firn_text(firn_id(), 'hex'));
-- UUIDs and ULIDs
SELECT count(DISTINCT firn_uuid7()), min(substr(firn_uuid7()::text, 15, 1)), min(length(firn_ulid())) FROM generate_series(1, 100);
-- tickets are part of the transaction
SELECT firn_ticket('a'), firn_ticket('a'), firn_ticket('b');
BEGIN;
SELECT firn_ticket('a');
ROLLBACK;
SELECT firn_ticket('a');
SELECT firn_ticket('');
-- markings
SELECT proname, pronargs, provolatile, proparallel, proisstrict FROM pg_proc WHERE proname LIKE 'firn\_%' ORDER BY 1, 2, proargtypes::text;
DROP EXTENSION firn CASCADE;
