CREATE TRIGGER notifications_sentemail_app_on_insert BEFORE INSERT ON notifications_sentemail
WHEN NEW.app_id IS NOT (SELECT app_id FROM notifications_delivery WHERE id = NEW.delivery_id)
BEGIN
    SELECT RAISE(ABORT, 'notifications_sentemail: another app than that of notifications_delivery');
END;
CREATE TRIGGER notifications_sentemail_app_on_update BEFORE UPDATE OF app_id, delivery_id ON notifications_sentemail
WHEN NEW.app_id <> OLD.app_id
    OR NEW.app_id IS NOT (SELECT app_id FROM notifications_delivery WHERE id = NEW.delivery_id)
BEGIN
    SELECT RAISE(ABORT, 'notifications_sentemail: another app than that of notifications_delivery');
END;
