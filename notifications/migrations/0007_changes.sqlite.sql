CREATE TRIGGER IF NOT EXISTS changes_of_webhook AFTER INSERT ON notifications_historicalwebhook
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'webhook', CASE WHEN NEW.history_type = '+' THEN 'created'
            WHEN NEW.history_type = '-' OR NEW.deleted_at IS NOT NULL THEN 'deleted' ELSE 'updated' END, NEW.history_date, NEW.id, NULL, NEW.history_id, 0;
END;

CREATE TRIGGER IF NOT EXISTS changes_of_delivery_insert AFTER INSERT ON notifications_delivery
WHEN NEW.finished_at IS NOT NULL
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'delivery', NEW.state, NEW.finished_at, NEW.id, NULL, NULL, 0;
END;
CREATE TRIGGER IF NOT EXISTS changes_of_delivery_update AFTER UPDATE OF finished_at ON notifications_delivery
WHEN OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL
BEGIN
    INSERT INTO apps_config_change
        (app_id, type, action, at, object_id, log_id, history_id, "transaction")
    SELECT NEW.app_id, 'delivery', NEW.state, NEW.finished_at, NEW.id, NULL, NULL, 0;
END;
