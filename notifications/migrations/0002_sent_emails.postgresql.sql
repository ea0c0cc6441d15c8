CREATE FUNCTION notifications_sentemail_app() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.app_id IS DISTINCT FROM (SELECT app_id FROM notifications_delivery WHERE id = NEW.delivery_id)
        OR TG_OP = 'UPDATE' AND NEW.app_id <> OLD.app_id
    THEN
        RAISE EXCEPTION 'notifications_sentemail: another app than that of notifications_delivery'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER app_on_insert BEFORE INSERT ON notifications_sentemail
    FOR EACH ROW EXECUTE FUNCTION notifications_sentemail_app();
CREATE TRIGGER app_on_update BEFORE UPDATE ON notifications_sentemail
    FOR EACH ROW WHEN ((OLD.app_id, OLD.delivery_id) IS DISTINCT FROM (NEW.app_id, NEW.delivery_id))
    EXECUTE FUNCTION notifications_sentemail_app();

-- It grows and shrinks like notifications_attempt. The content is compressed already.
ALTER TABLE notifications_sentemail ALTER COLUMN content SET STORAGE EXTERNAL;
ALTER TABLE notifications_sentemail SET (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);
