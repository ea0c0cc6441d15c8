CREATE TRIGGER IF NOT EXISTS changes_of_log AFTER INSERT ON bookings_statechange
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'booking', NEW.action, NEW.created_at, NEW.booking_id, NEW.id, NULL, 0;
END;

CREATE TRIGGER IF NOT EXISTS changes_of_booking_hide AFTER UPDATE OF deleted_at ON bookings_booking
WHEN OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'booking', 'deleted', NEW.updated_at, NEW.id, NULL, NULL, 0;
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT event.app_id, 'event', 'deleted', NEW.updated_at, event.id, NULL, NULL, 0
    FROM availability_event AS event
    WHERE NEW.owner_booking_id IS NULL
        AND (event.id = NEW.event_id OR event.main_id = NEW.event_id);
END;
CREATE TRIGGER IF NOT EXISTS changes_of_booking_delete AFTER DELETE ON bookings_booking
WHEN OLD.deleted_at IS NULL
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT OLD.app_id, 'booking', 'deleted', strftime('%Y-%m-%d %H:%M:%f', 'now'), OLD.id, NULL, NULL, 0;
END;

CREATE TRIGGER IF NOT EXISTS changes_of_customer_insert AFTER INSERT ON bookings_customer
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'customer', 'created', strftime('%Y-%m-%d %H:%M:%f', 'now'), NEW.id, NULL, NULL, 0;
END;
CREATE TRIGGER IF NOT EXISTS changes_of_customer_update AFTER UPDATE ON bookings_customer
WHEN (
    OLD.name IS NOT NEW.name
    OR OLD.email IS NOT NEW.email
    OR OLD.phone IS NOT NEW.phone
    OR OLD.voip IS NOT NEW.voip
    OR OLD.timezone IS NOT NEW.timezone
    OR OLD.meta IS NOT NEW.meta
    OR OLD.response IS NOT NEW.response
    OR OLD.responded_at IS NOT NEW.responded_at
    OR OLD.response_source IS NOT NEW.response_source
)
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'customer', 'updated', strftime('%Y-%m-%d %H:%M:%f', 'now'), NEW.id, NULL, NULL, 0;
END;
CREATE TRIGGER IF NOT EXISTS changes_of_customer_delete AFTER DELETE ON bookings_customer
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT OLD.app_id, 'customer', 'deleted', strftime('%Y-%m-%d %H:%M:%f', 'now'), OLD.id, NULL, NULL, 0;
END;
