CREATE OR REPLACE TRIGGER changes AFTER INSERT ON bookings_statechange
    FOR EACH ROW EXECUTE FUNCTION change_of_log();

CREATE OR REPLACE TRIGGER changes_hide AFTER UPDATE OF deleted_at ON bookings_booking
    FOR EACH ROW WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL)
    EXECUTE FUNCTION change_of_deleted_booking();
CREATE OR REPLACE TRIGGER changes_delete AFTER DELETE ON bookings_booking
    FOR EACH ROW WHEN (OLD.deleted_at IS NULL) EXECUTE FUNCTION change_of_deleted_booking();

CREATE OR REPLACE TRIGGER changes_insert AFTER INSERT ON bookings_customer
    FOR EACH ROW EXECUTE FUNCTION change_of_row('customer');
CREATE OR REPLACE TRIGGER changes_update AFTER UPDATE ON bookings_customer
    FOR EACH ROW WHEN ((
        OLD.name, OLD.email, OLD.phone, OLD.voip, OLD.timezone, OLD.meta, OLD.response,
        OLD.responded_at, OLD.response_source
    ) IS DISTINCT FROM (
        NEW.name, NEW.email, NEW.phone, NEW.voip, NEW.timezone, NEW.meta, NEW.response,
        NEW.responded_at, NEW.response_source
    )) EXECUTE FUNCTION change_of_row('customer');
CREATE OR REPLACE TRIGGER changes_delete AFTER DELETE ON bookings_customer
    FOR EACH ROW EXECUTE FUNCTION change_of_row('customer');
