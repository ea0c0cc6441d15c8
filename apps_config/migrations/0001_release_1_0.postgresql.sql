-- A row stays in its app: its children were compared with it when they were written.
CREATE FUNCTION refuse_new_app() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: a row stays in its app', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;

-- Count one row less in the part `_old` of the list and one more in `_new`; null: in none. Each
-- connection has one of 32 slots, so that concurrent transactions seldom wait for the same count;
-- they lock parts in order.
CREATE FUNCTION tally_move(_app uuid, _listing text, _old text, _new text) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO apps_config_listingtally AS tally (app_id, listing, part, slot, count)
    SELECT _app, _listing, part, pg_backend_pid() % 32, sum(change)
    FROM (VALUES (_old, -1), (_new, 1)) AS changes (part, change)
    WHERE part IS NOT NULL
    GROUP BY part HAVING sum(change) <> 0 ORDER BY part
    ON CONFLICT (app_id, listing, part, slot) DO UPDATE SET count = tally.count + excluded.count
$$;

-- Tables that grow: by default, autovacuum waits until a fifth of them has changed.
ALTER TABLE apps_config_idempotencyrecord SET (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_analyze_scale_factor = 0.01,
    autovacuum_vacuum_insert_scale_factor = 0.05
);

-- Few rows that change all the time: the table stays small only if it is vacuumed without pauses.
ALTER TABLE apps_config_listingtally SET (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE apps_config_requestcount SET (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
