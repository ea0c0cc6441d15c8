CREATE OR REPLACE TRIGGER changes AFTER INSERT ON notifications_historicalwebhook
    FOR EACH ROW EXECUTE FUNCTION change_of_history('webhook');

CREATE OR REPLACE TRIGGER changes_insert AFTER INSERT ON notifications_delivery
    FOR EACH ROW WHEN (NEW.finished_at IS NOT NULL) EXECUTE FUNCTION change_of_delivery();
CREATE OR REPLACE TRIGGER changes_update AFTER UPDATE OF finished_at ON notifications_delivery
    FOR EACH ROW WHEN (OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL)
    EXECUTE FUNCTION change_of_delivery();
