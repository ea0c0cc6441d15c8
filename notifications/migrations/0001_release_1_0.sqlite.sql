-- LaneCheck: one row per lane for deliveries that become due earlier than before
CREATE TRIGGER delivery_lane_check_insert AFTER INSERT ON notifications_delivery
WHEN NEW.next_at IS NOT NULL
BEGIN
    INSERT INTO notifications_lanecheck
        (type, app_id, endpoint, next_at, is_held, "transaction")
    SELECT NEW.type, NEW.app_id, NEW.endpoint, NEW.next_at, 0, 0 WHERE NOT EXISTS (
        SELECT 1 FROM notifications_lanecheck AS present
        WHERE present.app_id = NEW.app_id AND present.type = NEW.type
            AND present.endpoint = NEW.endpoint AND present.next_at <= NEW.next_at
    );
END;
CREATE TRIGGER delivery_lane_check_update
AFTER UPDATE OF next_at, endpoint ON notifications_delivery
WHEN NEW.next_at IS NOT NULL AND (
    OLD.next_at IS NULL OR NEW.next_at < OLD.next_at OR NEW.endpoint <> OLD.endpoint
)
BEGIN
    INSERT INTO notifications_lanecheck
        (type, app_id, endpoint, next_at, is_held, "transaction")
    SELECT NEW.type, NEW.app_id, NEW.endpoint, NEW.next_at, 0, 0 WHERE NOT EXISTS (
        SELECT 1 FROM notifications_lanecheck AS present
        WHERE present.app_id = NEW.app_id AND present.type = NEW.type
            AND present.endpoint = NEW.endpoint AND present.next_at <= NEW.next_at
    );
END;

-- The app of a row's parent --------------------------------------------------------------------
CREATE TRIGGER notifications_delivery_fixed_app BEFORE UPDATE OF app_id ON notifications_delivery
WHEN OLD.app_id <> NEW.app_id
BEGIN
    SELECT RAISE(ABORT, 'notifications_delivery: a row stays in its app');
END;

CREATE TRIGGER notifications_attempt_app_on_insert BEFORE INSERT ON notifications_attempt
WHEN NEW.app_id IS NOT (SELECT app_id FROM notifications_delivery WHERE id = NEW.delivery_id)
BEGIN
    SELECT RAISE(ABORT, 'notifications_attempt: another app than that of notifications_delivery');
END;
CREATE TRIGGER notifications_attempt_app_on_update BEFORE UPDATE OF app_id, delivery_id ON notifications_attempt
WHEN NEW.app_id <> OLD.app_id
    OR NEW.app_id IS NOT (SELECT app_id FROM notifications_delivery WHERE id = NEW.delivery_id)
BEGIN
    SELECT RAISE(ABORT, 'notifications_attempt: another app than that of notifications_delivery');
END;

-- ListingTally: the numbers of deliveries by type and webhook -----------------------------------
CREATE TRIGGER tally_deliveries_insert AFTER INSERT ON notifications_delivery
BEGIN
    INSERT INTO apps_config_listingtally (app_id, listing, part, slot, count)
    SELECT NEW.app_id, 'deliveries', NEW.type || ':' || replace(coalesce(CAST(NEW.webhook_id AS text), ''), '-', ''), 0, 1 WHERE TRUE
    ON CONFLICT (app_id, listing, part, slot)
        DO UPDATE SET count = apps_config_listingtally.count + excluded.count;
END;
CREATE TRIGGER tally_deliveries_delete AFTER DELETE ON notifications_delivery
BEGIN
    INSERT INTO apps_config_listingtally (app_id, listing, part, slot, count)
    SELECT OLD.app_id, 'deliveries', OLD.type || ':' || replace(coalesce(CAST(OLD.webhook_id AS text), ''), '-', ''), 0, -1 WHERE TRUE
    ON CONFLICT (app_id, listing, part, slot)
        DO UPDATE SET count = apps_config_listingtally.count + excluded.count;
END;
