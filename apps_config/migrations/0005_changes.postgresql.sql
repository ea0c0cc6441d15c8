-- Changes for GET /v2/changes, written by triggers of the tables that they are about -------------
CREATE FUNCTION record_change(
    _app uuid, _type text, _action text, _object uuid, _log uuid, _history integer
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, transaction)
    VALUES (_app, _type, _action, transaction_timestamp(), _object, _log, _history,
        pg_current_xact_id()::text::bigint)
$$;

-- A row is inserted, updated or deleted; the arguments are its type and, if it is not that of the
-- statement, the action.
CREATE FUNCTION change_of_row() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM record_change(OLD.app_id, TG_ARGV[0], 'deleted', OLD.id, NULL, NULL);
    ELSE
        PERFORM record_change(
            NEW.app_id, TG_ARGV[0],
            coalesce(TG_ARGV[1], CASE TG_OP WHEN 'INSERT' THEN 'created' ELSE 'updated' END),
            NEW.id, NULL, NULL
        );
    END IF;
    RETURN NULL;
END $$;

-- A row of a change history is inserted; the argument is the object's type.
CREATE FUNCTION change_of_history() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM record_change(
        NEW.app_id, TG_ARGV[0],
        CASE WHEN NEW.history_type = '+' THEN 'created'
            WHEN NEW.history_type = '-' OR to_jsonb(NEW)->>'deleted_at' IS NOT NULL THEN 'deleted'
            ELSE 'updated' END,
        NEW.id, NULL, NEW.history_id
    );
    RETURN NULL;
END $$;

-- The resources of projects are replaced: one change per project and statement.
CREATE FUNCTION change_of_project_resources() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM record_change(project.app_id, 'project', 'updated', project.id, NULL, NULL)
    FROM availability_project AS project
    WHERE project.deleted_at IS NULL AND project.id IN (SELECT project_id FROM changed);
    RETURN NULL;
END $$;

-- An entry of a booking's log is written.
CREATE FUNCTION change_of_log() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM record_change(NEW.app_id, 'booking', NEW.action, NEW.booking_id, NEW.id, NULL);
    RETURN NULL;
END $$;

-- A booking is deleted or marked as deleted: lists no longer show its events.
CREATE FUNCTION change_of_deleted_booking() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM record_change(OLD.app_id, 'booking', 'deleted', OLD.id, NULL, NULL);
    IF TG_OP = 'UPDATE' AND OLD.owner_booking_id IS NULL THEN
        PERFORM record_change(event.app_id, 'event', 'deleted', event.id, NULL, NULL)
        FROM availability_event AS event
        WHERE event.id = OLD.event_id OR event.main_id = OLD.event_id;
    END IF;
    RETURN NULL;
END $$;

-- A delivery ends; the action is its final state.
CREATE FUNCTION change_of_delivery() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM record_change(NEW.app_id, 'delivery', NEW.state, NEW.id, NULL, NULL);
    RETURN NULL;
END $$;

-- The id from which on transactions that can write to this database may still be open. Those of other
-- databases of the server are left out as far as they are known: an id that pg_stat_activity shows
-- there belongs to that database for ever. The statement's snapshot is older than what it reads.
CREATE FUNCTION first_open_transaction() RETURNS bigint LANGUAGE sql AS $$
    SELECT least(
        (
            SELECT min(open.id::text::bigint)
            FROM pg_snapshot_xip(pg_current_snapshot()) AS open(id)
            WHERE NOT EXISTS (
                SELECT FROM pg_stat_activity AS other
                WHERE other.backend_xid = open.id::xid AND other.datname <> current_database()
            )
        ),
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
        pg_current_xact_id()::text::bigint
    )
$$;

-- Number the changes of an app before which no other can come, at most `_most`, and return how many.
-- The transaction of a visible row of another session is below xmax, unless the row was restored from
-- another cluster. While another session numbers the app's changes, none is numbered.
CREATE FUNCTION number_changes(_app uuid, _most bigint, _restored boolean DEFAULT false)
RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    _last bigint;
    _count bigint;
BEGIN
    INSERT INTO apps_config_changefeed (app_id, last_number) VALUES (_app, 0)
    ON CONFLICT DO NOTHING;
    SELECT last_number INTO _last FROM apps_config_changefeed
    WHERE app_id = _app FOR UPDATE SKIP LOCKED;
    IF _last IS NULL THEN
        RETURN 0;
    END IF;
    -- One statement: rows and open transactions are those of the same snapshot.
    WITH snapshot AS MATERIALIZED (
        SELECT first_open_transaction() AS first_open,
            pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xmax,
            pg_current_xact_id()::text::bigint AS own
    ), ready AS (
        SELECT change.id FROM apps_config_change AS change, snapshot
        WHERE change.app_id = _app AND change.number IS NULL AND (
            _restored
            OR change.transaction < snapshot.first_open
            OR change.transaction >= snapshot.xmax AND change.transaction <> snapshot.own
        )
        ORDER BY change.id LIMIT _most
    ), placed AS (
        SELECT id, row_number() OVER (ORDER BY id) AS place FROM ready
    )
    UPDATE apps_config_change AS change SET number = _last + placed.place
    FROM placed WHERE change.id = placed.id;
    GET DIAGNOSTICS _count = ROW_COUNT;
    IF _count > 0 THEN
        UPDATE apps_config_changefeed SET last_number = _last + _count WHERE app_id = _app;
    END IF;
    RETURN _count;
END $$;

-- For deploy/backup/restore.sh: number all changes, whichever transactions wrote them.
CREATE FUNCTION number_restored_changes() RETURNS bigint
LANGUAGE sql SET search_path FROM CURRENT AS $$
    SELECT coalesce(sum(number_changes(app_id, NULL, true)), 0)::bigint FROM (
        SELECT DISTINCT app_id FROM apps_config_change WHERE number IS NULL
    ) AS pending
$$;

-- Each row is updated once, when it is numbered.
ALTER TABLE apps_config_change SET (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000,
    fillfactor = 80
);
ALTER TABLE apps_config_changefeed SET (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
