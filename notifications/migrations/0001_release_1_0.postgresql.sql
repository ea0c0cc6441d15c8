-- LaneCheck: one row per lane and transaction for deliveries that become due earlier than before
CREATE FUNCTION delivery_lane_check() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO notifications_lanecheck (type, app_id, endpoint, next_at, transaction)
    SELECT NEW.type, NEW.app_id, NEW.endpoint, NEW.next_at, txid_current()
    WHERE NOT EXISTS (
        SELECT FROM notifications_lanecheck AS mine
        WHERE mine.app_id = NEW.app_id AND mine.type = NEW.type AND mine.endpoint = NEW.endpoint
            AND mine.next_at <= NEW.next_at AND mine.transaction = txid_current()
    );
    RETURN NULL;
END $$;
CREATE TRIGGER delivery_lane_check_insert AFTER INSERT ON notifications_delivery
    FOR EACH ROW WHEN (NEW.next_at IS NOT NULL) EXECUTE FUNCTION delivery_lane_check();
CREATE TRIGGER delivery_lane_check_update AFTER UPDATE OF next_at, endpoint ON notifications_delivery
    FOR EACH ROW WHEN (
        NEW.next_at IS NOT NULL AND (
            OLD.next_at IS NULL OR NEW.next_at < OLD.next_at OR NEW.endpoint <> OLD.endpoint
        )
    ) EXECUTE FUNCTION delivery_lane_check();

-- The app of a row's parent --------------------------------------------------------------------
CREATE TRIGGER fixed_app BEFORE UPDATE OF app_id ON notifications_delivery
    FOR EACH ROW WHEN (OLD.app_id <> NEW.app_id) EXECUTE FUNCTION refuse_new_app();

CREATE FUNCTION notifications_attempt_app() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.app_id IS DISTINCT FROM (SELECT app_id FROM notifications_delivery WHERE id = NEW.delivery_id)
        OR TG_OP = 'UPDATE' AND NEW.app_id <> OLD.app_id
    THEN
        RAISE EXCEPTION 'notifications_attempt: another app than that of notifications_delivery'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER app_on_insert BEFORE INSERT ON notifications_attempt
    FOR EACH ROW EXECUTE FUNCTION notifications_attempt_app();
CREATE TRIGGER app_on_update BEFORE UPDATE ON notifications_attempt
    FOR EACH ROW WHEN ((OLD.app_id, OLD.delivery_id) IS DISTINCT FROM (NEW.app_id, NEW.delivery_id))
    EXECUTE FUNCTION notifications_attempt_app();

-- ListingTally: the numbers of deliveries by type and webhook -----------------------------------
CREATE FUNCTION tally_deliveries() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM tally_move(
        coalesce(NEW.app_id, OLD.app_id), 'deliveries',
        OLD.type || ':' || replace(coalesce(OLD.webhook_id::text, ''), '-', ''),
        NEW.type || ':' || replace(coalesce(NEW.webhook_id::text, ''), '-', '')
    );
    RETURN NULL;
END $$;
CREATE TRIGGER tally_deliveries AFTER INSERT OR DELETE ON notifications_delivery
    FOR EACH ROW EXECUTE FUNCTION tally_deliveries();

-- Storage ----------------------------------------------------------------------------------------
-- Tables that grow: by default, autovacuum waits until a fifth of them has changed. Their rows are
-- chosen by app: PostgreSQL takes an app that is not in the statistics for one without rows, and then
-- reads all its rows where another index finds one.
ALTER TABLE notifications_delivery SET (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);
ALTER TABLE notifications_attempt SET (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);
ALTER TABLE notifications_changecalls SET (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_analyze_scale_factor = 0.01,
    autovacuum_vacuum_insert_scale_factor = 0.05
);

-- Few rows that change all the time: the table stays small only if it is vacuumed without pauses.
ALTER TABLE notifications_lanecheck SET (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE notifications_endpoint SET (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE notifications_heartbeat SET (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
